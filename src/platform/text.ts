// Prepares untrusted text for a sentence, a page or a parameter.

/** Cuts text longer than `max` characters, ending in `…`. */
export function shorten(text: string, max: number): string {
  const characters = [...text];
  return characters.length > max ? `${characters.slice(0, max).join('')}…` : text;
}

/** `1 tool`, `2 tools`. */
export const countNoun = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Removes a trailing full stop, which some providers write and others do not. */
export const toSentence = (text: string): string => `${text.replace(/\.$/, '')}.`;

/**
 * RFC 6749 §4.1.2.1, §5.2: `error_description` is printable ASCII without quotes or backslashes. White space becomes a space,
 * anything else an apostrophe, which suits quotation marks.
 */
export const toErrorDescription = (text: string): string =>
  text.replace(/\s/g, ' ').replace(/[^\x20-\x21\x23-\x5B\x5D-\x7E]/g, "'");

/** Removes terminal escape sequences: colours, cursor movements, character sets (ECMA-48, ECMA-35). */
export const dropTerminalSequences = (text: string): string =>
  text.replace(
    /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b(?:[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]+[0-~]|.)/g,
    '',
  );

/** Maximum characters of caller-supplied text to echo. */
export const MAX_QUOTED = 400;

/** Renders an untrusted value as JSON, truncated, to quote it in a sentence. */
export function quote(value: unknown, maxLength = MAX_QUOTED): string {
  const text = toJson(value);
  return text.length <= maxLength ? text : `${text.slice(0, maxLength)}…`;
}

/** `JSON.stringify` overflows the stack for values that `JSON.parse` accepts. */
function toJson(value: unknown) {
  try {
    return JSON.stringify(value) ?? 'nothing';
  } catch {
    return 'a value that is nested too deep';
  }
}

// Writes commands to paste into a terminal. Also runs in browsers, so this file must not import Node.js modules when loaded.

/** Quotes text as one shell word without expansion. */
export const quoteForShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Quotes text as one shell word, but only if necessary. */
export const toShellWord = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : quoteForShell(text);

// Writes server-sent events (WHATWG HTML §9.2).

/**
 * Headers of an event stream: not cached, not transformed, and not buffered by proxies such as nginx.
 */
export const EVENT_STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

/** A comment, which clients ignore. */
export const KEEP_ALIVE = ': keep-alive\n\n';

/** One event with JSON text. A single data line suffices: JSON contains no raw line breaks. */
export const toSseEvent = (json: string): string => `event: message\ndata: ${json}\n\n`;
