// §18.7: what of a tool, a prompt, a skill and the instructions is approved, as hashes.
import { hash } from 'node:crypto';
import { toCanonicalJson } from '../../platform/canonical-json.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { ListKind } from '../../protocol/list-kinds.ts';

/** What is listed. */
export type LockedItemKind = 'tool' | 'prompt' | 'skill';

export type LockedKind = LockedItemKind | 'instructions';

/** Where each is listed, and by which member it is found. */
export const LOCKED_ITEMS = {
  prompt: { list: 'prompts', key: 'name' },
  skill: { list: 'skills', key: 'uri' },
  tool: { list: 'tools', key: 'name' },
} as const satisfies Readonly<
  Record<LockedItemKind, { readonly list: ListKind; readonly key: string }>
>;

export type LockedList = (typeof LOCKED_ITEMS)[LockedItemKind]['list'];

/** In the order in which they are told. */
export const LOCKED_ITEM_KINDS = [
  'prompt',
  'skill',
  'tool',
] as const satisfies readonly LockedItemKind[];

/** Undefined for what is not locked: resources come and go. */
export const findLockedKind = (list: ListKind): LockedItemKind | undefined =>
  LOCKED_ITEM_KINDS.find((kind) => LOCKED_ITEMS[kind].list === list);

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
  // With the digest of each file: what a host loads is what was approved.
  skill: ['uri', 'frontmatter', 'resources'],
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
