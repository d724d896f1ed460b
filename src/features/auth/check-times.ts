// RFC 7519 §4.1.4, §4.1.5: exp and nbf, with advice where a clock may be wrong.
import { fail } from '../../core/errors/gateway-error.ts';
import { quote } from '../../core/quote.ts';
import { failToken } from './fail-token.ts';

/** A difference below this may well be one between two clocks. */
const MAX_CLOCK_DIFFERENCE_SECONDS = 600;

/** `new`: it came from the provider with this very answer. */
export type TokenAge = 'new' | 'unknown';

/**
 * `tolerance` and `now` in seconds, the latter since the epoch.
 *
 * @throws GatewayError `expired_token`, or `invalid_token`.
 */
export function checkTimes(
  claims: Readonly<Record<string, unknown>>,
  tolerance: number,
  now: number,
  age: TokenAge,
): void {
  const exp = readTime('exp', claims.exp);
  if (now >= exp + tolerance) {
    fail('expired_token', {
      details: `The token expired ${formatSeconds(now - exp)} ago.${adviseOnClocks(now - exp, tolerance, age)}`,
      facts: { exp, now },
    });
  }
  if (claims.nbf === undefined) return;
  const nbf = readTime('nbf', claims.nbf);
  if (now < nbf - tolerance) {
    fail('invalid_token', {
      details: `The token is not valid yet: its nbf claim lies ${formatSeconds(nbf - now)} ahead.${adviseOnClocks(nbf - now, tolerance, age)}`,
      facts: { nbf, now },
    });
  }
}

function readTime(claim: string, found: unknown): number {
  if (isTime(found)) return found;
  const details =
    found === undefined
      ? `The ${claim} claim of the token is missing; it must be a number.`
      : `The ${claim} claim of the token is ${quote(found)} and must be a number.`;
  return failToken(details, { found, expected: 'a number of seconds' });
}

const isTime = (value: unknown): value is number => Number.isFinite(value);

function formatSeconds(difference: number): string {
  const seconds = Math.ceil(difference);
  return seconds === 1 ? '1 second' : `${seconds} seconds`;
}

function adviseOnClocks(difference: number, tolerance: number, age: TokenAge): string {
  if (age !== 'new' && difference >= MAX_CLOCK_DIFFERENCE_SECONDS) return '';
  return ` If it was issued just now, the clock of the provider or of this service is wrong: compare them (OIDC_CLOCK_TOLERANCE_SECONDS allows ${formatSeconds(tolerance)}).`;
}
