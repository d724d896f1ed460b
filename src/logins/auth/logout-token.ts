// §13.4: reports that the provider logged a user out: a logout token, fully verified (OpenID Connect Back-Channel Logout §2.6).

import { fail } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { isObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { UserIdentity } from '../grants/grant.ts';
import { readText } from '../identity/identity.ts';
import { cutFound, type FoundAndExpected, findSignerAtHand } from './jws.ts';
import type { KeySet } from './key-set.ts';
import {
  type ClaimCheck,
  checkAudience,
  checkExpiry,
  checkIssuedAt,
  checkIssuer,
  checkNotBefore,
  createReadToken,
  failClaim,
  nameMember,
  type ProviderTokenKind,
  type ProviderTokenRules,
  readTime,
  requireSigner,
} from './provider-token.ts';
import { formatSeconds, readSubject } from './token-verifier.ts';

/** The user or the session that the provider has logged out: `user`, `sid`, or both are set. */
export interface LogoutToken {
  readonly jti: string;
  /** When it stops being accepted if sent again, in epoch seconds. */
  readonly acceptedUntil: number;
  readonly user: UserIdentity | undefined;
  /** The session at the provider. */
  readonly sid: string | undefined;
}

/** Anybody may send one; real ones have a tenth of this size. */
const MAX_BYTES = 16_384;
/** Counted from its `iat`. It reports something that has just happened; a later sender is not the provider. */
const MAX_AGE_SECONDS = 600;

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/**
 * The sender learns which member is wrong. Its value, and the value that this gateway expects, only go to the log.
 *
 * @throws GatewayError `invalid_logout_token`, always.
 */
export function failLogoutToken(
  member: string,
  problem: string,
  compared: FoundAndExpected,
): never {
  return fail('invalid_logout_token', {
    details: `The logout token is not accepted: look at its ${member}.`,
    facts: { member, ...cutFound(compared), problem },
  });
}

const KIND: ProviderTokenKind = {
  name: 'logout token',
  form: {
    kind: 'a logout token',
    // Strictly: `JWT` is also the type of an ID token.
    type: /^logout\+jwt$/i,
    types: 'logout+jwt, or no typ',
    advice: {
      opaque: 'A logout token is one (OpenID Connect Back-Channel Logout §2.4).',
      encrypted: "Switch encryption of ID tokens off for the gateway's client at the provider.",
      signedBySecret:
        "Choose another signature algorithm for the ID tokens of the gateway's client at the provider: logout tokens have the same.",
    },
  },
  maxBytes: MAX_BYTES,
  fail: failLogoutToken,
};

/**
 * Does not check for repetition. Everything else is checked before the signature, so that no one can cause a key to be fetched for
 * a token that is not a logout token anyway.
 *
 * Both throw a GatewayError `invalid_logout_token`, whose facts are member, found, expected and problem.
 */
export function createLogoutTokenVerifier(clock: Clock, keySet: KeySet, rules: ProviderTokenRules) {
  const { issuer, baseUrl, clockToleranceSeconds } = rules;
  const readToken = createReadToken(KIND);

  function read(text: string) {
    const { token, claims } = readToken(text);
    const expected = { ...rules, now: clock.now() / 1000 };
    for (const check of CHECKS) check(KIND, claims, expected);
    const { exp, iat, sub, sid } = claims;
    if (sub === undefined && sid === undefined)
      failLogoutToken(
        'sub',
        'The logout token has neither a sub nor a sid claim: it names nobody.',
        { found: undefined, expected: 'sub, sid, or both' },
      );
    const lastMoment = Math.min(
      readTime(KIND, 'exp', exp),
      readTime(KIND, 'iat', iat) + MAX_AGE_SECONDS,
    );
    const logoutToken: LogoutToken = {
      jti: requireText('jti', claims.jti),
      acceptedUntil: lastMoment + clockToleranceSeconds,
      user:
        sub === undefined
          ? undefined
          : { issuer, sub: nameMember(KIND, 'sub', () => readSubject(claims, baseUrl)) },
      sid: sid === undefined ? undefined : requireText('sid', sid),
    };
    return { token, logoutToken };
  }

  return {
    /** Undefined if a key that is not cached may have signed it. */
    verifyAtHand(text: string) {
      const { token, logoutToken } = read(text);
      const signer = nameMember(KIND, 'signature', () => findSignerAtHand(token, keySet));
      return signer && logoutToken;
    },
    /** @throws GatewayError, also `key_set_unavailable`. */
    async verify(text: string) {
      const { token, logoutToken } = read(text);
      await requireSigner(KIND, token, keySet);
      return logoutToken;
    },
  };
}

/** Its age is checked once the times are known to be numbers. */
const checkAge: ClaimCheck = (kind, { iat }, { now, clockToleranceSeconds }) => {
  const at = readTime(kind, 'iat', iat);
  const limit = MAX_AGE_SECONDS + clockToleranceSeconds;
  if (now <= at + limit) return;
  failLogoutToken(
    'iat',
    `The logout token was issued ${formatSeconds(now - at)} ago; it must be no older than ${formatSeconds(limit)}.`,
    { found: at, expected: `at least ${now - limit}` },
  );
};

const checkEvents: ClaimCheck = (kind, { events }) => {
  const event = isObject(events) && Object.hasOwn(events, EVENT) ? events[EVENT] : undefined;
  if (isObject(event)) return;
  failClaim(kind, 'events', events, {
    mustBe: `have the member ${quote(EVENT)}, which must be an object`,
    expected: `an object with ${EVENT}`,
  });
};

/** §2.4: otherwise a logout token could be mistaken for an ID token, and vice versa. */
const checkNoNonce: ClaimCheck = (_kind, claims) => {
  if (!Object.hasOwn(claims, 'nonce')) return;
  failLogoutToken('nonce', 'The logout token has a nonce claim, which only an ID token has.', {
    found: 'a nonce',
    expected: 'none',
  });
};

/** In the order they are reported. */
const CHECKS: readonly ClaimCheck[] = [
  checkEvents,
  checkNoNonce,
  checkIssuer,
  checkAudience,
  checkExpiry,
  checkIssuedAt,
  checkAge,
  checkNotBefore,
];

const requireText = (member: string, found: unknown) =>
  readText(found) ??
  failClaim(KIND, member, found, {
    mustBe: 'be a non-empty string',
    expected: 'a non-empty string',
  });
