// npm pack and npm publish call this before (prepare) and after (restore) they make the package. It
// gets an npm-shrinkwrap.json: whoever installs it from a registry, or runs npm ci in it, has the
// versions that were tested here. In the checkout npm would read that file in place of
// package-lock.json, so it is taken away again. Plain JavaScript, as build.mjs.
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { shippedLock, shippedManifest } from './shipped.mjs';

const root = new URL('../', import.meta.url);
const manifest = new URL('package.json', root);
const kept = new URL('package.json.orig', root);
const shrinkwrap = new URL('npm-shrinkwrap.json', root);

// Also before the next time: the last one may have been interrupted.
if (existsSync(kept)) renameSync(kept, manifest);
rmSync(shrinkwrap, { force: true });

if (process.argv[2] === 'prepare') {
  const shipped = shippedManifest();
  write(shrinkwrap, shippedLock());
  renameSync(manifest, kept);
  write(manifest, shipped);
}

function write(file, content) {
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
}
