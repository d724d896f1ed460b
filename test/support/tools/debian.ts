import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Makes sure that a Debian package's command is there: on the PATH, or installed where that is
 * possible (root and apt).
 *
 * @throws Error saying what to install. Never skips in silence.
 */
export function ensureCommand(command: string, packageName: string): void {
  ensure(command, packageName, () => isThere(command));
}

/** The same for a file or folder that the package brings. */
export function ensureFile(path: string, packageName: string): void {
  ensure(path, packageName, () => existsSync(path));
}

function ensure(what: string, packageName: string, isInstalled: () => boolean): void {
  if (isInstalled()) return;
  if (process.getuid?.() !== 0 || !isThere('apt-get')) {
    throw new Error(
      `The tests need ${what}: install the package ${packageName} (for example apt-get install ${packageName}) and start them again.`,
    );
  }
  // The tests start their own servers: the package must not start one.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  execFileSync('flock', [APT_LOCK, 'sh', '-c', INSTALL, 'sh', packageName], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (!isInstalled()) throw new Error(`${packageName} was installed, but brought no ${what}.`);
}

/** Test files run side by side, and apt-get fails where another one is at work. */
const APT_LOCK = join(tmpdir(), 'postern-tests-apt.lock');
/** Lists of packages that are there will mostly do: they are updated, for seconds, only where they do not. */
const INSTALL = `
install() {
  apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$1"
}
install "$1" 2>/dev/null || { apt-get update -qq; install "$1"; }`;

const isThere = (command: string): boolean =>
  spawnSync(command, ['--version'], { stdio: 'ignore' }).error === undefined;
