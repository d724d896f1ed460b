// Packs this package as npm would, from a checkout as well as from node_modules, without a network. `npm pack` would run a
// checkout's scripts, which write there, and takes seconds.

import { existsSync, lstatSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { isStringArray, parseObject } from '../../platform/json.ts';
import { PACKAGE_NAME, PACKAGE_ROOT, PACKAGE_VERSION } from '../../platform/own-files.ts';

const ROOT = fileURLToPath(PACKAGE_ROOT);

export const PACKAGE_FILE = `${PACKAGE_NAME}-${PACKAGE_VERSION}.tgz`;

/** Returns the archive for `npm install`: the same bytes for the same files. */
export async function packOwnPackage(): Promise<Buffer> {
  const manifest = parseObject(await readFile(join(ROOT, 'package.json'))) ?? {};
  // What npm pack leaves out of a published manifest, too (scripts/shipped.mjs).
  const { devDependencies: _, scripts: __, ...shipped } = manifest;
  const entries = [renderEntry('package.json', Buffer.from(JSON.stringify(shipped, null, 2)))];
  const listed = isStringArray(shipped.files) ? shipped.files : [];
  for (const name of (await Promise.all(listed.map(listFiles))).flat().sort())
    entries.push(renderEntry(name, await readFile(join(ROOT, name))));
  // An archive ends with two empty blocks. The user waits: a better compression takes twice as long for a fifth of the size.
  return promisify(gzip)(Buffer.concat([...entries, Buffer.alloc(2 * BLOCK)]), { level: 1 });
}

/** Lists the files of a member of `files`, a file or a folder, by their paths in the package. */
async function listFiles(name: string): Promise<readonly string[]> {
  const path = join(ROOT, name);
  // A checkout has no npm-shrinkwrap.json.
  if (!existsSync(path)) return [];
  if (lstatSync(path).isFile()) return [name];
  const found = await readdir(path, { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name: file }) =>
      posix.join(name, parentPath.slice(path.length).replaceAll(sep, '/'), file),
    );
}

const BLOCK = 512;

/** An entry of a POSIX ustar archive (IEEE Std 1003.1, pax, "ustar Interchange Format"). */
function renderEntry(name: string, content: Buffer) {
  const header = Buffer.alloc(BLOCK);
  const path = posix.join('package', name);
  const write = (text: string, offset: number) => header.write(text, offset, 'latin1');
  write(posix.basename(path), 0);
  write(octal(0o644, 8), 100);
  write(octal(0, 8), 108);
  write(octal(0, 8), 116);
  write(octal(content.length, 12), 124);
  write(octal(0, 12), 136);
  // The checksum is computed with spaces in its own field.
  write(' '.repeat(8), 148);
  write('0', 156);
  write('ustar\u000000', 257);
  write(posix.dirname(path), 345);
  write(
    octal(
      header.reduce((sum, byte) => sum + byte),
      8,
    ),
    148,
  );
  const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
  return Buffer.concat([header, content, padding]);
}

/** Digits that end with a zero byte, in a field of `width` bytes. */
const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, '0')}\0`;
