// npm pack and npm publish call this before (prepare) and after (restore) they make the package. It
// gets an npm-shrinkwrap.json: an installation from a registry, or npm ci in the package, has the
// versions that were tested here. In the checkout npm would read that file instead of
// package-lock.json, so it is removed again. Plain JavaScript, as build.mjs.
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createShippedLock, createShippedManifest } from './shipped.mjs';

const root = new URL('../', import.meta.url);
const manifest = new URL('package.json', root);
const backup = new URL('package.json.orig', root);
const shrinkwrap = new URL('npm-shrinkwrap.json', root);

// Also before the next time: the last one may have been interrupted.
if (existsSync(backup)) renameSync(backup, manifest);
rmSync(shrinkwrap, { force: true });

if (process.argv[2] === 'prepare') {
  const shipped = createShippedManifest();
  writeJson(shrinkwrap, createShippedLock());
  renameSync(manifest, backup);
  writeJson(manifest, shipped);
}

function writeJson(file, content) {
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
}
