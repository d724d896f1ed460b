// The outline of a long result, without its long texts: enough to see whether clients can read it.
import type { JsonObject } from '../../platform/json.ts';
import { type ScannedMember, type ScanRules, scanObject } from '../../platform/scan/scan-json.ts';

/** Bytes of a value that is parsed. */
const MAX_PARSED = 4096;
/** Bytes that stand for a longer string, up to its first escape. */
const SHOWN = 64;

const QUOTE = 0x22;
const OPEN_ARRAY = 0x5b;
const OPEN_OBJECT = 0x7b;

/**
 * An object of these members, whose long strings are cut, and whose structured content is empty. Undefined where more of it would
 * have to be parsed.
 */
export function readOutline(
  bytes: Buffer,
  members: readonly ScannedMember[],
  rules: ScanRules,
): JsonObject | undefined {
  const outline: [string, unknown][] = [];
  for (const { name, start, end } of members) {
    const value = LISTS.has(name)
      ? readList(bytes, start, end, rules)
      : readValue(bytes, start, end, OPEN.has(name));
    if (value === undefined) return undefined;
    outline.push([name, value]);
  }
  return Object.fromEntries(outline);
}

const LISTS: ReadonlySet<string> = new Set(['content', 'contents']);
/** It matters only that they are objects. */
const OPEN: ReadonlySet<string> = new Set(['structuredContent', '_meta']);

/** Undefined, too, where it is not told apart quickly where each part begins. */
function readList(
  bytes: Buffer,
  start: number,
  end: number,
  rules: ScanRules,
): readonly JsonObject[] | undefined {
  if (bytes[start] !== OPEN_ARRAY) return undefined;
  const parts = bytes.subarray(start + 1, end - 1);
  if (parts.length === 0) return [];
  const only = readPart(parts, rules);
  if (only !== undefined) return [only];
  const list: JsonObject[] = [];
  for (const part of splitParts(parts)) {
    const outline = readPart(part, rules);
    if (outline === undefined) return undefined;
    list.push(outline);
  }
  return list;
}

function readPart(part: Buffer, rules: ScanRules): JsonObject | undefined {
  const members = scanObject(part, 0, part.length, rules);
  return members && readOutline(part, members, rules);
}

/** Most parts of a list are objects, of which each begins with a name. What is split in the wrong place is no object. */
function splitParts(parts: Buffer): readonly Buffer[] {
  const split: Buffer[] = [];
  let start = 0;
  for (const separator of ['},{"', '}, {"']) {
    for (
      let at = parts.indexOf(separator, start);
      at !== -1;
      at = parts.indexOf(separator, start)
    ) {
      split.push(parts.subarray(start, at + 1));
      start = at + separator.length - 2;
    }
    if (start > 0) break;
  }
  return [...split, parts.subarray(start)];
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
