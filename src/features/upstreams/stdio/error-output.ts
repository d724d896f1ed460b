// §18.3: what a process writes to its error output, as much of it as is looked at: it may write a million lines a second, of
// which the log takes a hundred a minute.
import type { Readable } from 'node:stream';
import type { Clock } from '../../../core/clock.ts';
import { createLineSplitter } from './line-splitter.ts';

/** Bytes of a line that are looked at. */
const MAX_LINE = 4096;
/** Bytes at the beginning of a large piece that are looked at, and at its end. */
const LOOKED_AT = 4096;
const LINE_FEED = Buffer.from('\n');
const LINES_PER_MS = 10;
/** In one piece: fewer need no pause. */
const MANY_LINES = 1000;
/** After a large piece, in milliseconds. */
const SHORT_PAUSE_MS = 10;

/** `onLine` gets each line, or its beginning; the process waits while too much is written. */
export function readErrorOutput(
  output: Readable,
  clock: Clock,
  onLine: (line: Buffer) => void,
): void {
  let lines = 0;
  const takeLine = (line: Buffer) => {
    lines += 1;
    onLine(line);
  };
  const splitter = createLineSplitter(MAX_LINE, { onLine: takeLine, onTooLong: takeLine });

  output.on('data', (piece: Buffer) => {
    lines = 0;
    const isLarge = piece.length > 2 * LOOKED_AT;
    if (isLarge) {
      splitter.add(piece.subarray(0, LOOKED_AT));
      splitter.add(LINE_FEED);
      splitter.add(piece.subarray(-LOOKED_AT));
    } else splitter.add(piece);
    if (!isLarge && lines < MANY_LINES) return;
    output.pause();
    clock.after(Math.max(SHORT_PAUSE_MS, lines / LINES_PER_MS), () => output.resume());
  });
}
