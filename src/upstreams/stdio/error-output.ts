// §18.3: what a process writes to its error output, as much of it as is looked at: it may write a million lines a second, of
// which the log takes a hundred a minute.
import type { Readable } from 'node:stream';
import type { Clock } from '../../platform/clock.ts';
import { createLineSplitter } from './line-splitter.ts';

/** Bytes of a line that are looked at. */
const MAX_LINE = 4096;
/** Bytes at the beginning of a large piece that are looked at, and at its end. */
const LOOKED_AT = 8192;
const LINE_FEED = 0x0a;
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
    const parts = selectLines(piece);
    for (const part of parts) splitter.add(part);
    if (parts.length === 1 && lines < MANY_LINES) return;
    output.pause();
    clock.after(Math.max(SHORT_PAUSE_MS, lines / LINES_PER_MS), () => output.resume());
  });
}

/** Whole lines of a large piece: a secret that is cut is not recognized. */
function selectLines(piece: Buffer): readonly Buffer[] {
  if (piece.length <= 2 * LOOKED_AT) return [piece];
  const firstEnd = piece.lastIndexOf(LINE_FEED, LOOKED_AT - 1) + 1;
  const lastStart = piece.indexOf(LINE_FEED, piece.length - LOOKED_AT) + 1;
  if (firstEnd === 0 || lastStart === 0) return [piece];
  return [piece.subarray(0, firstEnd), piece.subarray(lastStart)];
}
