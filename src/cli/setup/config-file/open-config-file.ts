// --config FILE, POSTERN_CONFIG: the configuration file of a process that serves.

import type { Config } from '../../../config/config.ts';
import { formatProblem } from '../../../config/problem.ts';
import type { GatewaySetup } from '../../../gateway/configuration/gateway-file.ts';
import type { StoredLock } from '../../../lock/lock-file.ts';
import type { Log } from '../../../platform/log.ts';
import { StartError } from '../../command/errors.ts';
import { findLosses, type Protection, summarizeSetup } from './find-losses.ts';
import type { FollowActions, Following } from './follow-config-file.ts';
import type { ReadSetup } from './read-setup.ts';

export interface ConfigFile {
  readonly path: string;
  readonly setup: GatewaySetup;
  /** For the log. */
  readonly warnings: readonly string[];
  /** What is saved is loaded while the file is followed. */
  readonly storedLock: StoredLock;
  /**
   * Loads the file anew when it or its lock changes, and at SIGHUP, until the result is called. A file with problems
   * is not loaded: the log says what is wrong with it.
   */
  follow(actions: FollowActions): () => void;
}

/**
 * Undefined where no file is named. `served`: by the processes among which this one takes its place.
 *
 * @throws StartError with all that is wrong with the file.
 */
export async function openConfigFile(
  config: Config,
  served?: Protection,
): Promise<ConfigFile | undefined> {
  const { configFile: path } = config.server;
  if (path === undefined) return undefined;
  // The parsers are loaded only where there is something to parse.
  const { readSetup } = await import('./read-setup.ts');
  const { takeStamp, waitUntilSettled } = await import('./watch-file.ts');
  const { followConfigFile } = await import('./follow-config-file.ts');
  const { findLockObstacle, findLockPath, readLockFile, saveLockFile } = await import(
    '../lock-file-on-disk.ts'
  );
  // The others serve meanwhile, by what they read before somebody began to write.
  if (served !== undefined) await waitUntilSettled(path);
  const lockPath = findLockPath(path);
  const watched = { file: takeStamp(path), lock: takeStamp(lockPath) };
  const { findProgramUserProblems, warnOfOwnUser } = await import('../program-users.ts');
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
  if (parsed.kind === 'problems') throw new StartError(parsed.problems.map(formatProblem));
  const { setup, warnings } = parsed;
  const losses = served === undefined ? [] : findLosses(served, setup);
  if (losses.length > 0) throw new StartError(losses.map((loss) => `${path}: ${loss}`));
  let following: Following | undefined;
  return {
    path,
    setup,
    warnings,
    storedLock: {
      path: lockPath,
      read: () => readLockFile(lockPath),
      findObstacle: () => findLockObstacle(lockPath),
      async save(file) {
        await saveLockFile(lockPath, file);
        return (await following?.loadLock()) === true;
      },
    },
    follow(actions) {
      following = followConfigFile({ setup, watched, read, ...actions });
      return following.stop;
    },
  };
}

/** What the log says of the file at start. */
export function logConfigFile(log: Log, { path, setup, warnings }: ConfigFile): void {
  for (const warning of warnings) log.warn(warning);
  log.info('Read the configuration file.', { path, ...summarizeSetup(setup) });
}
