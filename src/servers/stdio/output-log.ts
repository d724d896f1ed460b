// §18.3: what a server writes beside its messages, in the gateway's log.
import type { Readable } from 'node:stream';
import type { StdioUpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { createGrowingBuffer } from '../../platform/memory/user-budgets.ts';
import { shorten } from '../../platform/text.ts';
import { createLogThrottle, createWarnThrottle } from '../../platform/throttle.ts';

export type OutputLog = ReturnType<typeof createOutputLog>;

const MAX_CHARACTERS = 1000;

/** Shorter ones of them, such as `1` or `true`, stand in every text. */
const MIN_SECRET = 6;

/** Colours and moves of the cursor (ECMA-48): they say nothing in a log. */
const TERMINAL_SEQUENCES =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)/g;

/** Other control characters, line ends besides LF, and marks that turn the reading direction. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]+/g;

export function createOutputLog(config: StdioUpstreamConfig, log: Log, clock: Clock) {
  const { name: server } = config;
  const secrets = listSecretLines([...Object.values(config.env), ...config.secretArguments]);
  const throttle = createLogThrottle(clock, (kind, leftOut) =>
    log.warn(`${leftOut} more lines of the ${kind} of the server ${server} were left out.`, {
      server,
    }),
  );

  function toText(line: Buffer): string {
    let text = line.toString('utf8');
    for (const secret of secrets) text = text.replaceAll(secret, '[secret]');
    return shorten(text.replace(TERMINAL_SEQUENCES, '').replace(CONTROL, ' '), MAX_CHARACTERS);
  }

  function writeLine(kind: string, line: Buffer): void {
    if (!throttle.countLine(kind)) return;
    log.info(`${server}: ${toText(line)}`, { server });
  }

  const warnOfStrayLines = createWarnThrottle(clock, (line: Buffer) =>
    log.warn(
      `The server ${server} wrote to its standard output what is no message of MCP. It was skipped; a server must log to its error output.`,
      { server, line: toText(line) },
    ),
  );

  return {
    /** A line as it may stand in the log: short, harmless, without secrets. */
    toText,
    /** A line of its error output. */
    writeErrorLine(line: Buffer) {
      if (line.length > 0) writeLine('error output', line);
    },
    /** A line of its standard output that is no message: as its error output, with a warning once a minute. */
    writeStrayLine(line: Buffer) {
      if (line.length === 0) return;
      warnOfStrayLines(line);
      writeLine('standard output', line);
    },
  };
}

/** Long values first, so that none is cut by one that it contains; each line of those with several. */
const listSecretLines = (secrets: readonly string[]): readonly string[] =>
  [...new Set(secrets)]
    .flatMap((value) => value.split('\n'))
    .filter((value) => value.length >= MIN_SECRET)
    .sort((a, b) => b.length - a.length);

// §18.3: what a process writes to its error output, as much of it as is looked at: it may write a million lines a second, of
// which the log takes a hundred a minute.

/** Bytes of a line that are looked at. */
const MAX_LINE = 4096;
/** Bytes at the beginning of a large piece that are looked at, and at its end. */
const LOOKED_AT = 8192;
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

/** Told by a line-splitter; the bytes are valid during the call only. */
interface LineHandlers {
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

  /** Takes a piece of the current line; `isLast` where the line ends with it. */
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
    /** Bytes of the line that has begun. */
    get heldBytes() {
      return held.byteLength();
    },
  };
}

const withoutReturn = (line: Buffer): Buffer =>
  line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
