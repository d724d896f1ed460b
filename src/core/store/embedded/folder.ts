// DATA_DIR: made, locked and opened.
import { chmod, mkdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { getErrorCode } from '../../errors/error-code.ts';
import { describeCause } from '../../log.ts';
import { StoreUnavailable } from '../store.ts';
import { checkStoreFile } from './check-file.ts';
import { DataDirError, lockFolder } from './lock.ts';

export interface DataFolder {
  readonly root: RootDatabase;
  /** Where the database lies. */
  readonly file: string;
  /** Atomic; resolves when it is on disk. Writes of many requests share one commit. */
  write<Result>(change: () => Result): Promise<Result>;
  /**
   * To be called before a read outside `write`: lmdb does not survive one while it closes.
   *
   * @throws StoreUnavailable once `close` was called.
   */
  ensureOpen(): void;
  close(): Promise<void>;
}

/** @throws DataDirError when the folder is in use or cannot be used. */
export async function openDataFolder(dataDir: string): Promise<DataFolder> {
  const path = resolve(dataDir);
  let unlock = async () => {};
  try {
    await makeFolder(path);
    unlock = await lockFolder(path);
    const file = join(path, 'store.mdb');
    checkStoreFile(file);
    const root = open({ path: file, noSubdir: true, mapSize: MAP_BYTES, ...DURABLE });
    // Whatever the folder allows: sessions and clients are nobody else's to read.
    await Promise.all([file, `${file}-lock`].map((name) => chmod(name, 0o600)));
    let isClosing = false;
    const ensureOpen = () => {
      if (isClosing) throw new StoreUnavailable('The store is closed');
    };
    return {
      root,
      file,
      async write(change) {
        // lmdb would throw, and not by its promise.
        ensureOpen();
        return root.transaction(change).catch(rejectCommit);
      },
      ensureOpen,
      async close() {
        isClosing = true;
        await root.close();
        await unlock();
      },
    };
  } catch (cause) {
    await unlock();
    if (cause instanceof DataDirError) throw cause;
    throw new DataDirError(
      `DATA_DIR: the folder ${path} cannot be used: ${describeCause(cause)}. Set DATA_DIR to a folder that this process may write to.`,
    );
  }
}

/** Step by step: with `recursive`, Node never comes back from a place that takes no folders. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (getErrorCode(error) === 'EEXIST' && (await stat(path)).isDirectory()) return;
    if (getErrorCode(error) !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await mkdir(path, { mode: 0o700 });
  }
}

/**
 * Address space, not memory: room to grow. Each time a store outgrows its map, lmdb makes one of twice
 * the size and keeps the old one, and pages in both count as memory of this process twice.
 */
const MAP_BYTES = 2 ** 34;

/**
 * A commit is over when it is on disk. Without batches per turn of the event loop: lmdb drops the
 * promise of such a batch, and on a full disk its rejection would end the process.
 */
const DURABLE = { overlappingSync: false, eventTurnBatching: false };

/** lmdb says why a commit failed by a second promise, which must not stay unhandled either. */
async function rejectCommit(error: unknown): Promise<never> {
  if (!(error instanceof Error && 'commitError' in error)) throw error;
  const cause = await Promise.resolve(error.commitError).catch((reason: unknown) => reason);
  throw new StoreUnavailable('DATA_DIR cannot be written; is the disk full?', { cause });
}
