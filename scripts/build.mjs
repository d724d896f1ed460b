// npm run build; with --if-stale only when a source differs from what was last built.
// Plain JavaScript: it has to run before anything was built, and where the build tools are missing.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const pathInRoot = (...path) => join(root, ...path);

const SOURCES = ['src', 'docs', 'scripts', 'package.json', 'tsconfig.json', 'tsconfig.build.json'];
const STAMP = pathInRoot('dist', '.built');

/** By content, not by time: a checkout or a copy may put any time on a file. */
function computeFingerprint() {
  const hash = createHash('sha256');
  const add = (name) => {
    if (statSync(pathInRoot(name)).isDirectory()) {
      for (const entry of readdirSync(pathInRoot(name)).sort()) add(join(name, entry));
    } else {
      hash.update(`${name}\0`).update(readFileSync(pathInRoot(name)));
    }
  };
  for (const name of SOURCES) add(name);
  return hash.digest('hex');
}

const isFresh = () => existsSync(STAMP) && readFileSync(STAMP, 'utf8') === computeFingerprint();

/** What the command prints goes to stderr: stdout belongs to the service's log lines. */
function run(command, ...args) {
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
}

function build() {
  const started = performance.now();
  console.error('Building Postern …');
  const built = computeFingerprint();
  const next = pathInRoot(`.dist-${process.pid}`);
  try {
    const tsc = pathInRoot('node_modules', 'typescript', 'bin', 'tsc');
    run(process.execPath, tsc, '-p', 'tsconfig.build.json', '--outDir', next);
    bundle(next);
    chmodSync(join(next, 'cli', 'main.js'), 0o755);
    replaceDist(next);
  } finally {
    rmSync(next, { recursive: true, force: true });
  }
  run(process.execPath, '--import', 'tsx', 'scripts/site.ts');
  writeFileSync(STAMP, built);
  console.error(`Built in ${((performance.now() - started) / 1000).toFixed(1)} s.`);
}

/** What is loaded by its name or address; everything else goes into files that these share. */
const ENTRIES = [
  'index',
  'define',
  'cli/main',
  'cli/dev-provider/main',
  'cli/workers/worker',
  'cli/catalog-file/resolve-postern',
];

/**
 * A few files in place of some three hundred: Node takes a third of a millisecond for each when the service
 * starts. Packages stay packages. chunks/ lies as deep as src/core/ (own-files.ts).
 */
function bundle(folder) {
  const esbuild = pathInRoot('node_modules', 'esbuild', 'bin', 'esbuild');
  const entries = ENTRIES.map((name) => pathInRoot('src', `${name}.ts`));
  const options = {
    outdir: folder,
    outbase: pathInRoot('src'),
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    'chunk-names': 'chunks/[name]-[hash]',
    'sources-content': 'false',
    'log-level': 'warning',
  };
  const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  run(esbuild, ...entries, '--bundle', '--splitting', '--sourcemap', ...flags);
}

/** One step to the next: nobody finds half a build, and no deleted file stays behind. */
function replaceDist(next) {
  const old = `${next}-old`;
  if (existsSync(pathInRoot('dist'))) renameSync(pathInRoot('dist'), old);
  renameSync(next, pathInRoot('dist'));
  rmSync(old, { recursive: true, force: true });
}

function installMissingTools() {
  if (
    ['typescript', 'tsx', 'esbuild'].every((name) => existsSync(pathInRoot('node_modules', name)))
  )
    return;
  console.error('The build tools are missing (npm leaves them out when NODE_ENV=production):');
  console.error('installing them with npm ci --include=dev …');
  run('npm', 'ci', '--include=dev');
}

// An installed package has no sources: it comes built.
if (existsSync(pathInRoot('src')) && !(process.argv.includes('--if-stale') && isFresh())) {
  try {
    installMissingTools();
    build();
  } catch (error) {
    console.error(`The build failed: ${error.message}`);
    process.exit(1);
  }
}
