// Text from elsewhere, made fit for a sentence, a page or a parameter.

/** Ends with `…` where it is longer than `max` characters. */
export function shorten(text: string, max: number): string {
  const characters = [...text];
  return characters.length > max ? `${characters.slice(0, max).join('')}…` : text;
}

/** `1 tool`, `2 tools`. */
export const countNoun = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Some providers end their descriptions with a full stop, others do not. */
export const toSentence = (text: string): string => `${text.replace(/\.$/, '')}.`;

/**
 * RFC 6749 §4.1.2.1, §5.2: `error_description` is printable ASCII without quote and backslash. White
 * space becomes spaces, anything else an apostrophe, as quotation marks read best.
 */
export const toErrorDescription = (text: string): string =>
  text.replace(/\s/g, ' ').replace(/[^\x20-\x21\x23-\x5B\x5D-\x7E]/g, "'");

/** Without colours, moves of the cursor and choices of characters (ECMA-48, ECMA-35). */
export const dropTerminalSequences = (text: string): string =>
  text.replace(
    /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b(?:[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]+[0-~]|.)/g,
    '',
  );

/** Characters. Limits how much caller-supplied text is echoed. */
export const MAX_QUOTED = 400;

/** A value from elsewhere as JSON, cut where it is long, to be shown in a sentence. */
export function quote(value: unknown, maxLength = MAX_QUOTED): string {
  const text = toJson(value);
  return text.length <= maxLength ? text : `${text.slice(0, maxLength)}…`;
}

/** JSON nests as deep as it likes when it is parsed, not when it is written. */
function toJson(value: unknown) {
  try {
    return JSON.stringify(value) ?? 'nothing';
  } catch {
    return 'a value that is nested too deep';
  }
}

// Commands that people paste into a terminal. Used in browsers as well, so this file needs nothing of Node.js when it is loaded.

/** As one word of a shell, in which nothing is expanded and nothing run. */
export const quoteForShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Without quotes where it needs none. */
export const toShellWord = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : quoteForShell(text);

// The three bytes that some programs write before a text in UTF-8. They are not part of it: `fetch` and event streams drop them.

const MARK = [0xef, 0xbb, 0xbf] as const;

const beginsWithMark = (bytes: Uint8Array) => MARK.every((byte, at) => bytes[at] === byte);

export const dropByteOrderMark = (bytes: Buffer): Buffer =>
  beginsWithMark(bytes) ? bytes.subarray(MARK.length) : bytes;

/** True if the bytes of a text, which came in pieces, begin with it. */
export function hasByteOrderMark(pieces: readonly Uint8Array[]): boolean {
  const [first] = pieces;
  // Nearly none does.
  if (first?.[0] !== MARK[0]) return false;
  const head = pieces.slice(0, MARK.length).map((piece) => piece.subarray(0, MARK.length));
  return beginsWithMark(Buffer.concat(head));
}

// Server-sent events, as the WHATWG HTML standard §9.2 writes them.

/**
 * Headers of an event stream: kept by no cache, changed by no proxy, and (nginx and its like) passed
 * on as it comes instead of being collected first.
 */
export const EVENT_STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

/** A comment, which every reader skips. */
export const KEEP_ALIVE = ': keep-alive\n\n';

/** One event with JSON text. One data line is enough: JSON has no raw ends of line. */
export const toSseEvent = (json: string): string => `event: message\ndata: ${json}\n\n`;
