// §13.1, §13.4: what ID tokens and logout tokens have in common: how they are parsed, and the claims that both must have (OpenID
// Connect Core §3.1.3.7, Back-Channel Logout §2.6).

import { GatewayError } from '../../errors/gateway-error.ts';
import { describeIssuerMismatch } from '../../http/oauth-client/provider-metadata.ts';
import { isStringArray, type JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { VerificationKey } from './jwk.ts';
import {
  createTokenParser,
  type FoundAndExpected,
  type ParsedToken,
  readPayload,
  type TokenForm,
  verifySignature,
} from './jws.ts';
import type { KeySet } from './key-set.ts';
import { adviseOnClocks, describeWrong, formatSeconds, isTime } from './token-verifier.ts';

/** A kind of token that a provider signs: its form, and how a refusal speaks of it. */
export interface ProviderTokenKind {
  /** Without an article. */
  readonly name: string;
  readonly form: TokenForm;
  readonly maxBytes: number;
  /** @throws GatewayError always. */
  readonly fail: (member: string, details: string, compared: FoundAndExpected) => never;
}

/** Settings that the claims are compared with. */
export interface ProviderTokenRules {
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
  /** The gateway's own client at the provider. */
  readonly clientId: string;
  /** `BASE_URL`: the gateway's own name. No user may have it. */
  readonly baseUrl: string;
  readonly clockToleranceSeconds: number;
}

export interface ExpectedClaims extends ProviderTokenRules {
  /** Seconds since the epoch. */
  readonly now: number;
}

/** Parses a token whose signature and claims have not been verified yet. Throws the kind's error. */
export function createReadToken(kind: ProviderTokenKind) {
  const parseToken = createTokenParser(kind.maxBytes, kind.form);

  return function readToken(text: string) {
    const token = nameMember(kind, 'form', () => parseToken(text));
    return { token, claims: nameMember(kind, 'payload', () => readPayload(token)) };
  };
}

/** The key that made the signature. @throws GatewayError of the kind, or `key_set_unavailable`. */
export const requireSigner = (
  kind: ProviderTokenKind,
  token: ParsedToken,
  keySet: KeySet,
): Promise<VerificationKey> =>
  verifySignature(token, keySet).catch((thrown: unknown) => failAs(kind, 'signature', thrown));

// Code shared with access tokens calls this one "the token", and reports it as invalid.

export function nameMember<Value>(kind: ProviderTokenKind, member: string, read: () => Value) {
  try {
    return read();
  } catch (thrown) {
    return failAs(kind, member, thrown);
  }
}

/** @throws GatewayError of the kind for a problem with the token; otherwise rethrows the error. */
function failAs(kind: ProviderTokenKind, member: string, thrown: unknown): never {
  const isOfToken = thrown instanceof GatewayError && thrown.row.status === 401;
  if (!isOfToken) throw thrown;
  const { found, expected } = thrown.failure.facts ?? {};
  return kind.fail(member, thrown.message, { found, expected });
}

export function failClaim(
  kind: ProviderTokenKind,
  member: string,
  found: unknown,
  { mustBe, expected }: { readonly mustBe: string; readonly expected: string },
): never {
  const details = describeWrong(`${member} claim of the ${kind.name}`, found, mustBe);
  return kind.fail(member, details, { found, expected });
}

export type ClaimCheck = (
  kind: ProviderTokenKind,
  claims: JsonObject,
  expected: ExpectedClaims,
) => void;

export const checkIssuer: ClaimCheck = (kind, { iss }, { issuer }) => {
  if (iss === issuer) return;
  const details = `${describeIssuerMismatch(`iss claim of the ${kind.name}`, iss, issuer)} (OIDC_ISSUER).`;
  kind.fail('iss', details, { found: iss, expected: issuer });
};

export const checkAudience: ClaimCheck = (kind, { aud }, { clientId }) => {
  const names = typeof aud === 'string' ? [aud] : aud;
  if (isStringArray(names) && names.includes(clientId)) return;
  failClaim(kind, 'aud', aud, {
    mustBe: `name ${quote(clientId)} (OAUTH_CLIENT_ID)`,
    expected: clientId,
  });
};

export const checkExpiry: ClaimCheck = (kind, { exp }, { now, clockToleranceSeconds }) => {
  const at = readTime(kind, 'exp', exp);
  if (now < at + clockToleranceSeconds) return;
  const advice = adviseOnClocks(now - at, clockToleranceSeconds, true);
  kind.fail('exp', `The ${kind.name} expired ${formatSeconds(now - at)} ago.${advice}`, {
    found: at,
    expected: `more than ${now - clockToleranceSeconds}`,
  });
};

export const checkIssuedAt: ClaimCheck = (kind, { iat }, expected) =>
  checkPast(kind, 'iat', readTime(kind, 'iat', iat), expected);

export const checkNotBefore: ClaimCheck = (kind, { nbf }, expected) => {
  if (nbf !== undefined) checkPast(kind, 'nbf', readTime(kind, 'nbf', nbf), expected);
};

function checkPast(
  kind: ProviderTokenKind,
  member: string,
  at: number,
  { now, clockToleranceSeconds }: ExpectedClaims,
) {
  if (now >= at - clockToleranceSeconds) return;
  const advice = adviseOnClocks(at - now, clockToleranceSeconds, true);
  kind.fail(
    member,
    `The ${member} claim of the ${kind.name} is ${formatSeconds(at - now)} in the future.${advice}`,
    { found: at, expected: `at most ${now + clockToleranceSeconds}` },
  );
}

export const readTime = (kind: ProviderTokenKind, member: string, found: unknown): number =>
  isTime(found)
    ? found
    : failClaim(kind, member, found, { mustBe: 'be a number', expected: 'a number of seconds' });
