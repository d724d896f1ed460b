// Locates the members of a JSON object in its bytes without parsing: many times faster than the engine's parser, thanks to a small
// WebAssembly module with SIMD instructions.

import { SCAN_MODULE } from './scan-module.ts';

export interface ScannedMember {
  readonly name: string;
  /** Offset of the quote before the member's name. */
  readonly from: number;
  /** Offset of the first byte of the value; `end` is the offset after its last byte. */
  readonly start: number;
  readonly end: number;
}

/** An entry of an array that is a direct member of the object. */
export interface ScannedEntry {
  readonly start: number;
  readonly end: number;
  /** Members of an object, possibly with repeated names; empty for anything else. */
  readonly members: readonly ScannedMember[];
}

export interface ScannedObject {
  readonly members: readonly ScannedMember[];
  /** Entries of all arrays in order; undefined if there are too many, or a member name contains a backslash. */
  readonly entries: readonly ScannedEntry[] | undefined;
}

interface ScanRules {
  /** Eight letters, as `readBigUInt64LE` reads them. */
  readonly sought: bigint;
  readonly maxValues: number;
}

/** Maximum nesting of arrays and objects, and maximum members of the object itself; the same as in wasm/scan-json.ts. */
export const SCAN_BOUNDS = { levels: 100, members: 64 };

/**
 * Finds the members and list entries of the UTF-8 object from `start` to `end`, and validates it fully against RFC 8259, strings
 * included. Undefined for anything else, and for objects that must be parsed:
 *
 * - a name or string that begins with the letters of `sought`, in any spelling;
 * - line feeds, tabs or other control characters: the bytes are forwarded as one line of an event stream;
 * - a repeated member name, or one with a backslash, which may hide a repetition;
 * - more than `maxValues` values, or anything beyond `SCAN_BOUNDS`.
 */
export function scanObject(
  bytes: Buffer,
  start: number,
  end: number,
  { sought, maxValues }: ScanRules,
): ScannedObject | undefined {
  const workspace = openWorkspace(bytes.length);
  if (workspace === undefined) return undefined;
  const isPlaced = bytes.buffer === workspace.bytes.buffer;
  if (!isPlaced) workspace.bytes.set(bytes);
  const origin = isPlaced ? bytes.byteOffset : TEXT;
  const count = workspace.scan(origin + start, origin + end, sought, maxValues);
  if (count === NONE) return undefined;
  const found = { table: workspace.table, bytes, origin };
  const members = readMembers(found, count);
  return hasTwice(members) ? undefined : { members, entries: readEntries(found) };
}

/** Results of the module; offsets in the table are relative to `origin`. */
interface Found {
  readonly table: Uint32Array;
  readonly bytes: Buffer;
  readonly origin: number;
}

function readMembers(found: Found, count: number): readonly ScannedMember[] {
  const members: ScannedMember[] = [];
  for (let at = 0; at < count * MEMBER; at += MEMBER) members.push(readMember(found, at));
  return members;
}

function readEntries(found: Found): readonly ScannedEntry[] | undefined {
  const { table } = found;
  const count = table[PARTS_COUNT];
  if (count === undefined || count === NO_PARTS) return undefined;
  const entries: { start: number; end: number; members: ScannedMember[] }[] = [];
  for (let at = PARTS; at < PARTS + count * MEMBER; at += MEMBER) {
    // An entry, which has no name, is followed by its members.
    if (table[at] === 0) {
      entries.push({
        start: toPosition(found, at + 2),
        end: toPosition(found, at + 3),
        members: [],
      });
    } else entries.at(-1)?.members.push(readMember(found, at));
  }
  return entries;
}

function readMember(found: Found, at: number): ScannedMember {
  const start = toPosition(found, at);
  return {
    name: found.bytes.toString('utf8', start, toPosition(found, at + 1)),
    from: start - 1,
    start: toPosition(found, at + 2),
    end: toPosition(found, at + 3),
  };
}

const toPosition = ({ table, origin }: Found, at: number) => (table[at] ?? 0) - origin;

// Layout of wasm/scan-json.ts, in 4-byte numbers.
const MEMBER = 4;
const PARTS_COUNT = 287;
const PARTS = 288;
const NO_PARTS = 0xffff_ffff;

const NONE = -1;

export const hasTwice = (members: readonly ScannedMember[]): boolean =>
  members.length > 1 && new Set(members.map(({ name }) => name)).size < members.length;

// Joins a body's pieces directly in the memory of the WebAssembly module, so that scanning copies nothing.

interface Workspace {
  /** Memory for one body, which is valid until the next one is written. */
  readonly bytes: Buffer;
  /** The table of results: positions are addresses, where `bytes` begins at `TEXT`. */
  readonly table: Uint32Array;
  /** `scanObject` of wasm/scan-json.ts. */
  readonly scan: (start: number, end: number, sought: bigint, maxValues: number) => number;
}

/** Memory layout of wasm/scan-json.ts: the module's working area precedes the text. */
const TEXT = 8192;
/** Number of bytes that the module may read past the text. */
const READ_BEHIND = 128;
const PAGE = 65_536;
const USUAL_PAGES = 5;
const MAX_PAGES = 128;

/**
 * Returns a workspace for this many bytes. Nearly all bodies share the default one: a buffer per body would make up most of a
 * call's allocations, and trigger garbage collection. The largest workspace so far is kept, up to 8 MiB: getting pages from the
 * system takes longer than scanning. Undefined for larger sizes, and where the module cannot run.
 */
export function openWorkspace(length: number): Workspace | undefined {
  const pages = Math.ceil((TEXT + length + READ_BEHIND) / PAGE);
  if (pages > MAX_PAGES) return undefined;
  if (pages <= USUAL_PAGES) {
    usual ??= createWorkspace(USUAL_PAGES);
    return usual;
  }
  if (large !== undefined && length <= large.bytes.length) return large;
  const created = createWorkspace(2 ** Math.ceil(Math.log2(pages)));
  if (created !== undefined) large = created;
  return created;
}

let usual: Workspace | undefined;
let large: Workspace | undefined;
let compiled: object | undefined;
/** True once creation has failed. It is not retried: each attempt would run the compiler, or several full garbage collections. */
let isRefused = false;

/** Undefined on processors without SIMD, and after an allocation of memory or address space has failed. */
function createWorkspace(pages: number): Workspace | undefined {
  if (isRefused) return undefined;
  try {
    compiled ??= new WebAssembly.Module(Buffer.from(SCAN_MODULE, 'base64'));
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
    const bytes = Buffer.from(memory.buffer, TEXT, pages * PAGE - TEXT - READ_BEHIND);
    return { bytes, table: new Uint32Array(memory.buffer, 0, TEXT / 4), scan: exports.scanObject };
  } catch {
    isRefused = true;
    return undefined;
  }
}

/** The part that is used here; the Node.js types lack it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Memory: new (size: { initial: number; maximum: number }) => { buffer: ArrayBuffer };
  readonly Instance: new (
    module: object,
    imports: { env: { memory: object } },
  ) => { exports: { scanObject: Workspace['scan'] } };
};
