import { writeSync } from 'node:fs';
import { type DestinationStream, pino } from 'pino';
import { type Clock, systemClock } from './clock.ts';
import { getErrorCode } from './error-code.ts';
import { escapeInvisible, toVisibleJson } from './invisible.ts';
import { isObject, type JsonObject } from './json.ts';
import { stripUrisIn } from './secret-texts.ts';

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;
/** The two that whatever waits and reports needs. */
export interface ClockAndLog {
  readonly clock: Clock;
  readonly log: Log;
}

export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ['json', 'text'] as const;

/** A log line is a message that says what an operator can do, and its facts. */
export interface Log {
  error(message: string, facts?: Facts): void;
  warn(message: string, facts?: Facts): void;
  info(message: string, facts?: Facts): void;
  debug(message: string, facts?: Facts): void;
  /** True if a line of this level is written, asked where its facts cost something: without it, each is given. */
  isWritten?(level: LogLevel): boolean;
}

/**
 * Never put a token, code, verifier or secret here. `cause` may be any thrown value. Of URIs, neither user info nor query nor
 * fragment is written; where a fact is one URI, `stripUri` it, which sees where it ends.
 */
export type Facts = JsonObject & { readonly cause?: unknown };

/** Callers choose the text: enough of it to recognize it by. */
export const truncateForLog = (text: string): string => text.slice(0, 200);

/** Lines are written at once, so that none is lost at exit. */
export function createLog(
  level: LogLevel,
  options: {
    /** `json`, an object for each line, unless given. */
    readonly format?: (typeof LOG_FORMATS)[number];
    /** Standard output unless given. */
    readonly destination?: DestinationStream;
    /** In each of the lines: which of several processes wrote it. */
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

/** Lines that nobody read yet. */
const MAX_WAITING_BYTES = 1_310_720;

/** Lines that it cannot take are lost, and counted in the first line that it takes again. */
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

/** The chain of messages of an error ("the key set cannot be used: connect ECONNREFUSED …"), without stacks, and fit for a page, too. */
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

// The lines of the log as people read them in a terminal (`LOG_FORMAT=text`).

const MARKS: Readonly<Record<string, string>> = { error: '✗', warn: '!', info: '·', debug: ' ' };

/** A line of JSON as text: its time here, a mark for its level, the message, and the facts that it does not say itself. */
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

/** A value that holds a line feed must not look like lines of the log. */
const toOneLine = (value: unknown) =>
  typeof value === 'string'
    ? toVisibleJson(value).slice(1, -1).replaceAll('\\"', '"')
    : toVisibleJson(value);

/** As logfmt does: a value that could be read as two, or as the end of the facts, stands between quotation marks. */
const quoteFact = (fact: unknown) =>
  typeof fact === 'string' && !PLAIN.test(fact) ? toVisibleJson(fact) : toOneLine(fact);

const PLAIN = /^[^\s"'`,()=\\]+$/;

// Lines to a pipe, a socket or a terminal. A reader that does not keep up must not stop the gateway: lines wait here,
// as many as there is room for, and what comes then is refused.

export type LineOutput = ReturnType<typeof createLineOutput>;

interface WaitingLine {
  bytes: Uint8Array;
  /** A part of it is written: the rest has to follow. */
  hasBegun: boolean;
  readonly settle?: (error?: unknown) => void;
}

const RETRY_MS = 20;
const MAX_WAIT_MS = 1000;

/** `fd` is one that does not block; where it does, nothing ever waits here. */
export function createLineOutput(fd: number, clock: Clock) {
  let waiting: WaitingLine[] = [];
  let waitingBytes = 0;

  /** The number of bytes that the system took: none while its own buffer is full. */
  function tryWrite(bytes: Uint8Array) {
    try {
      return writeSync(fd, bytes);
    } catch (error) {
      if (getErrorCode(error) === 'EAGAIN') return 0;
      throw error;
    }
  }

  /** Undefined where the system took the whole line. */
  function writeOrWait(
    line: string,
    maxWaitingBytes: number,
    settle?: WaitingLine['settle'],
  ): WaitingLine | undefined {
    const bytes = Buffer.from(line);
    const taken = waiting.length === 0 ? tryWrite(bytes) : 0;
    if (taken === bytes.length) return undefined;
    // The rest of a line that has begun is never refused.
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
      // Nobody will read it any more.
      const lost = waiting;
      waiting = [];
      waitingBytes = 0;
      for (const { settle } of lost) settle?.(error);
    }
  }

  /** So that it does not turn up after its caller was told that it was not written. */
  function giveUp(line: WaitingLine) {
    if (!line.hasBegun && waiting.includes(line)) {
      waiting = waiting.filter((other) => other !== line);
      waitingBytes -= line.bytes.length;
    }
    line.settle?.(new Error('Nobody reads what was written'));
  }

  return {
    /**
     * Returns at once. Lines wait while the reader does not keep up, `maxWaitingBytes` of them at most.
     *
     * @throws Error when no more may wait, or what the system says.
     */
    write(line: string, maxWaitingBytes: number) {
      writeOrWait(line, maxWaitingBytes);
    },
    /**
     * Until the system has the line: mostly at once, else for a second at most.
     *
     * @throws Error as `write` does, at once or by the promise.
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
    /** For the end of the process: waits for the reader, a second at most, and does nothing else meanwhile. */
    flush() {
      for (let waited = 0; waiting.length > 0 && waited < MAX_WAIT_MS; waited += RETRY_MS) {
        writeWaiting();
        if (waiting.length > 0) Atomics.wait(SLEEPER, 0, 0, RETRY_MS);
      }
    },
  };
}

const SLEEPER = new Int32Array(new SharedArrayBuffer(4));

/** The output of the process: the log, and an audit log beside it. */
export const standardOutput = createLineOutput(1, systemClock);
