// The outline of a long result, without its long texts: enough to see whether clients can read it.
import type { JsonObject } from '../../platform/json.ts';
import {
  hasTwice,
  type ScannedEntry,
  type ScannedMember,
  type ScannedObject,
} from '../../platform/scan/scan-json.ts';

/** Bytes of a value that is parsed. */
const MAX_PARSED = 4096;
/** Bytes that stand for a longer string, up to its first escape. */
const SHOWN = 64;

const QUOTE = 0x22;
const OPEN_ARRAY = 0x5b;
const OPEN_OBJECT = 0x7b;

/**
 * The object, whose long strings are cut, and whose structured content is empty. Undefined where more of it would have to be
 * parsed.
 */
export function readOutline(bytes: Buffer, scanned: ScannedObject): JsonObject | undefined {
  return readMembers(bytes, scanned.members, scanned.entries);
}

/** `entries` are those of lists among the members. */
function readMembers(
  bytes: Buffer,
  members: readonly ScannedMember[],
  entries: readonly ScannedEntry[] | undefined,
): JsonObject | undefined {
  const outline: [string, unknown][] = [];
  for (const { name, start, end } of members) {
    const value =
      LISTS.has(name) && bytes[start] === OPEN_ARRAY
        ? readList(
            bytes,
            entries?.filter((entry) => entry.start > start && entry.end < end),
          )
        : readValue(bytes, start, end, OPEN.has(name));
    if (value === undefined) return undefined;
    outline.push([name, value]);
  }
  return Object.fromEntries(outline);
}

const LISTS: ReadonlySet<string> = new Set(['content', 'contents']);
/** It matters only that they are objects. */
const OPEN: ReadonlySet<string> = new Set(['structuredContent', '_meta']);

/** Undefined, too, where one of them is no object. */
function readList(
  bytes: Buffer,
  entries: readonly ScannedEntry[] | undefined,
): readonly JsonObject[] | undefined {
  const list: JsonObject[] = [];
  for (const { start, members } of entries ?? []) {
    const isOdd = bytes[start] !== OPEN_OBJECT || hasTwice(members);
    const outline = isOdd ? undefined : readMembers(bytes, members, undefined);
    if (outline === undefined) return undefined;
    list.push(outline);
  }
  return entries && list;
}

function readValue(bytes: Buffer, start: number, end: number, isOpen: boolean): unknown {
  const first = bytes[start];
  if (isOpen && first === OPEN_OBJECT) return {};
  const length = end - start;
  if (first === QUOTE && length > SHOWN) return cutString(bytes, start + 1);
  if (length <= MAX_PARSED) return parse(bytes.toString('utf8', start, end));
  return first === QUOTE || first === OPEN_ARRAY || first === OPEN_OBJECT ? undefined : 0;
}

/** A multiple of four letters, as a part of base64 is. */
function cutString(bytes: Buffer, start: number): string {
  const [shown = ''] = bytes.toString('latin1', start, start + SHOWN - 4).split('\\', 1);
  return shown.slice(0, shown.length - (shown.length % 4));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
