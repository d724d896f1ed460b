// Spec §5.2, §5.3, decisions 5: claims, after the signature.
import { fail } from '../../core/errors/gateway-error.ts';
import type { UserContext } from '../../core/user-context.ts';

export interface ClaimRules {
  readonly issuer: string;
  /** Any one of them must match exactly. */
  readonly audience: readonly string[];
  readonly toleranceSeconds: number;
}

type Claims = Readonly<Record<string, unknown>>;

/**
 * The user that a verified token speaks for. `now` in epoch milliseconds.
 *
 * @throws GatewayError with the reason of §7.1.
 */
export function readClaims(
  claims: Claims,
  token: string,
  { issuer, audience, toleranceSeconds }: ClaimRules,
  now: number,
): UserContext {
  const { iss, aud, exp, nbf, sub } = claims;
  const seconds = now / 1000;
  if (iss !== issuer) fail('invalid_issuer', { facts: { found: iss, expected: issuer } });
  if (!isMeantFor(aud, audience)) {
    fail('invalid_audience', { facts: { found: aud, expected: audience } });
  }
  if (!isTime(exp)) fail('invalid_token', { details: 'The token has no exp claim (a number).' });
  if (seconds >= exp + toleranceSeconds) fail('expired_token');
  if (nbf !== undefined && !(isTime(nbf) && seconds >= nbf - toleranceSeconds)) {
    fail('invalid_token', { details: 'The token is not valid yet.' });
  }
  if (typeof sub !== 'string' || sub === '' || LONE_SURROGATE.test(sub)) fail('missing_claim');
  return { sub, ...profile(claims), token };
}

/** Optional claims of another type are left out, not refused. */
function profile({ email, name, groups }: Claims): Pick<UserContext, 'email' | 'name' | 'groups'> {
  return {
    ...(typeof email === 'string' && { email }),
    ...(typeof name === 'string' && { name }),
    ...(isStrings(groups) && { groups }),
  };
}

/** No Unicode text: two of them would be one in UTF-8, and so in the store. */
const LONE_SURROGATE = /\p{Surrogate}/u;

const isMeantFor = (aud: unknown, audience: readonly string[]): boolean =>
  (Array.isArray(aud) ? aud : [aud]).some((one) => audience.includes(one));

const isTime = (value: unknown): value is number => Number.isFinite(value);

const isStrings = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');
