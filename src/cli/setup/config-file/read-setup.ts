// What a configuration file puts behind the gateway: the file itself, and the lock beside it.
import type { Config } from '../../../config/config.ts';
import type { GatewayFile } from '../../../config/file/gateway-file.ts';
import type { Env } from '../../../config/read-env.ts';
import { findAuthProblems } from '../../../upstreams/credentials/check-auth.ts';
import { createLock, type Lock } from '../../../upstreams/lock/lock.ts';
import { LockFileError } from '../../../upstreams/lock/lock-file.ts';
import { findLockPath, type LockOnDisk, readLockOnDisk } from '../lock-file-on-disk.ts';
import { readConfigFile } from './read-config-file.ts';
import { warnOfMissingRules } from './warn-of-missing-rules.ts';

export interface Setup {
  readonly file: GatewayFile;
  /** Undefined where there is none: everything is approved. */
  readonly lock: Lock | undefined;
  /** The lock file is empty (`{}`): that there is no lock is meant. */
  readonly meansNoLock: boolean;
}

export type ReadSetup = (
  | {
      readonly kind: 'parsed';
      readonly setup: Setup;
      /** For the log: what works, but may not be what was meant. */
      readonly warnings: readonly string[];
    }
  | { readonly kind: 'problems'; readonly problems: readonly string[] }
) & {
  /** Whether the text of the file shows that nothing of it is missing. */
  readonly isWhole: boolean;
};

/** Never rejects. */
export async function readSetup(path: string, config: Config, env: Env): Promise<ReadSetup> {
  const parsed = await readConfigFile(path, config, env);
  const { isWhole } = parsed;
  const lock = readLock(path);
  const problems = [
    ...(parsed.kind === 'problems'
      ? parsed.problems
      : findAuthProblems(parsed.file.servers, config).map((problem) => `${path}: ${problem}`)),
    ...('problem' in lock ? [lock.problem] : []),
  ];
  if (parsed.kind === 'problems' || 'problem' in lock || problems.length > 0) {
    return { kind: 'problems', problems, isWhole };
  }
  const { file, warnings } = parsed;
  const setup: Setup = {
    file,
    lock: lock.kind === 'lock' ? createLock(lock.file) : undefined,
    meansNoLock: lock.kind === 'empty',
  };
  return {
    kind: 'parsed',
    setup,
    warnings: [
      ...warnings,
      ...warnOfMissingRules(file, config).map((warning) => `${path}: ${warning}`),
    ],
    isWhole,
  };
}

/** One that cannot be read must not count as none: that would approve everything. */
function readLock(path: string): LockOnDisk | { readonly problem: string } {
  try {
    return readLockOnDisk(findLockPath(path));
  } catch (error) {
    if (error instanceof LockFileError) return { problem: error.message };
    throw error;
  }
}
