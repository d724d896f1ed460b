// RFC 7519 §4.1.1, RFC 8414 §3.3: issuers are compared as they stand, character by character.
import { quote } from '../../platform/text.ts';

/** The discovery document names another issuer; the log said so when it was first seen. */
export class IssuerMismatch extends Error {
  override readonly name = 'IssuerMismatch';
}

/** How two issuers that are not the same differ, as a sentence without its full stop. */
export function describeIssuerMismatch(what: string, found: unknown, expected: string): string {
  if (found === undefined) return `The ${what} is missing; it must be ${quote(expected)}`;
  const differing = `The ${what} is ${quote(found)} and must be ${quote(expected)}`;
  if (found === `${expected}/`) return `${differing}, without the slash at the end`;
  if (typeof found === 'string' && `${found}/` === expected)
    return `${differing}, with the slash at the end`;
  return differing;
}
