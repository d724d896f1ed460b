// What a configuration file puts behind the gateway: the file itself, and the lock beside it.
import type { Config } from '../../core/config/config.ts';
import type { GatewayFile } from '../../core/gateway-file/gateway-file.ts';
import { findAuthProblems } from '../../features/upstreams/credentials/check-auth.ts';
import { createLock, type Lock } from '../../features/upstreams/lock/lock.ts';
import { LockFileError } from '../../features/upstreams/lock/lock-file.ts';
import { findLockPath, readLockFile } from '../lock/lock-file-on-disk.ts';
import { readConfigFile } from './read-config-file.ts';

export interface Setup {
  readonly file: GatewayFile;
  /** Undefined where there is none: everything is approved. */
  readonly lock: Lock | undefined;
}

export type ReadSetup =
  | {
      readonly kind: 'parsed';
      readonly setup: Setup;
      /** For the log: what works, but may not be what was meant. */
      readonly warnings: readonly string[];
    }
  | { readonly kind: 'problems'; readonly problems: readonly string[] };

/** Never rejects. */
export async function readSetup(path: string, config: Config): Promise<ReadSetup> {
  const parsed = await readConfigFile(path, config);
  const lock = readLock(path);
  const problems = [
    ...(parsed.kind === 'problems'
      ? parsed.problems
      : findAuthProblems(parsed.file.servers, config).map((problem) => `${path}: ${problem}`)),
    ...('problem' in lock ? [lock.problem] : []),
  ];
  if (parsed.kind === 'problems' || 'problem' in lock || problems.length > 0) {
    return { kind: 'problems', problems };
  }
  const { file, warnings } = parsed;
  return { kind: 'parsed', setup: { file, lock: lock.lock }, warnings };
}

type LockOnDisk = { readonly lock: Lock | undefined } | { readonly problem: string };

/** One that cannot be read must not count as none: that would approve everything. */
function readLock(path: string): LockOnDisk {
  try {
    const file = readLockFile(findLockPath(path));
    return { lock: file && createLock(file) };
  } catch (error) {
    if (error instanceof LockFileError) return { problem: error.message };
    throw error;
  }
}
