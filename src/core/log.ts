import { type DestinationStream, pino } from 'pino';
import { getErrorCode } from './errors/error-code.ts';

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A log line is one JSON object: a message that says what an operator can do, and its facts. */
export interface Log {
  error(message: string, facts?: Facts): void;
  warn(message: string, facts?: Facts): void;
  info(message: string, facts?: Facts): void;
  debug(message: string, facts?: Facts): void;
  /** Whether a line of this level is written: asked where its facts cost something. */
  isWritten(level: LogLevel): boolean;
}

/** Never put a token, code, verifier or secret here. `cause` may be any thrown value. */
export type Facts = Readonly<Record<string, unknown>> & { readonly cause?: unknown };

/** Callers choose the text: enough of it to recognize it by. */
export const truncateForLog = (text: string): string => text.slice(0, 200);

/**
 * JSON lines, written synchronously so that none is lost at exit. `origin` is in each of them: which
 * of several processes wrote it.
 */
export function createLog(
  level: LogLevel,
  destination?: DestinationStream,
  origin: { readonly worker: number } | null = null,
): Log {
  const out = destination ?? pino.destination({ fd: 1, sync: true });
  const logger = pino(
    {
      level,
      base: origin,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (text) => out.write(escapeUnprintable(text)) },
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

/**
 * What JSON does not escape although terminals and viewers act on it: control characters, line ends
 * besides LF, marks that turn the reading direction. Names that callers choose may contain them.
 */
const UNPRINTABLE = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

export const escapeUnprintable = (json: string): string =>
  json.replace(UNPRINTABLE, escapeCharacter);

const escapeCharacter = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The chain of messages of an error ("fetch failed: connect ECONNREFUSED …"), without stacks. */
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
  return messages.join(': ');
}
