// Where the members of a JSON object stand in its bytes, found without making anything of them. Worth it for few values that
// are long: text in a result, say. The engine's own search skips a string many times faster than its parser reads it.

export interface ScannedMember {
  readonly name: string;
  /** Of its value: where its first byte is, and where what follows begins. */
  readonly start: number;
  readonly end: number;
}

/**
 * The members of the object that stands from `start` to `end`. That its brackets, names and values stand as RFC 8259 says is
 * proved, and so is the end of each string; what is in a string is not looked at. Undefined for what is no such object, and
 * for what has better be parsed: many values, line feeds and tabs, a member twice, or a string that begins with `sought`.
 */
export function scanObject(
  bytes: Buffer,
  start: number,
  end: number,
  sought: string,
): readonly ScannedMember[] | undefined {
  if (bytes[start] !== OPEN_OBJECT || PARSED_BYTES.some((byte) => bytes.includes(byte))) {
    return undefined;
  }
  const members: ScannedMember[] = [];
  const scan = { bytes, start, sought, steps: 0 };
  if (skipMembers(scan, start + 1, MAX_LEVELS, members) !== end) return undefined;
  const names = new Set(members.map(({ name }) => name));
  return names.size === members.length ? members : undefined;
}

/** A search, or a value, costs about as much as to parse so many bytes. */
const STEP_BYTES = 16;
/** Steps that may be taken in vain. */
const MAX_VAIN = 256;
/** Arrays and objects around one another. */
const MAX_LEVELS = 100;

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Line feed, carriage return, tab: between values of text that people read, and in strings an error that is often made. */
const PARSED_BYTES = [0x0a, 0x0d, 0x09];

interface Scan {
  readonly bytes: Buffer;
  readonly start: number;
  readonly sought: string;
  /** Searches and values so far. */
  steps: number;
}

/** Whether the parser would have come to `at` faster. */
function isTooSlow(scan: Scan, at: number): boolean {
  scan.steps += 1;
  return (scan.steps - MAX_VAIN) * STEP_BYTES > at - scan.start;
}

// Each of these returns where what follows begins, or NOWHERE.

const NOWHERE = -1;

function skipSpaces({ bytes }: Scan, start: number): number {
  let at = start;
  while (bytes[at] === SPACE) at += 1;
  return at;
}

function skipValue(scan: Scan, at: number, levels: number): number {
  if (levels < 0 || isTooSlow(scan, at)) return NOWHERE;
  switch (scan.bytes[at]) {
    case QUOTE:
      return skipString(scan, at + 1);
    case OPEN_OBJECT:
      return skipMembers(scan, at + 1, levels - 1, undefined);
    case OPEN_ARRAY:
      return skipItems(scan, at + 1, levels - 1);
    default:
      return skipScalar(scan.bytes, at);
  }
}

/** Behind the brace that opens them. */
function skipMembers(
  scan: Scan,
  start: number,
  levels: number,
  members: ScannedMember[] | undefined,
): number {
  const { bytes } = scan;
  let at = skipSpaces(scan, start);
  if (bytes[at] === CLOSE_OBJECT) return at + 1;
  for (;;) {
    if (bytes[at] !== QUOTE) return NOWHERE;
    const nameEnd = skipString(scan, at + 1);
    if (nameEnd === NOWHERE) return NOWHERE;
    const name = members && bytes.toString('utf8', at + 1, nameEnd - 1);
    // Spelled another way it may be that of another member.
    if (name?.includes('\\')) return NOWHERE;
    at = skipSpaces(scan, nameEnd);
    if (bytes[at] !== COLON) return NOWHERE;
    const valueStart = skipSpaces(scan, at + 1);
    const valueEnd = skipValue(scan, valueStart, levels);
    if (valueEnd === NOWHERE) return NOWHERE;
    if (name !== undefined) members?.push({ name, start: valueStart, end: valueEnd });
    at = skipSpaces(scan, valueEnd);
    if (bytes[at] === CLOSE_OBJECT) return at + 1;
    if (bytes[at] !== COMMA) return NOWHERE;
    at = skipSpaces(scan, at + 1);
  }
}

/** Behind the bracket that opens them. */
function skipItems(scan: Scan, start: number, levels: number): number {
  const { bytes } = scan;
  let at = skipSpaces(scan, start);
  if (bytes[at] === CLOSE_ARRAY) return at + 1;
  for (;;) {
    const end = skipValue(scan, at, levels);
    if (end === NOWHERE) return NOWHERE;
    at = skipSpaces(scan, end);
    if (bytes[at] === CLOSE_ARRAY) return at + 1;
    if (bytes[at] !== COMMA) return NOWHERE;
    at = skipSpaces(scan, at + 1);
  }
}

/** Behind the quote that opens it. */
function skipString(scan: Scan, start: number): number {
  const { bytes } = scan;
  let quote = bytes.indexOf(QUOTE, start);
  while (quote !== -1 && isEscaped(bytes, start, quote)) {
    if (isTooSlow(scan, quote)) return NOWHERE;
    quote = bytes.indexOf(QUOTE, quote + 1);
  }
  return quote === -1 || isSought(scan, start, quote) ? NOWHERE : quote + 1;
}

/** Bytes of a word, if all its letters are escaped (`\\u0061`). */
const MAX_WORD = 96;

/** Whether a string begins with what is sought. One in which something is escaped may. */
function isSought({ bytes, sought }: Scan, start: number, end: number): boolean {
  if (end - start < sought.length || end - start > MAX_WORD) return false;
  for (let at = start; at < end; at += 1) if (bytes[at] === BACKSLASH) return true;
  return (
    bytes[start] === sought.charCodeAt(0) && bytes.toString('latin1', start, end).startsWith(sought)
  );
}

/** Behind an odd number of backslashes. */
function isEscaped(bytes: Buffer, start: number, quote: number): boolean {
  let at = quote - 1;
  while (at >= start && bytes[at] === BACKSLASH) at -= 1;
  return (quote - at) % 2 === 0;
}

/** More than any number that is meant has. */
const MAX_SCALAR = 64;
const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?=[ ,\]}])/;

/** A number, `true`, `false` or `null`. */
function skipScalar(bytes: Buffer, start: number): number {
  const [found] = SCALAR.exec(bytes.toString('latin1', start, start + MAX_SCALAR)) ?? [];
  return found === undefined ? NOWHERE : start + found.length;
}
