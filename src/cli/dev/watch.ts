// postern dev in a process of its own, and a new one after each change of what it is made of. Node's --watch cannot do it: on
// Linux it loses a file that an editor replaces by a new one, as many do.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Dirent, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Texts } from '../command-line/invocation.ts';
import { endWithNpx } from '../command-line/process-end.ts';
import { findSetting } from '../command-line/read-input.ts';
import { findLockPath } from '../setup/lock-file-on-disk.ts';
import { computeStamp } from '../setup/watch-file.ts';

const LOOK_EVERY_MS = 250;
/** A stream that a client keeps open would delay the next start. */
const SHUTDOWN_MS = 2000;

/** If the first start fails, this process ends as well. Later, it waits for the next change. */
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
    // Before it starts: what is changed while it loads is news. Found anew: .env may name other files by now.
    const files = findFiles(options);
    const before = takeStamps(files);
    // This command line once more, in this terminal. Over the channel it notices when this process is killed.
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
    // They go to the next process in one variable, which has an end.
    changed = more > 0 ? [...found.slice(0, MAX_NAMED), `${more} more files`] : found;
    if (isDown()) continue;
    const exit = once(child.removeAllListeners('exit'), 'exit');
    child.kill('SIGTERM');
    // A second signal ends it at once (process-end.ts).
    const timer = setTimeout(() => child?.kill('SIGTERM'), SHUTDOWN_MS);
    await exit;
    clearTimeout(timer);
  }
}

const MAX_NAMED = 10;

// In the process that serves.

/** The changed files because of which a process was started; none for the first one. */
const VARIABLE = 'POSTERN_DEV_CHANGED';

export const isWatched = (): boolean => process.env[VARIABLE] !== undefined;

/** The changed files because of which this process was started. It ends with the one that watches it. */
export function joinWatcher(): readonly string[] {
  const changed = process.env[VARIABLE] ?? '';
  delete process.env[VARIABLE];
  // The port would stay taken, and nobody would know by whom.
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel?.unref();
  return changed === '' ? [] : changed.split(', ');
}

/** From now on what fails is no failed start. */
export const tellWatcher = (): void =>
  void process.send?.('serving', undefined, undefined, () => {});

// Which files it is made of, and which of them have changed.

type WatchedFiles = ReturnType<typeof findFiles>;

/** As the command line, the environment and .env say at this moment. */
function findFiles(options: Texts<'catalog' | 'config'>) {
  const catalog = options.catalog ?? findSetting('POSTERN_CATALOG');
  const config = options.config ?? findSetting('POSTERN_CONFIG');
  return {
    /** With code, and all below it; undefined where only what is built in is served. */
    folder: catalog && dirname(resolve(catalog)),
    /** The store changes all the time. */
    dataDir: resolve(findSetting('DATA_DIR') ?? 'data'),
    envFile: resolve('.env'),
    /** The process that serves follows these itself. */
    configFiles: config === undefined ? [] : [resolve(config), findLockPath(resolve(config))],
  };
}

type Stamps = ReadonlyMap<string, string>;

const takeStamps = ({ folder, dataDir, envFile, configFiles }: WatchedFiles): Stamps => {
  const code = folder === undefined ? [] : listCode(folder, dataDir);
  return new Map([...code, envFile, ...configFiles].map((path) => [path, computeStamp(path)]));
};

/** Told by the ending of the name: a tool may write other files into its own folder. */
const CODE = /\.([cm]?[jt]sx?|json)$|^SKILL\.md$/;

/** Below the folder not in packages, hidden folders and the store. */
function listCode(folder: string, dataDir: string): readonly string[] {
  return listEntries(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return CODE.test(entry.name) ? [path] : [];
    return path === dataDir || LEFT_OUT.test(entry.name) ? [] : listCode(path, dataDir);
  });
}

const LEFT_OUT = /^(node_modules|\..+)$/;

/** Empty where the folder is gone. */
function listEntries(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Resolves to what has changed, from this folder, once two looks in a row saw the same: editors and git write several files. */
async function waitForChange(
  files: WatchedFiles,
  before: Stamps,
  isDown: () => boolean,
): Promise<readonly string[]> {
  for (let [last, tookMs] = [before, 0]; ; ) {
    // A look at a folder with very many files takes its time.
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

const listChanged = (before: Stamps, now: Stamps): readonly string[] =>
  [...new Set([...before.keys(), ...now.keys()])].filter(
    (path) => before.get(path) !== now.get(path),
  );
