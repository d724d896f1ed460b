// JSON that was read, or is the same each time, and goes on as it is: its bytes, so that nobody has to write it again.

/** In pieces that follow one another: what came in several is not copied for it, nor what stands between others. */
export type Written = readonly Uint8Array[];

/** A WeakMap, since a value is forgotten with the call that it belongs to. */
const written = new WeakMap<object, Written>();

/** Notes how the value was written. Whoever changes a value makes another of it, of which nothing is noted. */
export function noteWritten(value: object, pieces: Written): void {
  written.set(value, pieces);
}

export const findWritten = (value: object): Written | undefined => written.get(value);
