// JSON that was read, or is the same each time, and goes on as it is: its bytes, so that nobody has to write it again.

import type { JsonObject } from './json.ts';

/** In pieces that follow one another: what came in several is not copied for it, nor what stands between others. */
export type Written = readonly Uint8Array[];

/** A WeakMap, since a value is forgotten with the call that it belongs to. */
const written = new WeakMap<object, Written>();

/** Notes how the value was written. Whoever changes a value makes another of it, of which nothing is noted. */
export function noteWritten(value: object, pieces: Written): void {
  written.set(value, pieces);
}

export const findWritten = (value: object): Written | undefined => written.get(value);

const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/**
 * An object that is written already, with members before and behind its own; it has some, and none of their names. Undefined
 * where something stands around its braces.
 */
export function addMembers(
  pieces: Written,
  before: JsonObject,
  behind: JsonObject,
): Written | undefined {
  const first = pieces[0];
  const last = pieces.at(-1);
  if (first?.[0] !== OPENING_BRACE || last?.at(-1) !== CLOSING_BRACE) return undefined;
  const head = Buffer.from(`${JSON.stringify(before).slice(0, -1)},`);
  const tail = Buffer.from(`,${JSON.stringify(behind).slice(1)}`);
  const rest = [first.subarray(1), ...pieces.slice(1)];
  const end = rest.pop() ?? first;
  return [head, ...rest, end.subarray(0, -1), tail];
}
