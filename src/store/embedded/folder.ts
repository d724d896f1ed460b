// Creates, locks and opens DATA_DIR, and checks store.mdb before lmdb opens it.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { chmod, mkdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { getErrorCode } from '../../platform/error-code.ts';
import { describeCause } from '../../platform/log.ts';
import { StoreUnavailable } from '../store.ts';
import { DataDirError, lockFolder } from './lock.ts';
import { trackWrite } from './writes-under-way.ts';

/** For the parts of the store, none of which closes the folder. */
export interface OpenFolder {
  readonly root: RootDatabase;
  /** The path of the database. */
  readonly file: string;
  /** Atomic; resolves when it is on disk. Writes of many requests share one commit. */
  write<Result>(change: () => Result): Promise<Result>;
  /**
   * Call this before any read outside `write`: lmdb crashes the process if it is read while it closes.
   *
   * @throws StoreUnavailable once the store is closed.
   */
  ensureOpen(): void;
}

/** @throws DataDirError if the folder is in use or unusable. */
export async function openDataFolder(dataDir: string) {
  const path = resolve(dataDir);
  let unlock = async () => {};
  try {
    await makeFolder(path);
    unlock = await lockFolder(path);
    const file = join(path, 'store.mdb');
    checkStoreFile(file);
    const root = open({ path: file, noSubdir: true, mapSize: MAP_BYTES, ...DURABLE });
    // Whatever the folder's mode: other users must not read sessions and clients.
    await Promise.all([file, `${file}-lock`].map((name) => chmod(name, 0o600)));
    return {
      root,
      file,
      /** As in `OpenFolder`. No write may follow `close`. */
      write: <Result>(change: () => Result) =>
        trackWrite(() => root.transaction(change).catch(rejectCommit)),
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

/** Creates one folder at a time: with `recursive`, Node.js hangs in a place where folders cannot be created. */
async function makeFolder(path: string) {
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
 * Address space, not memory: room to grow. Whenever a store outgrows its map, lmdb creates one of twice the size and keeps the
 * old one, and pages in both count twice towards the memory of this process.
 */
const MAP_BYTES = 2 ** 34;

/**
 * A commit resolves once it is on disk. Without batches per turn of the event loop: lmdb drops the promise of such a batch, and
 * on a full disk its rejection would end the process.
 */
const DURABLE = { overlappingSync: false, eventTurnBatching: false };

/** lmdb reports the reason for a failed commit by a second promise, which must also be handled. */
async function rejectCommit(error: unknown): Promise<never> {
  if (!(error instanceof Error && 'commitError' in error)) throw error;
  const cause = await Promise.resolve(error.commitError).catch((reason: unknown) => reason);
  throw new StoreUnavailable('DATA_DIR cannot be written; is the disk full?', { cause });
}

// lmdb maps store.mdb into memory and trusts its content: a truncated file, or one of another program, would kill the process
// with a signal, without a message. So the file is checked first.

/** @throws Error if lmdb cannot open the file safely. A missing file is fine. */
function checkStoreFile(file: string) {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT') return;
    throw error;
  }
  try {
    const { size } = fstatSync(descriptor);
    if (size > 0) checkPages(descriptor, size);
  } finally {
    closeSync(descriptor);
  }
}

function checkPages(descriptor: number, size: number) {
  const read = (at: number, bytes: number): Buffer => {
    const buffer = Buffer.alloc(bytes);
    return buffer.subarray(0, readSync(descriptor, buffer, 0, bytes, at));
  };
  const metaAt = (at: number) => {
    const meta = readPageMeta(read(at, META_BYTES));
    if (meta === undefined)
      throw new Error('store.mdb is damaged, or of another program; move it away');
    return meta;
  };
  const first = metaAt(0);
  const second = metaAt(first.pageBytes);
  const meta = second.transaction > first.transaction ? second : first;
  if (size >= (meta.lastPage + 1) * meta.pageBytes) return;
  // Pages that a transaction allocated and freed again are never written: a short file is not necessarily damaged.
  const pages = Math.floor(size / meta.pageBytes);
  const readPage = (page: number) => read(page * meta.pageBytes, meta.pageBytes);
  if (hasPagesBeyond(pages, meta, readPage))
    throw new Error(
      `store.mdb is damaged: it ends after ${size} bytes, before some of its records. Put a copy in its place, or move it away to begin with an empty store`,
    );
}

const PAGE_HEADER_BYTES = 24;
/** Upper bound of the bytes used in a meta page. */
const META_BYTES = PAGE_HEADER_BYTES + 256;

// The pages of an LMDB file, data format 2, 64 bits, little-endian (liblmdb/mdb.c of lmdb-js: MDB_meta, MDB_db, MDB_page,
// MDB_node). Reads only which pages are in use.

/** The pages in use as of one commit. */
interface Meta {
  readonly pageBytes: number;
  /** Number of the commit. */
  readonly transaction: bigint;
  /** The highest page that any commit allocated; pages that were not kept may never have been written. */
  readonly lastPage: number;
  /** The root of the tree of free pages, and the root of the tree of databases. */
  readonly roots: readonly (number | undefined)[];
}

const MAGIC = 0xbeefc0de;
const SMALLEST_PAGE = 512;
const LARGEST_PAGE = 65_536;

/** Offsets of the members of MDB_meta, from the start of the page. */
const META = { magic: 24, freeTree: 48, mainTree: 96, lastPage: 144, transaction: 152, end: 160 };
const TREE = { bytes: 48, pageBytes: 0, root: 40 };

/** Undefined if it is not a meta page. */
function readPageMeta(page: Buffer): Meta | undefined {
  if (page.length < META.end || page.readUInt32LE(META.magic) !== MAGIC) return undefined;
  const pageBytes = page.readUInt32LE(META.freeTree + TREE.pageBytes);
  if (pageBytes < SMALLEST_PAGE || pageBytes > LARGEST_PAGE) return undefined;
  return {
    pageBytes,
    transaction: page.readBigUInt64LE(META.transaction),
    lastPage: Number(page.readBigUInt64LE(META.lastPage)),
    roots: [rootAt(page, META.freeTree), rootAt(page, META.mainTree)],
  };
}

const NO_PAGE = 2n ** 64n - 1n;

function rootAt(page: Buffer, tree: number) {
  const root = page.readBigUInt64LE(tree + TREE.root);
  return root === NO_PAGE ? undefined : Number(root);
}

/** Deeper than a tree of 2^48 pages can be. */
const MAX_DEPTH = 32;

/**
 * True if a page in use is not among the first `pages`, or cannot be parsed. Reads all pages in use except those of long values.
 */
function hasPagesBeyond(pages: number, { roots }: Meta, readPage: (page: number) => Buffer) {
  function reachesBeyond(page: number | undefined, depth: number): boolean {
    if (page === undefined) return false;
    if (page >= pages || depth > MAX_DEPTH) return true;
    return pagesUsedBy(readPage(page)).some((use) =>
      'root' in use ? reachesBeyond(use.root, depth + 1) : use.first + use.count > pages,
    );
  }
  try {
    return roots.some((root) => reachesBeyond(root, 0));
  } catch (error) {
    // The page points outside itself.
    if (error instanceof RangeError) return true;
    throw error;
  }
}

/** A tree, which may be empty, or consecutive pages. */
type Use =
  | { readonly root: number | undefined }
  | { readonly first: number; readonly count: number };

const PAGE = { flags: 18, lower: 20, nodes: 24 };
const BRANCH = 0x01;
const LEAF = 0x02;
const KEYS_ONLY = 0x20;

/** The pages that a page of a tree refers to. */
function pagesUsedBy(page: Buffer): readonly Use[] {
  const flags = page.readUInt16LE(PAGE.flags);
  if ((flags & KEYS_ONLY) !== 0) return [];
  if ((flags & (BRANCH | LEAF)) === 0) throw new RangeError('Neither branch nor leaf');
  const nodes = page.readUInt16LE(PAGE.lower) / 2;
  return Array.from({ length: nodes }, (_, index) => {
    const at = page.readUInt16LE(PAGE.nodes + 2 * index) + PAGE_HEADER_BYTES;
    if ((flags & BRANCH) === 0) return pagesOfLeafNode(page, at);
    const low = page.readUInt32LE(at + NODE.low);
    return { root: low + page.readUInt16LE(at + NODE.flags) * 2 ** 32 };
  }).filter((use) => use !== undefined);
}

const NODE = { low: 0, flags: 4, keyBytes: 6, data: 8 };
const LONG_VALUE = 0x01;
const SUB_TREE = 0x02;

function pagesOfLeafNode(page: Buffer, node: number): Use | undefined {
  const flags = page.readUInt16LE(node + NODE.flags);
  const data = node + NODE.data + page.readUInt16LE(node + NODE.keyBytes);
  if ((flags & SUB_TREE) !== 0) return { root: rootAt(page, data) };
  if ((flags & LONG_VALUE) === 0) return undefined;
  // MDB_ovpage: the first page, a transaction, and the number of pages.
  return {
    first: Number(page.readBigUInt64LE(data)),
    count: Number(page.readBigUInt64LE(data + 16)),
  };
}
