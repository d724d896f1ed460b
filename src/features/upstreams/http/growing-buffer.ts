// Bytes that come in pieces, maybe one by one: each piece kept by itself would cost a hundred times its size.
export interface GrowingBuffer {
  readonly length: number;
  add(piece: Buffer): void;
  /** All so far; it is empty then. */
  take(): Buffer;
}

const NOTHING: Buffer = Buffer.alloc(0);

export function createGrowingBuffer(): GrowingBuffer {
  /** Most answers are one piece, which is not copied. */
  let held: Buffer = NOTHING;
  let length = 0;

  return {
    get length() {
      return length;
    },
    add(piece) {
      const needed = length + piece.length;
      if (length === 0) held = piece;
      else {
        if (needed > held.length || length === held.length) {
          const larger = Buffer.allocUnsafe(Math.max(needed, 2 * held.length));
          held.copy(larger, 0, 0, length);
          held = larger;
        }
        piece.copy(held, length);
      }
      length = needed;
    },
    take() {
      const all = held.subarray(0, length);
      held = NOTHING;
      length = 0;
      return all;
    },
  };
}
