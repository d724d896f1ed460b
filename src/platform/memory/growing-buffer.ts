// Bytes that come in pieces, maybe one by one.
/** The bytes of a body, or an event, as they arrive. */
export interface GrowingBuffer {
  append(piece: Buffer): void;
  byteLength(): number;
  /** Returns all bytes, and keeps them no longer. */
  take(): Buffer;
}

/** Room is made in steps of at least this many bytes. */
const STEP_BYTES = 4096;

/** Takes twice the bytes at most: each piece by itself, of a body in many small ones, takes far more. */
export function createGrowingBuffer(): GrowingBuffer {
  let buffer: Buffer | undefined;
  let length = 0;

  function grow(bytes: number): Buffer {
    const grown = Buffer.allocUnsafeSlow(Math.max(2 * bytes, STEP_BYTES));
    buffer?.copy(grown, 0, 0, length);
    return grown;
  }

  return {
    append(piece) {
      // Most bodies come in one.
      if (buffer === undefined) {
        buffer = piece;
      } else {
        if (buffer.length < length + piece.length) buffer = grow(length + piece.length);
        piece.copy(buffer, length);
      }
      length += piece.length;
    },
    byteLength: () => length,
    take() {
      const whole = buffer?.subarray(0, length) ?? Buffer.alloc(0);
      buffer = undefined;
      length = 0;
      return whole;
    },
  };
}
