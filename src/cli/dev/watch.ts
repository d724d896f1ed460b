// Runs postern dev in a child process, and restarts it when one of its files changes. Node's --watch does not suffice: on Linux
// it loses a file that an editor replaces with a new one, as many editors do.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Texts } from '../command-line/invocation.ts';
import { endWithNpx } from '../command-line/process-end.ts';
import { findSetting } from '../command-line/read-input.ts';
import { findLockPath } from '../setup/lock-file-on-disk.ts';
import { computeStamp } from '../setup/watch-file.ts';

const LOOK_EVERY_MS = 250;
/** Timeout for the shutdown: a client's open stream would delay the next start. */
const SHUTDOWN_MS = 2000;

/** If the first start fails, this process ends as well; later it waits for the next change. */
export async function watch(options: Texts<'catalog' | 'config'>): Promise<void> {
  endWithNpx();
  let child: ChildProcess | undefined;
  let hasServed = false;
  let changed: readonly string[] = [];
  const isDown = () => child?.exitCode !== null || child.signalCode !== null;

  function end(signal: NodeJS.Signals) {
    if (isDown()) process.exit(0);
    child?.removeAllListeners('exit').once('exit', (code) => process.exit(code ?? 0));
    child?.kill(signal);
  }
  process.on('SIGTERM', end);
  process.on('SIGINT', end);

  for (;;) {
    // Stamps are taken before startup, so that a change during loading counts. The list is rebuilt: .env may name other files by
    // now.
    const files = findFiles(options);
    const before = takeStamps(files);
    // Runs the same command line in this terminal. The IPC channel lets the child notice that this process was killed.
    child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, [VARIABLE]: changed.join(', ') },
    });
    child.once('message', () => {
      hasServed = true;
    });
    child.once('exit', (code, signal) => {
      if (!hasServed) process.exit(code ?? 1);
      console.error(
        `Ended ${signal ? `by ${signal}` : `with exit code ${code}`}. Waiting for a change.`,
      );
    });
    const found = await waitForChange(files, before, isDown);
    const more = found.length - MAX_NAMED;
    // The next process gets them in one variable, whose size is limited.
    changed = more > 0 ? [...found.slice(0, MAX_NAMED), `${more} more files`] : found;
    if (isDown()) continue;
    const exit = once(child.removeAllListeners('exit'), 'exit');
    child.kill('SIGTERM');
    // A second signal ends the process immediately (process-end.ts).
    const timer = setTimeout(() => child?.kill('SIGTERM'), SHUTDOWN_MS);
    await exit;
    clearTimeout(timer);
  }
}

const MAX_NAMED = 10;

// The side of the serving process.

/** The changed files that caused this start; empty for the first one. */
const VARIABLE = 'POSTERN_DEV_CHANGED';

export const isWatched = (): boolean => process.env[VARIABLE] !== undefined;

/** The changed files that caused this start. The process ends together with the watcher. */
export function joinWatcher(): readonly string[] {
  const changed = process.env[VARIABLE] ?? '';
  delete process.env[VARIABLE];
  // Otherwise an orphaned process would hold the port unnoticed.
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel?.unref();
  return changed === '' ? [] : changed.split(', ');
}

/** Reports that startup succeeded: later failures wait for a change. */
export const tellWatcher = (): void =>
  void process.send?.('serving', undefined, undefined, () => {});

// The watched files, and changes to them.

type WatchedFiles = ReturnType<typeof findFiles>;

/** Finds the files that the command line, the environment and .env name now. */
function findFiles(options: Texts<'catalog' | 'config'>) {
  const catalog = options.catalog ?? findSetting('POSTERN_CATALOG');
  const config = options.config ?? findSetting('POSTERN_CONFIG');
  return {
    /** The folder of the catalogue, with all code below it; undefined for the built-in catalogue. */
    folder: catalog && dirname(resolve(catalog)),
    /** Excluded: the store changes all the time. */
    dataDir: resolve(findSetting('DATA_DIR') ?? 'data'),
    envFile: resolve('.env'),
    /** Reloaded by the serving process itself. */
    configFiles: config === undefined ? [] : [resolve(config), findLockPath(resolve(config))],
  };
}

type Stamps = ReadonlyMap<string, string>;

const takeStamps = ({ folder, dataDir, envFile, configFiles }: WatchedFiles): Stamps => {
  const code = folder === undefined ? [] : listCode(folder, dataDir);
  return new Map([...code, envFile, ...configFiles].map((path) => [path, computeStamp(path)]));
};

/** Code, by file extension: a tool may write other files into its folder. */
const CODE = /\.([cm]?[jt]sx?|json)$|^SKILL\.md$/;

/** All code below the folder, except packages, hidden folders and the store. */
function listCode(folder: string, dataDir: string): readonly string[] {
  return listEntries(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return CODE.test(entry.name) ? [path] : [];
    return path === dataDir || LEFT_OUT.test(entry.name) ? [] : listCode(path, dataDir);
  });
}

const LEFT_OUT = /^(node_modules|\..+)$/;

/** Empty if the folder does not exist. */
function listEntries(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/**
 * Resolves to the changed files, relative to this folder, once two scans in a row are equal: editors and git write several files.
 */
async function waitForChange(files: WatchedFiles, before: Stamps, isDown: () => boolean) {
  for (let [last, tookMs] = [before, 0]; ; ) {
    // Scanning a folder with a lot of files takes time.
    await pause(Math.max(LOOK_EVERY_MS, 20 * tookMs));
    const startedAt = performance.now();
    const now = takeStamps(files);
    tookMs = performance.now() - startedAt;
    const changed = listChanged(before, now).filter(
      (path) => isDown() || !files.configFiles.includes(path),
    );
    if (changed.length > 0 && listChanged(last, now).length === 0)
      return changed.map((path) => relative(process.cwd(), path));
    last = now;
  }
}

const listChanged = (before: Stamps, now: Stamps) =>
  [...new Set([...before.keys(), ...now.keys()])].filter(
    (path) => before.get(path) !== now.get(path),
  );
