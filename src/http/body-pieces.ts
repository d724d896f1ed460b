/** The bytes of a body as they arrive. */
export interface Pieces {
  add(piece: Buffer): void;
  length(): number;
  /** All of them; they are not kept any longer. */
  take(): Buffer;
}

/** Room is made in steps of at least this many bytes. */
const STEP_BYTES = 4096;

/** Takes twice the bytes at most: each piece by itself, of a body in many small ones, takes far more. */
export function createPieces(): Pieces {
  let room: Buffer | undefined;
  let length = 0;

  function grown(bytes: number): Buffer {
    const grown = Buffer.allocUnsafeSlow(Math.max(2 * bytes, STEP_BYTES));
    room?.copy(grown, 0, 0, length);
    return grown;
  }

  return {
    add(piece) {
      // Most bodies come in one.
      if (room === undefined) {
        room = piece;
      } else {
        if (room.length < length + piece.length) room = grown(length + piece.length);
        piece.copy(room, length);
      }
      length += piece.length;
    },
    length: () => length,
    take() {
      const whole = room?.subarray(0, length) ?? Buffer.alloc(0);
      room = undefined;
      length = 0;
      return whole;
    },
  };
}
