import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ensureCommand } from './debian.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Once before all tests: what they need beside node_modules. */
export function setup(): void {
  ensureCommand('redis-server', 'redis-server');
  // test/process runs what users run.
  execFileSync(process.execPath, ['scripts/build.mjs', '--if-stale'], { cwd: ROOT, stdio: 'pipe' });
}
