// JSON that was read, or is the same each time, and goes on as it is, so that nobody has to write it again.

import type { JsonObject } from './json.ts';

/**
 * As text, or as bytes in UTF-8. Bytes are in pieces that follow one another: large ones are copied neither where they came in
 * several, nor where something is put before and behind them.
 */
export type Written = string | readonly Uint8Array[];

/** A WeakMap, since a value is forgotten with the call that it belongs to. */
const written = new WeakMap<object, Written>();

/** Notes how the value was written. Whoever changes a value makes another of it, of which nothing is noted. */
export function noteWritten(value: object, how: Written): void {
  written.set(value, how);
}

export const findWritten = (value: object): Written | undefined => written.get(value);

/** What stands before and behind it. */
export const surround = (before: string, content: Written, behind: string): Written =>
  typeof content === 'string'
    ? before + content + behind
    : [Buffer.from(before), ...content, Buffer.from(behind)];

/**
 * An object that is written already, with members before and behind its own; it has some, and none of their names. Undefined
 * where something stands around its braces.
 */
export function addMembers(
  object: Written,
  before: JsonObject,
  behind: JsonObject,
): Written | undefined {
  const members = typeof object === 'string' ? cutText(object) : cutPieces(object);
  return (
    members &&
    surround(
      `${JSON.stringify(before).slice(0, -1)},`,
      members,
      `,${JSON.stringify(behind).slice(1)}`,
    )
  );
}

// Without the braces.

const cutText = (text: string): string | undefined =>
  text.startsWith('{') && text.endsWith('}') ? text.slice(1, -1) : undefined;

function cutPieces(pieces: readonly Uint8Array[]): readonly Uint8Array[] | undefined {
  const [first, ...others] = pieces;
  const end = pieces.at(-1)?.at(-1);
  if (first?.[0] !== OPENING_BRACE || end !== CLOSING_BRACE) return undefined;
  const rest = [first.subarray(1), ...others];
  const last = rest.pop() ?? first;
  return [...rest, last.subarray(0, -1)];
}

const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
