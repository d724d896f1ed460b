// The places of the members of a JSON object in its bytes, found without making anything of them: many times faster than the
// engine's parser, by a small module of WebAssembly with vector instructions.
import { openWorkspace, TEXT } from './workspace.ts';

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

export interface ScanRules {
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

const toPosition = ({ table, origin }: Found, at: number): number => (table[at] ?? 0) - origin;

// As wasm/scan-json.ts has them, by numbers of four bytes.
const MEMBER = 4;
const PARTS_COUNT = 287;
const PARTS = 288;
const NO_PARTS = 0xffff_ffff;

const NONE = -1;

export const hasTwice = (members: readonly ScannedMember[]): boolean =>
  members.length > 1 && new Set(members.map(({ name }) => name)).size < members.length;
