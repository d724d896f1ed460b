import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

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
  execFileSync('apt-get', ['update', '-qq'], { env, stdio: 'ignore' });
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', packageName], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (!isInstalled()) throw new Error(`${packageName} was installed, but brought no ${what}.`);
}

const isThere = (command: string): boolean =>
  spawnSync(command, ['--version'], { stdio: 'ignore' }).error === undefined;
