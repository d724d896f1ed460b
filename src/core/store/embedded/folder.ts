// DATA_DIR: made, locked and opened.
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { describeCause } from '../../log.ts';
import { StoreUnavailable } from '../store.ts';
import { DataDirError, lockFolder } from './lock.ts';

export interface Folder {
  readonly root: RootDatabase;
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

/** @throws DataDirError when the folder is in use or cannot be used, said by name. */
export async function openFolder(dataDir: string): Promise<Folder> {
  const path = resolve(dataDir);
  let unlock = async () => {};
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    unlock = await lockFolder(path);
    const root = open({ path: join(path, 'store.mdb'), noSubdir: true, ...DURABLE });
    let closing = false;
    return {
      root,
      write: (change) => root.transaction(change).catch(fail),
      ensureOpen() {
        if (closing) throw new StoreUnavailable('The store is closed');
      },
      async close() {
        closing = true;
        await root.close();
        await unlock();
      },
    };
  } catch (cause) {
    await unlock();
    if (cause instanceof DataDirError) throw cause;
    throw new DataDirError(`DATA_DIR: the folder ${path} cannot be used: ${describeCause(cause)}`);
  }
}

/**
 * A commit is over when it is on disk. Without batches per turn of the event loop: lmdb drops the
 * promise of such a batch, and on a full disk its rejection would end the process.
 */
const DURABLE = { overlappingSync: false, eventTurnBatching: false };

/** lmdb says why a commit failed by a second promise, which must not stay unhandled either. */
async function fail(error: unknown): Promise<never> {
  if (!(error instanceof Error && 'commitError' in error)) throw error;
  const cause = await Promise.resolve(error.commitError).catch((reason: unknown) => reason);
  throw new StoreUnavailable('DATA_DIR cannot be written; is the disk full?', { cause });
}
