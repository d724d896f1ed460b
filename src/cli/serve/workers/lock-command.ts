// How `postern lock` is typed here: only the main process knows how it was started.
import { describeCommand } from '../../command/invocation.ts';

const VARIABLE = 'POSTERN_WORKER_LOCK_COMMAND';

/** For the environment of a new worker. */
export const writeLockCommand = (): Readonly<Record<string, string>> => ({
  [VARIABLE]: describeCommand(['lock'], process),
});

export const readLockCommand = (
  env: Readonly<Record<string, string | undefined>>,
): string | undefined => env[VARIABLE];
