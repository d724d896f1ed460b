// npm pack of a checkout that has what the package is made of; without src there is nothing to build.
import { execFile } from 'node:child_process';
import { cp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** For a slow line, where nothing is in npm's cache. */
const NPM_LIMIT_MS = 300_000;

export const PACKED = [
  'dist',
  'scripts',
  'templates',
  'package.json',
  'package-lock.json',
  'README.md',
  'SECURITY.md',
  '.env.example',
  'postern.schema.json',
];

export const QUIETLY = ['--prefer-offline', '--no-audit', '--no-fund'];

export const npm = (cwd: string, ...args: readonly string[]) =>
  promisify(execFile)('npm', args, { cwd, timeout: NPM_LIMIT_MS });

/** Into `place`, by a copy of the checkout in its folder `checkout`; resolves to the package. */
export async function packCheckout(place: string): Promise<string> {
  const checkout = join(place, 'checkout');
  for (const name of PACKED) await cp(join(ROOT, name), join(checkout, name), { recursive: true });
  return pack(checkout, place);
}

/** Resolves to the package of a folder. */
export async function pack(folder: string, place: string): Promise<string> {
  const before = await readdir(place);
  await npm(folder, 'pack', '--pack-destination', place);
  const made = (await readdir(place)).find(
    (name) => name.endsWith('.tgz') && !before.includes(name),
  );
  if (made === undefined) throw new Error(`npm pack wrote nothing of ${folder}`);
  return join(place, made);
}
