// The places of the members of a JSON object in its bytes, found without making anything of them: many times faster than the
// engine's parser, by a small module of WebAssembly with vector instructions.

import { SCAN_MODULE } from './scan-module.ts';

export interface ScannedMember {
  readonly name: string;
  /** The place of the quote before its name. */
  readonly from: number;
  /** The place of the first byte of its value; below, the place behind its last one. */
  readonly start: number;
  readonly end: number;
}

/** An entry of a list: of an array that is a member of the object itself. */
export interface ScannedEntry {
  readonly start: number;
  readonly end: number;
  /** Those of an object; none for anything else. A name may be there twice. */
  readonly members: readonly ScannedMember[];
}

export interface ScannedObject {
  readonly members: readonly ScannedMember[];
  /** Those of all lists, one behind the other; undefined where they are too many, or a name of their members is spelled with a backslash. */
  readonly entries: readonly ScannedEntry[] | undefined;
}

interface ScanRules {
  /** Eight letters, as `readBigUInt64LE` has them. */
  readonly sought: bigint;
  readonly maxValues: number;
}

/** Arrays and objects around one another, and members of the object itself. As wasm/scan-json.ts has them. */
export const SCAN_BOUNDS = { levels: 100, members: 64 };

/**
 * The members, and the entries of lists, of the object that stands from `start` to `end`, in UTF-8. It is proved that RFC 8259 is
 * kept there from the first byte to the last, within strings too. Undefined for what is no such object, and for what has better be parsed:
 *
 * - a name or a text that begins with the letters of `sought`, however they are spelled;
 * - line feeds, tabs, or any control character: what was found goes on as one line of an event stream;
 * - a member twice, or one whose name is spelled with a backslash and so may be another;
 * - more than `maxValues` values, and what goes beyond `SCAN_BOUNDS`.
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

/** The findings of the module: where `bytes` begin, `origin` stands in the table. */
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
    // The members of an entry follow it; it has no name itself.
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

// As wasm/scan-json.ts has them, by numbers of four bytes.
const MEMBER = 4;
const PARTS_COUNT = 287;
const PARTS = 288;
const NO_PARTS = 0xffff_ffff;

const NONE = -1;

export const hasTwice = (members: readonly ScannedMember[]): boolean =>
  members.length > 1 && new Set(members.map(({ name }) => name)).size < members.length;

// Bodies in pieces are joined here: the memory of the WebAssembly module that scans them, so that nothing is copied for it.

interface Workspace {
  /** For a body, which is good until the next one is put here. */
  readonly bytes: Buffer;
  /** The place where `scan` says what it found: addresses, of which `bytes` begins at `TEXT`. */
  readonly table: Uint32Array;
  /** `scanObject` of wasm/scan-json.ts. */
  readonly scan: (start: number, end: number, sought: bigint, maxValues: number) => number;
}

/** As wasm/scan-json.ts divides the memory: what it uses is before the text. */
const TEXT = 8192;
/** It reads so far behind a text at most. */
const READ_BEHIND = 128;
const PAGE = 65_536;
const USUAL_PAGES = 5;
const MAX_PAGES = 128;

/**
 * A workspace for so many bytes. Nearly all bodies share the usual one: a buffer of its own for each would be most of what its
 * call allocates, and the collector would run for it. One of up to 8 MiB stays until the collector runs, since its pages take longer
 * to be had from the system than to be scanned. Undefined for more than that, and where no such module can run.
 */
export function openWorkspace(length: number): Workspace | undefined {
  const pages = Math.ceil((TEXT + length + READ_BEHIND) / PAGE);
  if (pages > MAX_PAGES) return undefined;
  if (pages <= USUAL_PAGES) {
    usual ??= createWorkspace(USUAL_PAGES);
    return usual;
  }
  const kept = large?.deref();
  if (kept !== undefined && length <= kept.bytes.length) return kept;
  const created = createWorkspace(2 ** Math.ceil(Math.log2(pages)));
  large = created && new WeakRef(created);
  return created;
}

let usual: Workspace | undefined;
let large: WeakRef<Workspace> | undefined;
let compiled: object | undefined;
/** Each further try would cost a body the compiler, or the engine some collections of all memory before it gives up. */
let isRefused = false;

/** Undefined on a processor without vector instructions, and once there was no memory, or no address space, for it. */
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

/** The part of it that is used here: the types of Node.js do not have it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Memory: new (size: { initial: number; maximum: number }) => { buffer: ArrayBuffer };
  readonly Instance: new (
    module: object,
    imports: { env: { memory: object } },
  ) => { exports: { scanObject: Workspace['scan'] } };
};
