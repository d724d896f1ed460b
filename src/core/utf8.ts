const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text that bytes from elsewhere spell, or undefined for what is no UTF-8. A byte order mark is
 * a character like any other, in every place: JSON must not begin with one (RFC 8259 §8.1), and
 * skipping it would give two spellings to the same text.
 */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Whether every `%` of the text begins an encoded character (RFC 3986 §2.1), in UTF-8. */
export function isPercentDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
