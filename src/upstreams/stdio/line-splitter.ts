import { createGrowingBuffer } from '../../platform/memory/growing-buffer.ts';

/** What a line-splitter tells; the bytes are valid during the call only. */
export interface LineHandlers {
  /** A whole line, without its end. */
  onLine(line: Buffer): void;
  /** The beginning of a line that is longer than `maxBytes`; the rest of it is left out. */
  onTooLong(start: Buffer): void;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Cuts a stream of bytes into lines. What waits for the end of its line is copied into one growing buffer: a
 * process may write bytes one by one, and each piece would cost an object.
 */
export function createLineSplitter(maxBytes: number, { onLine, onTooLong }: LineHandlers) {
  const held = createGrowingBuffer();
  let isSkipping = false;

  /** What belongs to the current line; `isLast` where the line ends with it. */
  function take(piece: Buffer, isLast: boolean): void {
    const length = held.byteLength();
    if (!isSkipping && length + piece.length > maxBytes) {
      held.append(piece.subarray(0, maxBytes - length));
      isSkipping = true;
      onTooLong(held.take());
    } else if (!isSkipping) {
      held.append(piece);
      if (isLast) onLine(withoutReturn(held.take()));
    }
    if (isLast) isSkipping = false;
  }

  return {
    add(chunk: Buffer) {
      let start = 0;
      for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
        take(chunk.subarray(start, end), true);
        start = end + 1;
      }
      if (start < chunk.length) take(chunk.subarray(start), false);
    },
    /** Of the line that has begun. */
    get heldBytes() {
      return held.byteLength();
    },
  };
}

const withoutReturn = (line: Buffer): Buffer =>
  line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
