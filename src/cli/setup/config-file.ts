// Opens and follows the configuration file (--config FILE, POSTERN_CONFIG) of a serving process.

import { closeSync, openSync } from 'node:fs';
import type { IdlePattern } from '../../catalog/idle-patterns.ts';
import type { Config } from '../../config/config.ts';
import { formatProblem } from '../../config/problem.ts';
import type { IsIdle } from '../../control/compare-protections.ts';
import type { Setup } from '../../gateway/configuration/gateway-file.ts';
import { LOCK_FILE_NAME, type StoredLock } from '../../lock/lock-file.ts';
import { createLog, type Log } from '../../platform/log.ts';
import { logEnvironment } from '../command-line/env-file.ts';
import { StartError } from '../command-line/errors.ts';
import type { EnvFile } from '../command-line/read-input.ts';
import type { Protection } from './protection.ts';
import type { ReadSetup } from './read-setup.ts';
import { computeStamp, type StampedFile, watchFile } from './watch-file.ts';

export type ConfigFile = NonNullable<Awaited<ReturnType<typeof openConfigFile>>>;

/**
 * Undefined if no file is configured. `served`: the protection that the other workers serve.
 *
 * @throws StartError with all problems of the file.
 */
export async function openConfigFile(config: Config, served?: Protection) {
  const { configFile: path } = config.server;
  if (path === undefined) return undefined;
  // The parsers are loaded only if there is a file.
  const { readSetup } = await import('./read-setup.ts');
  const { takeStamp, waitUntilSettled } = await import('./watch-file.ts');
  const { findLockObstacle, findLockPath, readLockFile, saveLockFile } = await import(
    './lock-file-on-disk.ts'
  );
  // The other workers serve an earlier version, and the file may be half-written.
  if (served !== undefined) await waitUntilSettled(path);
  const lockPath = findLockPath(path);
  const watched = { file: takeStamp(path), lock: takeStamp(lockPath) };
  const { findProgramUserProblems, warnOfOwnUser } = await import('./program-users.ts');
  const read = async (): Promise<ReadSetup> => {
    const parsed = await readSetup(path, config, process.env);
    if (parsed.kind === 'problems') return parsed;
    const { servers } = parsed.setup.file;
    const problems = await findProgramUserProblems(servers);
    if (problems.length > 0)
      return {
        kind: 'problems',
        problems: problems.map((problem) => ({ ...problem, place: path })),
        isWhole: parsed.isWhole,
      };
    return { ...parsed, warnings: [...parsed.warnings, ...warnOfOwnUser(servers, config)] };
  };
  const parsed = await read();
  if (parsed.kind === 'problems') throw new StartError(...parsed.problems.map(formatProblem));
  const { setup, warnings } = parsed;
  const { findLosses } = await import('./protection.ts');
  const losses = served === undefined ? [] : findLosses(served, setup);
  if (losses.length > 0) throw new StartError(...losses.map((loss) => `${path}: ${loss}`));
  let following: ReturnType<typeof followConfigFile> | undefined;
  return {
    path,
    setup,
    /** For the log. */
    warnings,
    /** The lock beside the file. While the file is followed, a saved lock is loaded. */
    storedLock: {
      path: lockPath,
      read: () => readLockFile(lockPath),
      findObstacle: () => findLockObstacle(lockPath),
      async save(file) {
        await saveLockFile(lockPath, file);
        return (await following?.loadLock()) === true;
      },
    } satisfies StoredLock,
    /**
     * Reloads the file when it or its lock changes, and at SIGHUP, until the returned function is called. A file with
     * problems is not loaded: the log describes them.
     */
    follow(actions: FollowActions) {
      following = followConfigFile(setup, watched, read, actions);
      return following.stop;
    },
  };
}

/** Creates the log of a process that serves, or starts workers. The first lines describe the files that were read. */
export function openServiceLog(
  { server }: Config,
  envFile: EnvFile | undefined,
  configFile: ConfigFile | undefined,
): Log {
  const log = createLog(server.logLevel, { format: server.logFormat });
  logEnvironment(log, envFile);
  if (configFile === undefined) return log;
  const { path, setup, warnings } = configFile;
  for (const warning of warnings) log.warn(warning);
  log.info('Read the configuration file.', { path, ...summarizeSetup(setup) });
  return log;
}

/** Actions for a process that follows the file. */
interface FollowActions {
  /**
   * Makes the gateway serve the setup. `changed`: the files changed since the last time; empty after a manual reload.
   */
  readonly load: (setup: Setup, changed: readonly string[]) => Promise<void>;
  /** Patterns that would match none of the servers' listed items with this setup. */
  findIdlePatterns(setup: Setup): readonly IdlePattern[];
  /** Called before the process ends because its terminal was closed. */
  readonly close: () => Promise<void>;
  readonly log: Log;
}

/** Reloads the file when it or its lock changes, and at SIGHUP, until stopped. `first` is the setup served initially. */
export function followConfigFile(
  first: Setup,
  watched: Readonly<Record<'file' | 'lock', StampedFile>>,
  read: () => Promise<ReadSetup>,
  { load, findIdlePatterns, close, log }: FollowActions,
) {
  const { path } = watched.file;
  let served = first;
  let loading: Promise<boolean> | undefined;
  let isOutdated = false;
  let hasEnded = false;
  /** Files changed since the last load. */
  const changed = new Set<string>();

  /** Serializes reloads; changes during a reload cause one more. Resolves to whether the last one was loaded. */
  function reload() {
    isOutdated = true;
    loading ??= loadWhileOutdated();
    return loading;
  }

  async function loadWhileOutdated() {
    let isLoaded = false;
    while (isOutdated && !hasEnded) {
      isOutdated = false;
      isLoaded = await loadOnce().catch((cause: unknown) => {
        log.error(
          'The configuration file could not be loaded. The running configuration may be incomplete: restart the gateway.',
          { path, cause },
        );
        return false;
      });
    }
    loading = undefined;
    return isLoaded;
  }

  async function loadOnce() {
    const { describeProtection, findLosses } = await import('./protection.ts');
    const lockStamp = computeStamp(watched.lock.path);
    const parsed = await read();
    if (hasEnded) return false;
    if (!parsed.isWhole && !fileWatch.isSettled()) {
      log.info(
        'The configuration file is being written. It is loaded once it has not changed for a second.',
        { path },
      );
      return false;
    }
    if (parsed.kind === 'problems') {
      log.error(
        'The configuration file has problems, so the running configuration is kept. Once corrected, the file is loaded automatically.',
        { path, problems: parsed.problems.map(formatProblem) },
      );
      return false;
    }
    const losses = findLosses(
      describeProtection(served),
      parsed.setup,
      createIsIdle(served),
      createIsIdle(parsed.setup),
    );
    if (losses.length > 0) {
      log.error(
        'The configuration file was not loaded, because it has lost protections. The running configuration is kept until the next start, which loads the file as it is.',
        { path, lost: losses },
      );
      return false;
    }
    const files = [...changed];
    changed.clear();
    await load(parsed.setup, files);
    lockWatch.skip(lockStamp);
    served = parsed.setup;
    for (const warning of parsed.warnings) log.warn(warning);
    log.info('Reloaded the configuration file.', { path, ...summarizeSetup(parsed.setup) });
    return true;
  }

  function createIsIdle(setup: Setup): IsIdle {
    const idle = findIdlePatterns(setup);
    return (subject, pattern) =>
      idle.some((one) => one.subject === subject && one.pattern === pattern);
  }

  const watch = (file: StampedFile) =>
    watchFile(file, () => {
      changed.add(file.path);
      void reload();
    });
  const fileWatch = watch(watched.file);
  const lockWatch = watch(watched.lock);
  onHangUp(() => void reload(), close);
  return {
    /** Called after the lock was written: reloads immediately. False if that failed; the log says why. */
    loadLock() {
      changed.add(watched.lock.path);
      return reload();
    },
    stop() {
      hasEnded = true;
      fileWatch.stop();
      lockWatch.stop();
    },
  };
}

/**
 * Makes SIGHUP reload. If it was sent because the process's terminal was closed, the process still ends with the signal, but
 * closes first.
 */
export function onHangUp(reload: () => void, close: () => Promise<void>): void {
  const isInTerminal = process.stdin.isTTY === true;

  async function handleSignal() {
    if (!isInTerminal || hasTerminal()) return reload();
    process.off('SIGHUP', handleSignal);
    // The terminal is gone, so errors cannot be shown.
    await close().catch(() => {});
    // Not process.exit: Node.js 20 aborts there if its terminal is gone.
    process.kill(process.pid, 'SIGHUP');
  }

  process.on('SIGHUP', handleSignal);
}

/** True while the process still has its controlling terminal. */
function hasTerminal() {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

// A summary of the configuration file, and the protections that a reload must not lose: a truncated file or a deleted lock would
// give all users access to everything.

/** For the log. */
const summarizeSetup = ({
  file: { servers, rules, clients = [], guards = [], meansNoRules },
  lock,
  meansNoLock,
}: Setup) => ({
  servers: servers.map(({ name }) => name),
  rules: meansNoRules ? 'everyone' : rules.length,
  ...(clients.length > 0 && { clients: clients.length }),
  ...(guards.length > 0 && { guards: guards.map(({ name }) => name) }),
  ...(lock !== undefined && { lock: LOCK_FILE_NAME }),
  ...(meansNoLock && { lock: 'none' }),
});
