// §18.7: what of a tool, a prompt and the instructions is approved, as hashes.
import { hash } from 'node:crypto';
import { isObject, type JsonObject } from '../../platform/json.ts';

export type LockedKind = 'tool' | 'prompt' | 'instructions';

/** What was approved of one item. */
export interface Fingerprint {
  /** SHA-256 (hex) over the RFC 8785 form of the members that the lock is about. */
  readonly sha256: string;
  /** The first characters of each member's own hash: they say what changed, and decide nothing. */
  readonly parts: Readonly<Record<string, string>>;
}

/** What the lock is about: what a client's model reads, and the name by which it calls. */
const MEMBERS: Readonly<Record<LockedKind, readonly string[]>> = {
  tool: ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'],
  prompt: ['name', 'title', 'description', 'arguments'],
  instructions: ['text'],
};

const PART_CHARACTERS = 8;

/** `item` as the server wrote it; the text of instructions. Undefined for what nests too deep. */
export function computeFingerprint(kind: LockedKind, item: unknown): Fingerprint | undefined {
  try {
    const members = selectMembers(kind, item);
    const parts = Object.entries(members).map(([name, value]) => [
      name,
      hashHex(toCanonicalJson(value)).slice(0, PART_CHARACTERS),
    ]);
    return { sha256: hashHex(toCanonicalJson(members)), parts: Object.fromEntries(parts) };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** The hash alone, for each list and call. */
export function computeSha256(kind: LockedKind, item: unknown): string | undefined {
  try {
    return hashHex(toCanonicalJson(selectMembers(kind, item)));
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** What of the item the lock is about. */
export function selectMembers(kind: LockedKind, item: unknown): JsonObject {
  const source = isObject(item) ? item : { text: item };
  const present = MEMBERS[kind].filter((name) => source[name] !== undefined);
  return Object.fromEntries(present.map((name) => [name, source[name]]));
}

const hashHex = (text: string): string => hash('sha256', text, 'hex');

// RFC 8785: one spelling for each JSON value, so that equal values have equal hashes.

/**
 * Members are sorted by the UTF-16 code units of their names; numbers and strings are written as ECMAScript
 * writes them (RFC 8785 §3.2.2). Members that are `undefined` are left out.
 *
 * @throws RangeError for a value that nests deeper than `MAX_LEVELS`.
 */
export function toCanonicalJson(value: unknown, levels = MAX_LEVELS): string {
  if (levels === 0) throw new RangeError(`nested deeper than ${MAX_LEVELS} levels`);
  const write = (item: unknown) => toCanonicalJson(item, levels - 1);
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  const members = Object.keys(value)
    .filter((name) => value[name] !== undefined)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${write(value[name])}`);
  return `{${members.join(',')}}`;
}

/** More than any schema has; a server must not fill the stack. */
const MAX_LEVELS = 200;
