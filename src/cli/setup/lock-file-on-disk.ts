// postern.lock beside the configuration file.
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
import { getErrorCode } from '../../platform/error-code.ts';

export const findLockPath = (configPath: string): string =>
  join(dirname(configPath), LOCK_FILE_NAME);

export type LockOnDisk = ReturnType<typeof readLockOnDisk>;

/** @throws LockFileError for one that cannot be used. */
export function readLockOnDisk(path: string) {
  try {
    const text = readFileSync(path, 'utf8');
    // `{}`: that there is no lock is meant.
    if (isEmptyLock(text)) return { kind: 'empty' as const };
    return { kind: 'lock' as const, file: parseLockFile(text) };
  } catch (error) {
    const code = getErrorCode(error);
    if (code === 'ENOENT') return { kind: 'none' as const };
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

/**
 * Whole or not at all: a gateway may read it at the same moment, and the command write it in another container, with
 * the same process ID. The draft is a new file, never what a link leads to. Where the path is a link, the file is written that it
 * leads to; its mode stays, and its owner where this user may give files away.
 *
 * @throws Error of the system
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

/** Why it cannot be written, such as `EACCES`; undefined where nothing is known that would keep it from being. */
export async function findLockObstacle(path: string): Promise<string | undefined> {
  try {
    const target = await findTarget(path);
    await access(target, constants.W_OK);
    // It is replaced by another file.
    await access(dirname(target), constants.W_OK);
    return undefined;
  } catch (error) {
    return getErrorCode(error) ?? String(error);
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
