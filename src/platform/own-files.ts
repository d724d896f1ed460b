// The places of our own files: below src/ in tests, below dist/ once they are built. The build makes few files of
// many, so that a path relative to the file that asks would not hold: everybody asks here.

import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { parseObject } from './json.ts';

/** With a slash at the end. The path is the same from src/platform/ and from dist/chunks/. */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);

const ending = extname(import.meta.url);

/** src/ or dist/, with a slash at the end. */
export const CODE_FOLDER = new URL(ending === '.ts' ? 'src/' : 'dist/', PACKAGE_ROOT);

/** A module below it that is loaded by its address; scripts/build.mjs has to list it as an entry. */
export const getModuleUrl = (name: string): URL => new URL(`${name}${ending}`, CODE_FOLDER);

// §9: name and version come from the package configuration.
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
