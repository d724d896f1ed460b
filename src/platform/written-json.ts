// JSON that was read and goes on as it is: its bytes, so that nobody has to write it again.

/** A WeakMap, since a value is forgotten with the call that it belongs to. */
const written = new WeakMap<object, Uint8Array>();

/** Notes how the value was written. Whoever changes a value makes another of it, of which nothing is noted. */
export function noteWritten(value: object, bytes: Uint8Array): void {
  written.set(value, bytes);
}

export const findWritten = (value: object): Uint8Array | undefined => written.get(value);
