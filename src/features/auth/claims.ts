// Spec §5.2, §5.3, decisions 5: claims, after the signature.
import { fail } from '../../core/errors/gateway-error.ts';
import type { UserContext } from '../../core/user-context.ts';

export interface ClaimRules {
  readonly issuer: string;
  /** Any one of them must match exactly. */
  readonly audience: readonly string[];
  /** The claim that must name one of them. */
  readonly audienceClaim: 'aud' | 'client_id';
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
  rules: ClaimRules,
  now: number,
): UserContext {
  const { issuer, toleranceSeconds } = rules;
  const { iss, exp, nbf, sub } = claims;
  const seconds = now / 1000;
  if (iss !== issuer) fail('invalid_issuer', { facts: { found: iss, expected: issuer } });
  checkAudience[rules.audienceClaim](claims, rules.audience);
  if (!isTime(exp)) fail('invalid_token', { details: 'The token has no exp claim (a number).' });
  if (seconds >= exp + toleranceSeconds) fail('expired_token');
  if (nbf !== undefined && !(isTime(nbf) && seconds >= nbf - toleranceSeconds)) {
    fail('invalid_token', { details: 'The token is not valid yet.' });
  }
  if (typeof sub !== 'string' || sub === '' || LONE_SURROGATE.test(sub)) fail('missing_claim');
  return { sub, ...profile(claims), token };
}

const checkAudience: Readonly<
  Record<ClaimRules['audienceClaim'], (claims: Claims, audience: readonly string[]) => void>
> = {
  aud({ aud }, audience) {
    if (!isMeantFor(aud, audience)) refuseAudience(aud, audience);
  },
  // Amazon Cognito: an access token names its client there, and has an aud only when it was made
  // for one resource. An ID token names the client in aud, and is no key to anything.
  client_id({ client_id: client, aud, token_use: use }, audience) {
    if (!isMeantFor(client, audience)) refuseAudience(client, audience);
    if (aud !== undefined && !isMeantFor(aud, audience)) refuseAudience(aud, audience);
    if (use !== 'access') {
      fail('invalid_token', { details: 'The token is no access token (token_use).' });
    }
  },
};

const refuseAudience = (found: unknown, expected: readonly string[]): never =>
  fail('invalid_audience', { facts: { found, expected } });

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
