// npm run build; with --if-stale only when a source is newer than the last build.
// Plain JavaScript: it has to run before anything was built, and where tsx may be missing.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const stamp = join(root, 'dist', '.built');
const sources = ['src', 'docs', 'scripts', 'package.json', 'tsconfig.json', 'tsconfig.build.json'];

const newest = (path) =>
  statSync(path).isDirectory()
    ? Math.max(0, ...readdirSync(path).map((name) => newest(join(path, name))))
    : statSync(path).mtimeMs;

const isFresh = () =>
  existsSync(stamp) && sources.every((name) => newest(join(root, name)) <= statSync(stamp).mtimeMs);

// npm's output goes to stderr: stdout belongs to the service's log lines.
const run = (command, ...args) =>
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] });

function build() {
  if (!existsSync(join(root, 'node_modules', 'typescript'))) {
    console.error(
      'The build tools are missing (NODE_ENV=production leaves them out): installing them.',
    );
    run('npm', 'ci', '--include=dev');
  }
  console.error('Building Postern …');
  const started = Date.now();
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  const tool = (...path) => join(root, 'node_modules', ...path);
  run(process.execPath, tool('typescript', 'bin', 'tsc'), '-p', 'tsconfig.build.json');
  run(process.execPath, '--import', 'tsx', 'scripts/site.ts');
  writeFileSync(stamp, '');
  console.error(`Built in ${((Date.now() - started) / 1000).toFixed(1)} s.`);
}

// An installed package has no sources: it comes built.
if (existsSync(join(root, 'src')) && !(process.argv.includes('--if-stale') && isFresh())) {
  try {
    build();
  } catch (error) {
    console.error(`The build failed: ${error.message}`);
    process.exit(1);
  }
}
