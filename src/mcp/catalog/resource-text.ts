// §18.5: the one form of a resource's URI, or of a template, that patterns are compared with.

import { createBoundedMap } from '../../platform/bounded-map.ts';
import { MAX_TEXT_LENGTH } from '../../platform/glob.ts';
import { hashSha256 } from '../../platform/ids.ts';

/**
 * The URI with each `%41` as its character, once. Undefined, so that no pattern fits, for what a server
 * could read as something else than what the pattern was compared with: an encoding that is broken, or encoded
 * again; `.` and `..` as parts of a path, in any spelling; control characters; what ends a host, encoded in it.
 * Otherwise nothing is changed: case and Unicode form count.
 */
export function decodeResource(uri: string): string | undefined {
  const decoded = decodeOnce(uri);
  return decoded !== undefined && isUnambiguous(decoded) ? decoded : undefined;
}

/** `decodeResource` that remembers what it found of texts that take long: a server may list thousands of them. */
export function createDecodeResource(): (uri: string) => string | undefined {
  /** Keyed by the SHA-256 of the decoded text. */
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

/** Undefined where it cannot be read, or is longer than what a pattern fits. */
function decodeOnce(uri: string): string | undefined {
  if (uri.length > MAX_ENCODED_LENGTH) return undefined;
  // The host of `https://good.example%2F@other.example/` is other.example.
  if (ENCODED_DELIMITER.test(AUTHORITY.exec(uri)?.[1] ?? '')) return undefined;
  const decoded = decode(uri);
  if (decoded === undefined || decoded.length > MAX_TEXT_LENGTH) return undefined;
  return UNREADABLE.test(decoded) ? undefined : decoded;
}

/** One character may become eighteen here: so it is bounded before. */
function isUnambiguous(decoded: string): boolean {
  // Servers that fold compatible characters read the full-width `．．／` as `../../features/`.
  const folded = ONLY_ASCII.test(decoded) ? decoded : decoded.normalize('NFKC');
  return !ENCODED.test(folded) && !folded.split(SEPARATORS).some(isDotSegment);
}

/** Each character may be written as `%41`, in up to four bytes. */
const MAX_ENCODED_LENGTH = 6 * MAX_TEXT_LENGTH;

/** Matches what stands between `://` and the path, with user name and port. */
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

/** Why a pattern that `decodeResource` would change fits nothing: the rest of a sentence that begins with it. */
export const NEVER_FITS =
  'can never fit: URIs are compared decoded, and those with . or .. as a part of the path are refused. Write characters as they are, not as %20, and without such parts.';
