// §18.5: normalizes the URI of a resource or template for comparison with patterns.

import { createBoundedMap } from '../../platform/bounded-map.ts';
import { MAX_TEXT_LENGTH } from '../../platform/glob.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { decodePercent } from '../../platform/json.ts';

/**
 * Decodes each `%41` in the URI once. Returns undefined, so that no pattern matches, if a server could interpret the URI
 * differently from the compared text: invalid or repeated encoding; `.` and `..` as path segments, in any spelling; control
 * characters; encoded delimiters in the host. Nothing else is changed: case and Unicode normalization form are significant.
 */
export function decodeResource(uri: string): string | undefined {
  const decoded = decodeOnce(uri);
  return decoded !== undefined && isUnambiguous(decoded) ? decoded : undefined;
}

/** Memoizes results of `decodeResource` for strings that take a long time: a server may list thousands of them. */
export function createDecodeResource(): (uri: string) => string | undefined {
  /** By the SHA-256 of the decoded text. */
  const known = createBoundedMap<string, boolean>('resourceTexts');

  return function decodeAndRemember(uri) {
    const decoded = decodeOnce(uri);
    if (decoded === undefined) return undefined;
    if (ONLY_ASCII.test(decoded)) return isUnambiguous(decoded) ? decoded : undefined;
    const key = hashSha256(decoded);
    const remembered = known.get(key);
    const isKept = remembered ?? isUnambiguous(decoded);
    if (remembered === undefined) known.set(key, isKept);
    return isKept ? decoded : undefined;
  };
}

/** Undefined if the text is invalid, or longer than any pattern can match. */
function decodeOnce(uri: string) {
  if (uri.length > MAX_ENCODED_LENGTH) return undefined;
  // The host of `https://good.example%2F@other.example/` is other.example.
  if (ENCODED_DELIMITER.test(AUTHORITY.exec(uri)?.[1] ?? '')) return undefined;
  const decoded = decodePercent(uri);
  if (decoded === undefined || decoded.length > MAX_TEXT_LENGTH) return undefined;
  return UNREADABLE.test(decoded) ? undefined : decoded;
}

/** Normalization may turn one character into eighteen, so the length is bounded first. */
function isUnambiguous(decoded: string) {
  // Servers that normalize compatibility characters read the full-width `．．／` as `../`.
  const folded = ONLY_ASCII.test(decoded) ? decoded : decoded.normalize('NFKC');
  return (
    !ENCODED.test(folded) && !folded.split(SEPARATORS).some((segment) => DOT_SEGMENT.test(segment))
  );
}

/** Each character may be encoded as `%41`, in up to four bytes. */
const MAX_ENCODED_LENGTH = 6 * MAX_TEXT_LENGTH;

/** Matches the part between `://` and the path, including user name and port. */
const AUTHORITY = /^[^:/?#]*:[/\\]{2}([^/\\?#]*)/;
/** `/`, `\\`, `?`, `#`, `@` and `:`. */
const ENCODED_DELIMITER = /%(2f|5c|3f|23|40|3a)/i;
const ENCODED = /%[0-9a-f]{2}/i;
/** Control characters, which some parsers drop, and lone surrogates. */
const UNREADABLE = /[\p{Cc}\p{Cs}]/u;
const ONLY_ASCII = /^[\x20-\x7E]*$/;
const DOT_SEGMENT = /^\s*\.{1,2}\s*$/;
const SEPARATORS = /[/\\?#&=;:]/;

/** Why a pattern that `decodeResource` would change never matches; completes a sentence that begins with the pattern. */
export const NEVER_FITS =
  'can never fit: URIs are compared decoded, and those with . or .. as a part of the path are refused. Write characters as they are, not as %20, and without such parts.';
