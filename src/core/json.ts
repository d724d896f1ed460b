// JSON from elsewhere, read without trust.

/** The object that the text, or its bytes in UTF-8, spells, or undefined. */
export function parseObject(
  source: Buffer | string,
): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(typeof source === 'string' ? source : utf8.decode(source));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The text that the bytes spell, or undefined for what is no UTF-8. */
export function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Whether JSON text nests arrays and objects deeper than `levels`. Parsing takes any depth; what
 * looks at the value afterwards, and calls itself, does not (RFC 8259 §9 lets parsers set limits).
 */
export function isDeeperThan(levels: number, text: string): boolean {
  // Each level takes two characters.
  if (text.length < 2 * levels) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = endOfString(text, at);
    else if (character === OPEN_ARRAY || character === OPEN_OBJECT) depth++;
    else if (character === CLOSE_ARRAY || character === CLOSE_OBJECT) depth--;
    if (depth > levels) return true;
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) {
    at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  }
  return at;
}
