// Where the members of a JSON object stand in its bytes, found without making anything of them: many times faster than the
// engine's parser, by a small module of WebAssembly with vector instructions.
import { openWorkspace, TEXT } from './workspace.ts';

export interface ScannedMember {
  readonly name: string;
  /** Of its value: where its first byte is, and where what follows begins. */
  readonly start: number;
  readonly end: number;
}

export interface ScanRules {
  /** Eight letters, as `readBigUInt64LE` has them. */
  readonly sought: bigint;
  readonly maxValues: number;
}

/** Arrays and objects around one another, and members of the object itself. As wasm/scan-json.ts has them. */
export const SCAN_BOUNDS = { levels: 100, members: 64 };

/**
 * The members of the object that stands from `start` to `end`, in UTF-8. It is proved that RFC 8259 is kept there from the first
 * byte to the last, within strings too. Undefined for what is no such object, and for what has better be parsed:
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
): readonly ScannedMember[] | undefined {
  const workspace = openWorkspace(bytes.length);
  if (workspace === undefined) return undefined;
  const isPlaced = bytes.buffer === workspace.bytes.buffer;
  if (!isPlaced) workspace.bytes.set(bytes);
  const origin = isPlaced ? bytes.byteOffset : TEXT;
  const count = workspace.scan(origin + start, origin + end, sought, maxValues);
  if (count === NONE) return undefined;
  const positionOf = (entry: number) => (workspace.table[entry] ?? 0) - origin;
  const members: ScannedMember[] = [];
  for (let entry = 0; entry < 4 * count; entry += 4) {
    const name = bytes.toString('utf8', positionOf(entry), positionOf(entry + 1));
    members.push({ name, start: positionOf(entry + 2), end: positionOf(entry + 3) });
  }
  return hasTwice(members) ? undefined : members;
}

const NONE = -1;

const hasTwice = (members: readonly ScannedMember[]): boolean =>
  members.length > 1 && new Set(members.map(({ name }) => name)).size < members.length;
