// §18.5: the one form of a resource's URI or template that patterns are compared with.

/**
 * The URI with each `%41` as its character, once. Undefined, so that no pattern fits, for what a server
 * could read as something else than what the pattern was compared with: an encoding that is broken, or encoded
 * again; `.` and `..` as parts of a path, in any spelling; control characters; what ends a host, encoded in it.
 * Otherwise nothing is changed: case and Unicode form count.
 */
export function decodeResource(uri: string): string | undefined {
  // Of `https://good.example%2F@other.example/` the host is other.example.
  if (ENCODED_DELIMITER.test(AUTHORITY.exec(uri)?.[1] ?? '')) return undefined;
  const decoded = decode(uri);
  if (decoded === undefined || UNREADABLE.test(decoded)) return undefined;
  // Servers that fold compatible characters read the full-width `．．／` as `../`.
  const folded = ONLY_ASCII.test(decoded) ? decoded : decoded.normalize('NFKC');
  return ENCODED.test(folded) || folded.split(SEPARATORS).some(isDotSegment) ? undefined : decoded;
}

/** What stands between `://` and the path, with user name and port. */
const AUTHORITY = /^[^:/?#]*:[/\\]{2}([^/\\?#]*)/;
/** `/`, `\\`, `?`, `#`, `@` and `:`. */
const ENCODED_DELIMITER = /%(2f|5c|3f|23|40|3a)/i;
const ENCODED = /%[0-9a-f]{2}/i;
/** Control characters, which some parsers leave out, and halves of characters. */
const UNREADABLE = /[\p{Cc}\p{Cs}]/u;
const ONLY_ASCII = /^[\x20-\x7E]*$/;
const SEPARATORS = /[/\\?#&=;:]/;

function decode(uri: string): string | undefined {
  try {
    return decodeURIComponent(uri);
  } catch {
    return undefined;
  }
}

const isDotSegment = (segment: string): boolean => /^\s*\.{1,2}\s*$/.test(segment);
