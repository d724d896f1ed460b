// DATA_DIR: made, locked and opened.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { chmod, mkdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { getErrorCode } from '../../platform/error-code.ts';
import { describeCause } from '../../platform/log.ts';
import { StoreUnavailable } from '../store.ts';
import { DataDirError, lockFolder } from './lock.ts';
import { hasPagesBeyond, type Meta, PAGE_HEADER_BYTES, readPageMeta } from './pages.ts';
import { trackWrite } from './writes-under-way.ts';

export interface DataFolder {
  readonly root: RootDatabase;
  /** Where the database lies. */
  readonly file: string;
  /** Atomic; resolves when it is on disk. Writes of many requests share one commit. None may follow `close`. */
  write<Result>(change: () => Result): Promise<Result>;
  close(): Promise<void>;
}

/** The same for the parts of the store, none of which closes it. */
export interface OpenFolder extends Omit<DataFolder, 'close'> {
  /**
   * To be called before a read outside `write`: lmdb does not survive one while it closes.
   *
   * @throws StoreUnavailable once the store was closed.
   */
  ensureOpen(): void;
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
    return {
      root,
      file,
      write: (change) => trackWrite(() => root.transaction(change).catch(rejectCommit)),
      async close() {
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

// lmdb maps store.mdb into memory and believes what it finds there: a file that is cut off, or of
// another program, would end the process by a signal, without a word. It is looked at before.

/** @throws Error when lmdb cannot open the file safely. A file that is not there is none. */
function checkStoreFile(file: string): void {
  const descriptor = openIfThere(file);
  if (descriptor === undefined) return;
  try {
    const { size } = fstatSync(descriptor);
    if (size > 0) checkPages(descriptor, size);
  } finally {
    closeSync(descriptor);
  }
}

function openIfThere(file: string): number | undefined {
  try {
    return openSync(file, 'r');
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function checkPages(descriptor: number, size: number): void {
  const read = (at: number, bytes: number): Buffer => {
    const buffer = Buffer.alloc(bytes);
    return buffer.subarray(0, readSync(descriptor, buffer, 0, bytes, at));
  };
  const metaAt = (at: number): Meta => readPageMeta(read(at, META_BYTES)) ?? throwForeign();
  const first = metaAt(0);
  const second = metaAt(first.pageBytes);
  const meta = second.transaction > first.transaction ? second : first;
  if (size >= (meta.lastPage + 1) * meta.pageBytes) return;
  // Pages that a transaction took and gave back are never written: short does not mean damaged.
  const pages = Math.floor(size / meta.pageBytes);
  const readPage = (page: number) => read(page * meta.pageBytes, meta.pageBytes);
  if (hasPagesBeyond(pages, meta, readPage)) {
    throw new Error(
      `store.mdb is damaged: it ends after ${size} bytes, before some of its records. Put a copy in its place, or move it away to begin with an empty store`,
    );
  }
}

/** More than a meta page has in use. */
const META_BYTES = PAGE_HEADER_BYTES + 256;

function throwForeign(): never {
  throw new Error('store.mdb is damaged, or of another program; move it away');
}
