// npm run build; with --if-stale only what differs from what was last built: the code, the site, or neither. With
// --if-possible, as npm ci calls it, nothing where the build tools were left out.
// Plain JavaScript: it has to run before anything was built, and where the build tools are missing.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { isAbsolute, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const pathInRoot = (...path) => join(root, ...path);

/** The site's configuration, and its pages that are apps. */
const THEME = join('docs', '.vitepress');

const PARTS = {
  code: {
    listSources: () => ['src', 'scripts', 'package.json', 'tsconfig.json', 'tsconfig.build.json'],
    stamp: pathInRoot('dist', '.built'),
    build: buildCode,
  },
  site: {
    listSources: () => ['docs', ...listImportsOfTheme(), 'package.json'],
    stamp: pathInRoot('dist', '.built-site'),
    build: buildSite,
  },
};

/** Files of src that the site is made with. */
function listImportsOfTheme() {
  const seen = new Set();
  function visit(name) {
    if (seen.has(name)) return;
    seen.add(name);
    const text = readFileSync(pathInRoot(name), 'utf8');
    for (const [, path] of text.matchAll(/\b(?:from|import\(?)\s*'(\.[^']+\.(?:ts|vue))'/g)) {
      visit(join(name, '..', path));
    }
  }
  for (const name of readdirSync(pathInRoot(THEME), { recursive: true })) {
    if (/\.(ts|vue)$/.test(name)) visit(join(THEME, name));
  }
  return [...seen].filter((name) => name.startsWith(`src${sep}`)).sort();
}

/** In docs, but no part of the site; .temp is what a build of it leaves when it is interrupted. */
const LEFT_OUT = ['docs/decisions', 'docs/examples', 'docs/.vitepress/.temp'].map((path) =>
  join(...path.split('/')),
);

/** By content, not by time: a checkout or a copy may put any time on a file. */
function computeFingerprint({ listSources }) {
  const hash = createHash('sha256');
  const add = (name) => {
    if (LEFT_OUT.includes(name)) return;
    if (statSync(pathInRoot(name)).isDirectory()) {
      for (const entry of readdirSync(pathInRoot(name)).sort()) add(join(name, entry));
    } else {
      hash.update(`${name}\0`).update(readFileSync(pathInRoot(name)));
    }
  };
  for (const name of listSources()) add(name);
  return hash.digest('hex');
}

const isFresh = (part) =>
  existsSync(part.stamp) && readFileSync(part.stamp, 'utf8') === computeFingerprint(part);

/**
 * The command's output goes to stderr: stdout belongs to the service's log lines. The output of a quiet one is
 * only shown when it fails.
 */
function run(command, args, { isQuiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: root,
      stdio: isQuiet ? ['ignore', 'pipe', 'pipe'] : ['ignore', 2, 2],
    });
    const printed = [];
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (c) => printed.push(c));
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) return resolve();
      process.stderr.write(Buffer.concat(printed));
      reject(new Error(`${args[0]} ended with ${code}`));
    });
  });
}

async function build(names) {
  const started = performance.now();
  console.error(`Building Postern (${names.join(' and ')}) …`);
  const parts = names.map((name) => PARTS[name]);
  const stamps = parts.map((part) => [part.stamp, computeFingerprint(part)]);
  const next = pathInRoot(`.dist-${process.pid}`);
  try {
    await Promise.all(parts.map((part) => part.build(next)));
    keepWhatIsFresh(next, names);
    replaceDist(next);
  } finally {
    rmSync(next, { recursive: true, force: true });
  }
  for (const [stamp, built] of stamps) writeFileSync(stamp, built);
  console.error(`Built in ${((performance.now() - started) / 1000).toFixed(1)} s.`);
}

async function buildCode(next) {
  const tsc = pathInRoot('node_modules', 'typescript', 'bin', 'tsc');
  await run(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', next]);
  await bundle(next);
  chmodSync(join(next, 'cli', 'main.js'), 0o755);
}

async function buildSite(next) {
  const vitepress = pathInRoot('node_modules', 'vitepress', 'bin', 'vitepress.js');
  const folder = join(next, 'site');
  await run(process.execPath, [vitepress, 'build', 'docs', '--outDir', folder], { isQuiet: true });
}

/** Files that are loaded by name or address; everything else goes into files that these share. */
const ENTRIES = [
  'index',
  'define',
  'testing',
  'cli/main',
  'cli/dev-provider/main',
  'cli/serve/workers/worker',
  'cli/setup/resolve-postern',
];

/**
 * A few files in place of some three hundred: Node takes a third of a millisecond for each when the service
 * starts. Packages stay packages. chunks/ lies as deep as src/platform/ (own-files.ts).
 */
async function bundle(folder) {
  const bundled = `${folder}-bundled`;
  try {
    await transpile(bundled);
    await mergeChunks(bundled, folder);
  } finally {
    rmSync(bundled, { recursive: true, force: true });
  }
}

async function transpile(folder) {
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
  await run(esbuild, [...entries, '--bundle', '--splitting', '--sourcemap', ...flags]);
}

/**
 * esbuild makes a chunk for each set of entries that share something. Rollup knows what is loaded already where
 * something is imported later, and needs half as many.
 */
async function mergeChunks(from, folder) {
  // Only now: it is missing where the build tools are.
  const { rollup } = await import('rollup');
  const merged = await rollup({
    input: Object.fromEntries(ENTRIES.map((name) => [name, join(from, `${name}.js`)])),
    external: (id) => !/^[./]/.test(id) && !isAbsolute(id),
    treeshake: false,
    plugins: [{ name: 'source-maps', load: loadWithSourceMap }],
  });
  await merged.write({
    dir: folder,
    chunkFileNames: 'chunks/[name].js',
    // Each import costs a start a tenth of a millisecond.
    hoistTransitiveImports: false,
    minifyInternalExports: false,
    sourcemap: true,
    sourcemapExcludeSources: true,
  });
  await merged.close();
}

const loadWithSourceMap = (file) => ({
  code: readFileSync(file, 'utf8'),
  map: readFileSync(`${file}.map`, 'utf8'),
});

/** The part that was not built is taken over from the last build. */
function keepWhatIsFresh(next, built) {
  const last = pathInRoot('dist');
  if (!existsSync(last)) return;
  const isSite = (name) => name === 'site' || name === '.built-site';
  for (const name of readdirSync(last)) {
    if (built.includes(isSite(name) ? 'site' : 'code')) continue;
    mkdirSync(next, { recursive: true });
    cpSync(join(last, name), join(next, name), { recursive: true });
  }
}

/** One step to the next: nobody finds half a build, and no deleted file stays behind. */
function replaceDist(next) {
  const old = `${next}-old`;
  if (existsSync(pathInRoot('dist'))) renameSync(pathInRoot('dist'), old);
  renameSync(next, pathInRoot('dist'));
  rmSync(old, { recursive: true, force: true });
}

const hasTools = () =>
  ['typescript', 'tsx', 'esbuild', 'rollup', 'vitepress'].every((name) =>
    existsSync(pathInRoot('node_modules', name)),
  );

function installMissingTools() {
  if (hasTools()) return;
  console.error('The build tools are missing (npm leaves them out when NODE_ENV=production):');
  console.error('installing them with npm ci --include=dev …');
  execFileSync('npm', ['ci', '--include=dev'], { cwd: root, stdio: ['ignore', 2, 2] });
}

/**
 * After a git pull the packages may be others than those that are installed: the compiler would only say what it does
 * not find. Optional ones are missing on some systems.
 */
function checkPackages() {
  if (!existsSync(pathInRoot(INSTALLED_LOCK))) return;
  const installed = readLock(INSTALLED_LOCK);
  const [differing] = Object.entries(readLock('package-lock.json')).filter(
    ([path, { version, optional, devOptional }]) =>
      path !== '' && !optional && !devOptional && installed[path]?.version !== version,
  );
  if (differing === undefined) return;
  const [place, wanted] = differing;
  const name = place.replace(/^.*node_modules\//, '');
  const found = installed[place]?.version ?? 'missing';
  throw new Error(
    `node_modules does not match package-lock.json (${name} is ${found}, and has to be ${wanted.version}). Run: npm ci`,
  );
}

const INSTALLED_LOCK = join('node_modules', '.package-lock.json');

const readLock = (file) => JSON.parse(readFileSync(pathInRoot(file), 'utf8')).packages;

// An installed package has no sources: it comes built.
const isWanted = hasTools() || !process.argv.includes('--if-possible');
if (existsSync(pathInRoot('src')) && isWanted) {
  const onlyStale = process.argv.includes('--if-stale');
  const names = Object.keys(PARTS).filter((name) => !(onlyStale && isFresh(PARTS[name])));
  if (names.length > 0) {
    try {
      installMissingTools();
      checkPackages();
      await build(names);
    } catch (error) {
      console.error(`The build failed: ${error.message}`);
      process.exit(1);
    }
  }
}
