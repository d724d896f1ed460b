// --config FILE, POSTERN_CONFIG: the configuration file of a process that serves.

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
 * Undefined where no file is named. `served`: by the processes among which this one takes its place.
 *
 * @throws StartError with all that is wrong with the file.
 */
export async function openConfigFile(config: Config, served?: Protection) {
  const { configFile: path } = config.server;
  if (path === undefined) return undefined;
  // The parsers are loaded only where there is something to parse.
  const { readSetup } = await import('./read-setup.ts');
  const { takeStamp, waitUntilSettled } = await import('./watch-file.ts');
  const { findLockObstacle, findLockPath, readLockFile, saveLockFile } = await import(
    './lock-file-on-disk.ts'
  );
  // The others serve meanwhile, by what they read before somebody began to write.
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
    /** The lock beside the file. What is saved is loaded while the file is followed. */
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
     * Loads the file anew when it or its lock changes, and at SIGHUP, until the result is called. A file with problems
     * is not loaded: the log says what is wrong with it.
     */
    follow(actions: FollowActions) {
      following = followConfigFile(setup, watched, read, actions);
      return following.stop;
    },
  };
}

/** The log of a process that serves, or starts those that do. It begins with what was read. */
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

/** Actions of a process that follows the file. */
interface FollowActions {
  /**
   * From now on the gateway is to serve what the setup says. `changed`: the files that were changed since the last time;
   * none where somebody asked for it.
   */
  readonly load: (setup: Setup, changed: readonly string[]) => Promise<void>;
  /** Patterns that fit nothing of what servers have listed, were this the setup. */
  findIdlePatterns(setup: Setup): readonly IdlePattern[];
  /** Before the process ends because its terminal was closed. */
  readonly close: () => Promise<void>;
  readonly log: Log;
}

/** Loads the file anew when it or its lock changes, and at SIGHUP, until it is stopped. `first` is what is served. */
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
  /** Since it was last loaded. */
  const changed = new Set<string>();

  /** One after the other; of changes meanwhile the last one counts. Resolves to whether that was loaded. */
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
    /** The lock was written: loads both at once. False where they were not loaded, and the log says why. */
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
 * From now on SIGHUP reloads. Where it came because the terminal was closed in which this process was
 * started, the process ends by it, as it would without a listener, but closes before.
 */
export function onHangUp(reload: () => void, close: () => Promise<void>): void {
  const isInTerminal = process.stdin.isTTY === true;

  async function handleSignal() {
    if (!isInTerminal || hasTerminal()) return reload();
    process.off('SIGHUP', handleSignal);
    // There is nobody to tell.
    await close().catch(() => {});
    // Not by process.exit: Node.js 20 aborts there when it finds its terminal gone.
    process.kill(process.pid, 'SIGHUP');
  }

  process.on('SIGHUP', handleSignal);
}

/** True while the process still has the terminal that controls it. */
function hasTerminal() {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

// A configuration file in a few words, and what it must not lose while it is loaded anew: a file that
// was cut, or a lock that was removed, would give everybody everything.

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
