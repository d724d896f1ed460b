// Locates the package's own files: below src/ in tests, below dist/ once built. The build bundles files, so a path relative to the
// calling file would be wrong.

import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { parseObject } from './json.ts';

/** The package's folder, with a trailing slash. The path is the same from src/platform/ and from dist/chunks/. */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);

const ending = extname(import.meta.url);

/** The folder src/ or dist/, with a trailing slash. */
export const CODE_FOLDER = new URL(ending === '.ts' ? 'src/' : 'dist/', PACKAGE_ROOT);

/** The URL of a module that is loaded by URL; scripts/build.mjs must list the module as an entry. */
export const getModuleUrl = (name: string): URL => new URL(`${name}${ending}`, CODE_FOLDER);

// §9: name and version come from package.json.
const manifest = parseObject(readFileSync(new URL('package.json', PACKAGE_ROOT)));

function readManifest(member: 'name' | 'version') {
  const value = manifest?.[member];
  if (typeof value !== 'string') throw new Error(`package.json has no ${member}`);
  return value;
}

/** §4.4: `serverInfo.name`. */
export const PACKAGE_NAME: string = readManifest('name');
/** §9: `serverInfo.version`, and `version` of the health endpoints. */
export const PACKAGE_VERSION: string = readManifest('version');
/** Such as `v24.13.0`. */
export const NODE_VERSION: string = process.version;
