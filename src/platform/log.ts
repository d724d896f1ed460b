import { writeSync } from 'node:fs';
import { type DestinationStream, pino } from 'pino';
import { type Clock, systemClock } from './clock.ts';
import { getErrorCode } from './error-code.ts';
import { escapeInvisible, toVisibleJson } from './invisible.ts';
import { isObject, type JsonObject } from './json.ts';
import { stripUrisIn } from './secret-texts.ts';

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;
/** Clock and log, for anything that waits and reports. */
export interface ClockAndLog {
  readonly clock: Clock;
  readonly log: Log;
}

export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ['json', 'text'] as const;

/** Writes log lines: a message that tells operators what to do, and its fields. */
export interface Log {
  error(message: string, facts?: Facts): void;
  warn(message: string, facts?: Facts): void;
  info(message: string, facts?: Facts): void;
  debug(message: string, facts?: Facts): void;
  /** True if lines of this level are written; checked where fields are costly to compute. If absent, all levels are written. */
  isWritten?(level: LogLevel): boolean;
}

/**
 * Never put a token, code, verifier or secret here. `cause` may be any thrown value. URIs are written without user info, query
 * and fragment; pass a field that is a single URI through `stripUri`, which knows where it ends.
 */
export type Facts = JsonObject & { readonly cause?: unknown };

/** Cuts text chosen by callers to a recognizable length. */
export const truncateForLog = (text: string): string => text.slice(0, 200);

/** Lines are written synchronously, so that none is lost at exit. */
export function createLog(
  level: LogLevel,
  options: {
    /** Default: `json`, one object per line. */
    readonly format?: (typeof LOG_FORMATS)[number];
    /** Default: standard output. */
    readonly destination?: DestinationStream;
    /** Written with each line, to tell several processes apart. */
    readonly origin?: { readonly worker: number };
  } = {},
): Log {
  const { format = 'json', destination = createStandardDestination(), origin = null } = options;
  const render = (json: string) =>
    format === 'json' ? escapeInvisible(stripUrisIn(json)) : renderLogText(stripUrisIn(json));
  const logger = pino(
    {
      level,
      base: origin,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (json) => destination.write(render(json)) },
  );
  const writeAt =
    (lineLevel: LogLevel) =>
    (message: string, given: Facts = {}): void => {
      if (!logger.isLevelEnabled(lineLevel)) return;
      const { cause, ...facts } = given;
      const logged = cause === undefined ? facts : { ...facts, cause: describeCause(cause) };
      logger[lineLevel](logged, message);
    };
  return {
    error: writeAt('error'),
    warn: writeAt('warn'),
    info: writeAt('info'),
    debug: writeAt('debug'),
    isWritten: (lineLevel) => logger.isLevelEnabled(lineLevel),
  };
}

/** Maximum bytes of lines that have not been read yet. */
const MAX_WAITING_BYTES = 1_310_720;

/** Lines that the output cannot accept are lost, and counted in the next line that it accepts. */
function createStandardDestination(): DestinationStream {
  let lostLines = 0;

  return {
    write(line) {
      try {
        standardOutput.write(
          lostLines === 0 ? line : line + renderLoss(lostLines),
          MAX_WAITING_BYTES,
        );
        lostLines = 0;
      } catch {
        lostLines += 1;
      }
    },
  };
}

const renderLoss = (lostLines: number) =>
  `${JSON.stringify({ level: 'warn', time: new Date(systemClock.now()).toISOString(), lostLines, msg: 'Nobody read standard output for a while, and lines of this log are lost.' })}\n`;

/**
 * The messages of an error and its causes ("the key set cannot be used: connect ECONNREFUSED …"), without stacks; safe to show on
 * pages.
 */
export function describeCause(cause: unknown): string {
  const messages: string[] = [];
  for (let at: unknown = cause; at !== undefined && messages.length < 5; ) {
    if (!(at instanceof Error)) {
      messages.push(String(at));
      break;
    }
    messages.push(at.message || (getErrorCode(at) ?? at.name));
    at = at.cause;
  }
  return stripUrisIn(messages.join(': '));
}

// Renders log lines for terminals (`LOG_FORMAT=text`).

const MARKS: Readonly<Record<string, string>> = { error: '✗', warn: '!', info: '·', debug: ' ' };

/** Renders a JSON line as text: local time, a mark for the level, the message, and the fields that the message does not repeat. */
function renderLogText(json: string) {
  const line: unknown = JSON.parse(json);
  if (!isObject(line)) return json;
  const { level, time, msg, ...facts } = line;
  const clock = new Date(String(time)).toTimeString().slice(0, 'hh:mm:ss'.length);
  const message = toOneLine(msg);
  const rest = Object.entries(facts)
    .filter(([, fact]) => !message.includes(toOneLine(fact)))
    .map(([name, fact]) => `${name}: ${quoteFact(fact)}`);
  const end = rest.length === 0 ? '' : ` (${rest.join(', ')})`;
  return `${clock} ${MARKS[String(level)] ?? ' '} ${message}${end}\n`;
}

/** Escapes line feeds, so that no value can look like a log line. */
const toOneLine = (value: unknown) =>
  typeof value === 'string'
    ? toVisibleJson(value).slice(1, -1).replaceAll('\\"', '"')
    : toVisibleJson(value);

/** Quotes values as logfmt does, if they contain spaces or delimiters. */
const quoteFact = (fact: unknown) =>
  typeof fact === 'string' && !PLAIN.test(fact) ? toVisibleJson(fact) : toOneLine(fact);

const PLAIN = /^[^\s"'`,()=\\]+$/;

// Writes lines to a pipe, socket or terminal. A slow reader must not stop the gateway: lines are queued up to a limit, and further
// lines are refused.

export type LineOutput = ReturnType<typeof createLineOutput>;

interface WaitingLine {
  bytes: Uint8Array;
  /** True if the line is partly written: the rest must follow. */
  hasBegun: boolean;
  readonly settle?: (error?: unknown) => void;
}

const RETRY_MS = 20;
const MAX_WAIT_MS = 1000;

/** `fd` should be non-blocking; with a blocking one, nothing is ever queued. */
export function createLineOutput(fd: number, clock: Clock) {
  let waiting: WaitingLine[] = [];
  let waitingBytes = 0;

  /** Returns the number of bytes that the system accepted: 0 while its buffer is full. */
  function tryWrite(bytes: Uint8Array) {
    try {
      return writeSync(fd, bytes);
    } catch (error) {
      if (getErrorCode(error) === 'EAGAIN') return 0;
      throw error;
    }
  }

  /** Undefined if the system accepted the whole line. */
  function writeOrWait(
    line: string,
    maxWaitingBytes: number,
    settle?: WaitingLine['settle'],
  ): WaitingLine | undefined {
    const bytes = Buffer.from(line);
    const taken = waiting.length === 0 ? tryWrite(bytes) : 0;
    if (taken === bytes.length) return undefined;
    // The rest of a partly written line is never refused.
    if (taken === 0 && waitingBytes + bytes.length > maxWaitingBytes)
      throw new Error(`Nobody reads what was written: ${waitingBytes} bytes wait`);
    const rest = { bytes: bytes.subarray(taken), hasBegun: taken > 0, ...(settle && { settle }) };
    if (waiting.length === 0) retryLater();
    waiting.push(rest);
    waitingBytes += rest.bytes.length;
    return rest;
  }

  function retryLater() {
    clock.after(RETRY_MS, () => {
      writeWaiting();
      if (waiting.length > 0) retryLater();
    });
  }

  function writeWaiting() {
    try {
      for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
        const taken = tryWrite(first.bytes);
        waitingBytes -= taken;
        if (taken < first.bytes.length) {
          first.bytes = first.bytes.subarray(taken);
          first.hasBegun ||= taken > 0;
          return;
        }
        waiting.shift();
        first.settle?.();
      }
    } catch (error) {
      // The reader no longer exists.
      const lost = waiting;
      waiting = [];
      waitingBytes = 0;
      for (const { settle } of lost) settle?.(error);
    }
  }

  /** Removes the line from the queue, so that it is not written after its caller was told that it failed. */
  function giveUp(line: WaitingLine) {
    if (!line.hasBegun && waiting.includes(line)) {
      waiting = waiting.filter((other) => other !== line);
      waitingBytes -= line.bytes.length;
    }
    line.settle?.(new Error('Nobody reads what was written'));
  }

  return {
    /**
     * Returns at once. While the reader is slow, up to `maxWaitingBytes` are queued.
     *
     * @throws Error if the queue is full, or the system's error.
     */
    write(line: string, maxWaitingBytes: number) {
      writeOrWait(line, maxWaitingBytes);
    },
    /**
     * Waits until the system has accepted the line: usually at once, at most a second.
     *
     * @throws Error like `write`, synchronously or by rejection.
     */
    writeThrough(line: string, maxWaitingBytes: number): undefined | Promise<void> {
      let settle: WaitingLine['settle'];
      const written = new Promise<void>((resolve, reject) => {
        settle = (error) => (error === undefined ? resolve() : reject(error));
      });
      const rest = writeOrWait(line, maxWaitingBytes, settle);
      if (rest === undefined) return undefined;
      const stop = clock.after(MAX_WAIT_MS, () => giveUp(rest));
      return written.finally(stop);
    },
    /** Blocks until the reader has caught up, for a second at most. For use when the process ends. */
    flush() {
      for (let waited = 0; waiting.length > 0 && waited < MAX_WAIT_MS; waited += RETRY_MS) {
        writeWaiting();
        if (waiting.length > 0) Atomics.wait(SLEEPER, 0, 0, RETRY_MS);
      }
    },
  };
}

const SLEEPER = new Int32Array(new SharedArrayBuffer(4));

/** Standard output of the process, for the log and an audit log. */
export const standardOutput = createLineOutput(1, systemClock);
