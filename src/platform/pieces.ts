// Handles bytes in consecutive pieces, which are received, joined, cut and freed.
import { MessageChannel } from 'node:worker_threads';
import { openWorkspace } from './scan/scan-json.ts';

/** Concatenates pieces. The result is valid until the next call, or the next scan. */
export function joinPieces(pieces: readonly Uint8Array[]): Buffer {
  const [first] = pieces;
  if (pieces.length === 1 && first !== undefined) return toBuffer(first);
  const length = countBytes(pieces);
  const workspace = openWorkspace(length)?.bytes;
  if (workspace === undefined) return Buffer.concat(pieces, length);
  let at = 0;
  for (const piece of pieces) {
    workspace.set(piece, at);
    at += piece.length;
  }
  return workspace.subarray(0, length);
}

export const countBytes = (pieces: readonly Uint8Array[]) =>
  pieces.reduce((sum, piece) => sum + piece.length, 0);

/** The same bytes as a Buffer, without copying. */
export const toBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Bytes whose parts are of the same class: parts of a `Buffer` are Buffers. */
type Sliceable<Piece> = { subarray(start: number, end: number): Piece } & Uint8Array;

/** Drops `start` bytes at the start and `end` bytes at the end. No empty pieces remain. */
export function cutPieces<Piece extends Sliceable<Piece>>(
  pieces: readonly Piece[],
  start: number,
  end: number,
): readonly Piece[] {
  const last = countBytes(pieces) - end;
  const cut: Piece[] = [];
  let at = 0;
  for (const piece of pieces) {
    if (at >= last) break;
    const behind = at + piece.length;
    if (behind > start)
      cut.push(piece.subarray(Math.max(0, start - at), Math.min(piece.length, last - at)));
    at = behind;
  }
  return cut;
}

/** The UTF-8 byte order mark: not part of the text, and not allowed in JSON (RFC 8259 §8.1). */
const MARK = [0xef, 0xbb, 0xbf] as const;

/** The pieces without a byte order mark at their start; the same array if there is none. */
export function dropByteOrderMark<Piece extends Sliceable<Piece>>(pieces: readonly Piece[]) {
  // Fast path: hardly any text begins with a mark.
  if (pieces[0]?.[0] !== MARK[0]) return pieces;
  const starts = pieces.slice(0, MARK.length).map((piece) => piece.subarray(0, MARK.length));
  const head = Buffer.concat(starts);
  return MARK.every((byte, at) => head[at] === byte) ? cutPieces(pieces, MARK.length, 0) : pieces;
}

/** Bytes of a body or an event as they arrive. */
export type GrowingBuffer = ReturnType<typeof createGrowingBuffer>;

/** Minimum growth in bytes. */
const STEP_BYTES = 4096;

/** Takes at most twice the memory of the bytes; many small pieces would take far more. */
export function createGrowingBuffer() {
  let buffer: Buffer | undefined;
  let length = 0;

  return {
    append(piece: Buffer) {
      const bytes = length + piece.length;
      // Most bodies arrive in one piece.
      if (buffer === undefined) {
        buffer = piece;
      } else {
        if (buffer.length < bytes) {
          const grown = Buffer.allocUnsafeSlow(Math.max(2 * bytes, STEP_BYTES));
          buffer.copy(grown, 0, 0, length);
          buffer = grown;
        }
        piece.copy(buffer, length);
      }
      length = bytes;
    },
    byteLength: () => length,
    /** Returns all bytes and resets the buffer. */
    take(): Buffer {
      const whole = buffer?.subarray(0, length) ?? Buffer.alloc(0);
      buffer = undefined;
      length = 0;
      return whole;
    },
  };
}

/** This many pieces are kept as received, whatever their size; further pieces only if they are at least `LARGE_BYTES` long. */
const MAX_SMALL_PIECES = 16;
const LARGE_BYTES = 8192;

/** Pieces as received, except that many small pieces are copied into one: small buffers take more memory than their bytes. */
export class PieceList {
  byteLength = 0;
  private pieces: Buffer[] = [];
  /** Small pieces that follow `pieces`. */
  private rest: GrowingBuffer | undefined = undefined;
  /** The number of pieces that keep no larger chunk in memory. */
  private released = 0;

  add(piece: Buffer): void {
    if (piece.length === 0) return;
    this.byteLength += piece.length;
    if (this.pieces.length >= MAX_SMALL_PIECES && piece.length < LARGE_BYTES) {
      if (this.rest === undefined) {
        this.rest = createGrowingBuffer();
        this.rest.append(copyPiece(piece));
      } else this.rest.append(piece);
      return;
    }
    if (this.rest !== undefined) this.pieces.push(this.rest.take());
    this.rest = undefined;
    this.pieces.push(piece);
  }

  releaseChunks(): void {
    for (const piece of releaseChunks(this.pieces.slice(this.released))) {
      this.pieces[this.released] = piece;
      this.released += 1;
    }
  }

  /** Returns all pieces and empties the list. */
  take(): Buffer[] {
    const { pieces, rest } = this;
    this.byteLength = 0;
    this.pieces = [];
    this.rest = undefined;
    this.released = 0;
    if (rest !== undefined) pieces.push(rest.take());
    return pieces;
  }
}

/**
 * The pieces, but with copies of those that make up no more than half of a chunk, since a part keeps its whole chunk in memory. So
 * no two messages keep parts of the same chunk.
 */
export const releaseChunks = <Piece extends Uint8Array>(
  pieces: readonly Piece[],
): (Piece | Buffer)[] =>
  pieces.map((piece) => (2 * piece.length <= piece.buffer.byteLength ? copyPiece(piece) : piece));

/** Copies without Node.js's buffer pool, which is a chunk as well. */
function copyPiece(piece: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(piece.length);
  copy.set(piece);
  return copy;
}

// Frees received bodies as soon as they have been passed on. Left to garbage collection, the bodies received between two
// collections of the young generation make V8 collect the old generation instead, with pauses for all calls (docs/decisions/0022).

const RECEIVED = Symbol('received');

/**
 * Allocates memory for received bytes. `freeReceived` may free it, except if it is small: small allocations share memory with
 * others.
 */
export function allocateReceived(bytes: number): Buffer {
  if (bytes < LARGE_BYTES) return Buffer.allocUnsafe(bytes);
  const buffer = Buffer.allocUnsafeSlow(bytes);
  Reflect.set(buffer.buffer, RECEIVED, true);
  return buffer;
}

/** A closed port discards everything that is transferred to it (HTML §9.4.4), in a fifth of the time of `structuredClone`. */
const closedPort = openClosedPort();

function openClosedPort() {
  const { port1 } = new MessageChannel();
  port1.close();
  return port1;
}

/**
 * Frees the memory of received bytes; other pieces stay as they are. No view of the memory can be read afterwards, so nobody ever
 * sees the data for which it is used next.
 */
export function freeReceived(pieces: readonly Uint8Array[]): void {
  const buffers = new Set<ArrayBuffer>();
  for (const { buffer } of pieces)
    if (RECEIVED in buffer && buffer.byteLength > 0 && buffer instanceof ArrayBuffer)
      buffers.add(buffer);
  if (buffers.size > 0) closedPort.postMessage(undefined, [...buffers]);
}
