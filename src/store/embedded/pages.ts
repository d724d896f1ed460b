// The pages of an LMDB file, data format 2, 64 bits, little-endian (liblmdb/mdb.c of lmdb-js: MDB_meta,
// MDB_db, MDB_page, MDB_node). Nothing is read here but which pages are in use.

/** What is in use as of one commit. */
export interface Meta {
  readonly pageBytes: number;
  /** Number of the commit. */
  readonly transaction: bigint;
  /** The highest page that any commit took; those that it did not keep may never have been written. */
  readonly lastPage: number;
  /** Of the tree of free pages, and of the tree of databases. */
  readonly roots: readonly (number | undefined)[];
}

export const PAGE_HEADER_BYTES = 24;

const MAGIC = 0xbeefc0de;
const SMALLEST_PAGE = 512;
const LARGEST_PAGE = 65_536;

/** Where MDB_meta has them, from the start of its page. */
const META = { magic: 24, freeTree: 48, mainTree: 96, lastPage: 144, transaction: 152, end: 160 };
const TREE = { bytes: 48, pageBytes: 0, root: 40 };

/** Undefined for what is no meta page. */
export function readPageMeta(page: Buffer): Meta | undefined {
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

function rootAt(page: Buffer, tree: number): number | undefined {
  const root = page.readBigUInt64LE(tree + TREE.root);
  return root === NO_PAGE ? undefined : Number(root);
}

/** Deeper than any tree of 2^48 pages. */
const MAX_DEPTH = 32;

/**
 * Whether a page in use is not among the first `pages`, or cannot be made out. It reads all pages
 * in use but those of long values.
 */
export function hasPagesBeyond(
  pages: number,
  { roots }: Meta,
  readPage: (page: number) => Buffer,
): boolean {
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
    // A page that points outside itself.
    if (error instanceof RangeError) return true;
    throw error;
  }
}

/** A tree, which may be empty, or pages in a row. */
type Use =
  | { readonly root: number | undefined }
  | { readonly first: number; readonly count: number };

const PAGE = { flags: 18, lower: 20, nodes: 24 };
const BRANCH = 0x01;
const LEAF = 0x02;
const KEYS_ONLY = 0x20;

/** The pages to which one of a tree points. */
function pagesUsedBy(page: Buffer): readonly Use[] {
  const flags = page.readUInt16LE(PAGE.flags);
  if ((flags & KEYS_ONLY) !== 0) return [];
  if ((flags & (BRANCH | LEAF)) === 0) throw new RangeError('Neither branch nor leaf');
  const read = (flags & BRANCH) === 0 ? pagesOfLeafNode : pagesOfBranchNode;
  const nodes = page.readUInt16LE(PAGE.lower) / 2;
  return Array.from({ length: nodes }, (_, index) => {
    const at = page.readUInt16LE(PAGE.nodes + 2 * index) + PAGE_HEADER_BYTES;
    return read(page, at);
  }).filter((use) => use !== undefined);
}

const NODE = { low: 0, flags: 4, keyBytes: 6, data: 8 };
const LONG_VALUE = 0x01;
const SUB_TREE = 0x02;

function pagesOfBranchNode(page: Buffer, node: number): Use {
  const low = page.readUInt32LE(node + NODE.low);
  return { root: low + page.readUInt16LE(node + NODE.flags) * 2 ** 32 };
}

function pagesOfLeafNode(page: Buffer, node: number): Use | undefined {
  const flags = page.readUInt16LE(node + NODE.flags);
  const data = node + NODE.data + page.readUInt16LE(node + NODE.keyBytes);
  if ((flags & SUB_TREE) !== 0) return { root: rootAt(page, data) };
  if ((flags & LONG_VALUE) === 0) return undefined;
  // MDB_ovpage: the first page, a transaction, the number of pages.
  return {
    first: Number(page.readBigUInt64LE(data)),
    count: Number(page.readBigUInt64LE(data + 16)),
  };
}
