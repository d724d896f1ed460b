// Reads and writes postern.lock, next to the configuration file.
import { randomUUID } from 'node:crypto';
import { constants, readFileSync } from 'node:fs';
import { access, chmod, chown, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  isEmptyLock,
  LOCK_FILE_NAME,
  type LockFile,
  LockFileError,
  parseLockFile,
  writeLockFile,
} from '../../lock/lock-file.ts';
import { describeCode, getErrorCode } from '../../platform/error-code.ts';

export const findLockPath = (configPath: string): string =>
  join(dirname(configPath), LOCK_FILE_NAME);

export type LockOnDisk = ReturnType<typeof readLockOnDisk>;

/** @throws LockFileError if it is unusable. */
export function readLockOnDisk(path: string) {
  try {
    const text = readFileSync(path, 'utf8');
    // `{}` turns the lock off explicitly.
    if (isEmptyLock(text)) return { kind: 'empty' as const };
    return { kind: 'lock' as const, file: parseLockFile(text) };
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT') return { kind: 'none' as const };
    // Ignoring the error would approve everything.
    throw error instanceof LockFileError
      ? error
      : new LockFileError(`${path} cannot be read (${describeCode(error)}).`);
  }
}

/** Undefined without a lock. @throws LockFileError if it is unusable. */
export function readLockFile(path: string): LockFile | undefined {
  const lock = readLockOnDisk(path);
  return lock.kind === 'lock' ? lock.file : undefined;
}

/**
 * Writes atomically: a gateway may read the file at the same moment, and a command in another container, with the same process
 * ID, may write it. The draft is always a new file, never the target of a link. If the path is a link, its target is replaced;
 * the mode is kept, and the owner if this user may change it.
 *
 * @throws Error from the system
 */
export async function saveLockFile(path: string, file: LockFile): Promise<void> {
  const target = await findTarget(path);
  const former = await stat(target).catch(() => undefined);
  const draft = `${target}.${randomUUID()}`;
  try {
    await writeFile(draft, writeLockFile(file), {
      flush: true,
      flag: 'wx',
      ...(former && { mode: former.mode }),
    });
    if (former !== undefined) {
      await chown(draft, former.uid, former.gid).catch(() => {});
      await chmod(draft, former.mode);
    }
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {});
    throw error;
  }
}

/** The reason why it cannot be written, such as `EACCES`; undefined if none is known. */
export async function findLockObstacle(path: string): Promise<string | undefined> {
  try {
    const target = await findTarget(path);
    await access(target, constants.W_OK);
    // The folder must be writable, too: the file is replaced by a new one.
    await access(dirname(target), constants.W_OK);
    return undefined;
  } catch (error) {
    return describeCode(error);
  }
}

async function findTarget(path: string) {
  try {
    return await realpath(path);
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT') return path;
    throw error;
  }
}
