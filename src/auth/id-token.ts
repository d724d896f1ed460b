// OpenID Connect Core §3.1.3.7: the ID token by which the provider says who logged in, checked in full.
import { createHash } from 'node:crypto';
import { GatewayError, toGatewayError } from '../errors/gateway-error.ts';
import type { Clock } from '../platform/clock.ts';
import { isStringArray, type JsonObject, parseObject } from '../platform/json.ts';
import { isNameOf } from './claims.ts';
import type { KeySet } from './key-set.ts';
import { createTokenParser, failToken, type ParsedToken } from './parse-token.ts';
import { describeIssuerMismatch } from './provider-metadata.ts';
import { findSigner, verifySignature } from './token-verifier.ts';

export interface ExpectedIdToken {
  /** Of the login; undefined at a renewal, where OpenID Connect Core §12.2 does without. */
  readonly nonce: string | undefined;
  /** That came with it. */
  readonly accessToken: string | undefined;
}

/** @throws GatewayError that names the claim, what was found and what was expected; or `key_set_unavailable`. */
export type VerifyIdToken = (idToken: string, expected: ExpectedIdToken) => Promise<IdTokenClaims>;

export type IdTokenClaims = JsonObject & { readonly iss: string; readonly sub: string };

export interface IdTokenRules {
  readonly keySet: KeySet;
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
  /** `OAUTH_CLIENT_ID`. */
  readonly clientId: string;
  /** `BASE_URL`: what the gateway is called. No user may be. */
  readonly baseUrl: string;
  readonly maxTokenBytes: number;
  readonly clockToleranceSeconds: number;
  readonly clock: Clock;
}

export function createIdTokenVerifier(rules: IdTokenRules): VerifyIdToken {
  const { keySet, issuer, clientId, baseUrl, clock, clockToleranceSeconds: tolerance } = rules;
  const parseToken = createTokenParser(rules.maxTokenBytes);

  async function parseAndVerify(idToken: string): Promise<ParsedToken> {
    try {
      const parsed = parseToken(idToken);
      await verifySignature(parsed, { keySet, findSigner });
      return parsed;
    } catch (thrown) {
      const { key, message, failure } = toGatewayError(thrown);
      if (key !== 'invalid_token') throw thrown;
      const details = `The identity provider's ID token cannot be used. ${message}`;
      throw new GatewayError('unusable_id_token', { ...failure, details });
    }
  }

  return async function verifyIdToken(idToken, { nonce, accessToken }) {
    const parsed = await parseAndVerify(idToken);
    const claims = parseObject(parsed.payload) ?? failClaim('payload', undefined, 'a JSON object');
    const { iss, sub, at_hash: atHash } = claims;
    if (iss !== issuer) {
      failToken(
        `${describeIssuerMismatch('iss claim of the ID token', iss, issuer)} (OIDC_ISSUER).`,
        { found: iss, expected: issuer },
        'unusable_id_token',
      );
    }
    checkAudience(claims, clientId);
    checkTimes(claims, clock.now() / 1000, tolerance);
    if (nonce !== undefined && claims.nonce !== nonce) {
      failClaim('nonce', claims.nonce, 'the one of this login');
    }
    if (atHash !== undefined && accessToken !== undefined) checkHash(atHash, accessToken, parsed);
    if (typeof sub !== 'string' || !isSubject(sub) || isNameOf(sub, baseUrl)) {
      return failClaim('sub', sub, 'a user, as a text that is not empty');
    }
    return { ...claims, iss: issuer, sub };
  };
}

function checkAudience({ aud, azp }: JsonObject, clientId: string): void {
  const audiences = typeof aud === 'string' ? [aud] : aud;
  if (!isStringArray(audiences) || !audiences.includes(clientId)) {
    failClaim('aud', aud, `${clientId} (OAUTH_CLIENT_ID)`);
  }
  if ((audiences.length > 1 || azp !== undefined) && azp !== clientId) {
    failClaim('azp', azp, `${clientId} (OAUTH_CLIENT_ID)`);
  }
}

/** `now` in seconds. */
function checkTimes({ exp, iat, nbf }: JsonObject, now: number, tolerance: number): void {
  if (!isTime(exp) || exp <= now - tolerance) failClaim('exp', exp, `a time after ${now}`);
  if (!isTime(iat) || iat > now + tolerance) failClaim('iat', iat, `a time before ${now}`);
  if (nbf !== undefined && (!isTime(nbf) || nbf > now + tolerance)) {
    failClaim('nbf', nbf, `a time before ${now}`);
  }
}

const isTime = (value: unknown): value is number => Number.isFinite(value);

/** OpenID Connect Core §3.1.3.6: the left half of the hash by which the token was signed. */
function checkHash(found: unknown, accessToken: string, { alg }: ParsedToken): void {
  const digest = createHash(HASHES[alg.slice(-3)] ?? 'sha512')
    .update(accessToken)
    .digest();
  const expected = digest.subarray(0, digest.length / 2).toString('base64url');
  if (found !== expected) failClaim('at_hash', found, expected);
}

/** EdDSA of Ed25519 has SHA-512 of its own. */
const HASHES: Readonly<Record<string, string>> = { 256: 'sha256', 384: 'sha384', 512: 'sha512' };

/** No text that two users could have in common, and none that a machine client is called by. */
const isSubject = (sub: string): boolean =>
  sub !== '' && !/\p{Surrogate}/u.test(sub) && !sub.startsWith('client:');

function failClaim(claim: string, found: unknown, expected: string): never {
  const what = found === undefined ? 'is missing' : 'is not the right one';
  return failToken(
    `The identity provider's ID token cannot be used: its ${claim} ${what}.`,
    { found: found ?? `no ${claim}`, expected: `${claim}: ${expected}` },
    'unusable_id_token',
  );
}
