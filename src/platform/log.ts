import { type DestinationStream, pino } from 'pino';
import { systemClock } from './clock.ts';
import { getErrorCode } from './error-code.ts';
import { escapeInvisible, toVisibleJson } from './invisible.ts';
import { isObject } from './json.ts';
import { standardOutput } from './line-output.ts';
import { stripUrisIn } from './strip-uri.ts';

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ['json', 'text'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** A log line is a message that says what an operator can do, and its facts. */
export interface Log {
  error(message: string, facts?: Facts): void;
  warn(message: string, facts?: Facts): void;
  info(message: string, facts?: Facts): void;
  debug(message: string, facts?: Facts): void;
  /** Whether a line of this level is written, asked where its facts cost something: without it, each is given. */
  isWritten?(level: LogLevel): boolean;
}

/**
 * Never put a token, code, verifier or secret here. `cause` may be any thrown value. Of URIs, neither user info nor query nor
 * fragment is written; where a fact is one URI, `stripUri` it, which sees where it ends.
 */
export type Facts = Readonly<Record<string, unknown>> & { readonly cause?: unknown };

/** Callers choose the text: enough of it to recognize it by. */
export const truncateForLog = (text: string): string => text.slice(0, 200);

export interface LogOptions {
  /** `json`, an object for each line, unless given. */
  readonly format?: LogFormat;
  /** Standard output unless given. */
  readonly destination?: DestinationStream;
  /** In each of the lines: which of several processes wrote it. */
  readonly origin?: { readonly worker: number };
}

/** Lines are written at once, so that none is lost at exit. */
export function createLog(level: LogLevel, options: LogOptions = {}): Log {
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

/** What it cannot take is lost, and counted in the first line that it takes again. */
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

const renderLoss = (lostLines: number): string =>
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
function renderLogText(json: string): string {
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
const toOneLine = (value: unknown): string =>
  typeof value === 'string'
    ? toVisibleJson(value).slice(1, -1).replaceAll('\\"', '"')
    : toVisibleJson(value);

/** As logfmt does: a value that could be read as two, or as the end of the facts, stands between quotation marks. */
const quoteFact = (fact: unknown): string =>
  typeof fact === 'string' && !PLAIN.test(fact) ? toVisibleJson(fact) : toOneLine(fact);

const PLAIN = /^[^\s"'`,()=\\]+$/;
