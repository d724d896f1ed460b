// npm run release: checks that tag, versions and changelog agree, and writes release/: both packages, the SBOM, checksums and
// the notes. With --publish it publishes them, with provenance: that works in CI only, where npm can learn who builds.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findSection } from './release/changelog.ts';
import { findReleaseProblems } from './release/find-problems.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = join(root, 'release');
const npm = (...args: readonly string[]) =>
  execFileSync('npm', args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });

const problems = findReleaseProblems(root);
if (problems.length > 0) {
  console.error(`This cannot be released:\n${problems.map((line) => `  - ${line}`).join('\n')}`);
  process.exit(1);
}
makeRelease();
if (process.argv.includes('--publish')) {
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.tgz'))) {
    npm('publish', join(folder, name), '--provenance', '--access', 'public');
  }
}

function makeRelease(): void {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  npm('pack', '--pack-destination', folder);
  npm('pack', './examples/starter', '--pack-destination', folder);
  npm('run', 'sbom');
  renameSync(
    join(root, `postern-${version}.cdx.json`),
    join(folder, `postern-${version}.cdx.json`),
  );
  const sums = readdirSync(folder).map((name) => {
    const hash = createHash('sha256').update(readFileSync(join(folder, name)));
    return `${hash.digest('hex')}  ${name}\n`;
  });
  writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''));
  const notes = findSection(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version)?.text ?? '';
  writeFileSync(join(folder, 'notes.md'), notes);
  console.log(readdirSync(folder).join('\n'));
}
