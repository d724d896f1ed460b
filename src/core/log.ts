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
}

/** Never put a token, code, verifier or secret here. `cause` may be any thrown value. */
export type Facts = Readonly<Record<string, unknown>> & { readonly cause?: unknown };

/** JSON lines, written synchronously so that none is lost at exit. */
export function createLog(level: LogLevel, destination?: DestinationStream): Log {
  const out = destination ?? pino.destination({ fd: 1, sync: true });
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (text) => out.write(text.replace(UNPRINTABLE, escaped)) },
  );
  const line =
    (at: LogLevel) =>
    (message: string, { cause, ...facts }: Facts = {}): void => {
      if (!logger.isLevelEnabled(at)) return;
      logger[at](cause === undefined ? facts : { ...facts, cause: describeCause(cause) }, message);
    };
  return { error: line('error'), warn: line('warn'), info: line('info'), debug: line('debug') };
}

/**
 * What JSON leaves as it is and others obey: controls of a terminal, ends of line beside LF, marks
 * that turn the reading direction. They come in by names that callers choose.
 */
const UNPRINTABLE = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

const escaped = (character: string): string =>
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
