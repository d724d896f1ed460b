// postern.lock beside the configuration file.
import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { getErrorCode } from '../../core/errors/error-code.ts';
import {
  isEmptyLock,
  LOCK_FILE_NAME,
  type LockFile,
  LockFileError,
  parseLockFile,
  writeLockFile,
} from '../../features/upstreams/lock/lock-file.ts';

export const findLockPath = (configPath: string): string =>
  join(dirname(configPath), LOCK_FILE_NAME);

export type LockOnDisk =
  | { readonly kind: 'none' }
  /** `{}`: that there is no lock is meant. */
  | { readonly kind: 'empty' }
  | { readonly kind: 'lock'; readonly file: LockFile };

/** @throws LockFileError for one that cannot be used. */
export function readLockOnDisk(path: string): LockOnDisk {
  try {
    const text = readFileSync(path, 'utf8');
    return isEmptyLock(text) ? { kind: 'empty' } : { kind: 'lock', file: parseLockFile(text) };
  } catch (error) {
    const code = getErrorCode(error);
    if (code === 'ENOENT') return { kind: 'none' };
    // Without it everything would be approved.
    throw error instanceof LockFileError
      ? error
      : new LockFileError(`${path} cannot be read (${code ?? String(error)}).`);
  }
}

/** Undefined where nothing is locked. @throws LockFileError for one that cannot be used. */
export function readLockFile(path: string): LockFile | undefined {
  const lock = readLockOnDisk(path);
  return lock.kind === 'lock' ? lock.file : undefined;
}

/** Whole or not at all: a gateway may read it at the same moment. */
export async function saveLockFile(path: string, file: LockFile): Promise<void> {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, writeLockFile(file));
  await rename(draft, path);
}
