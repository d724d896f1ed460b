import { readFileSync } from 'node:fs';
import { parseObject } from './json.ts';
import { PACKAGE_ROOT } from './own-files.ts';

// §9: name and version come from the package configuration.
const manifest = parseObject(readFileSync(new URL('package.json', PACKAGE_ROOT)));

function readManifest(member: 'name' | 'version'): string {
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
