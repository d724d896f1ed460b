// RFC 7523 §2.2, §3: what a client has signed to say who it is. `aud` is our issuer and nothing else, as the corrected text has
// it (draft-ietf-oauth-rfc7523bis): an assertion for another server must be worth nothing here, and the other way round.

import type { JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { isTime } from '../auth/claims.ts';
import {
  createTokenParser,
  failToken,
  type ParsedToken,
  type TokenForm,
} from '../auth/parse-token.ts';
import { readPayload } from '../auth/token-verifier.ts';

export const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

export interface ClientAssertion {
  readonly token: ParsedToken;
  /** `iss` and `sub`. */
  readonly clientId: string;
  readonly jti: string;
  /** Epoch seconds. */
  readonly exp: number;
}

export interface AssertionRules {
  /** Our issuer: `BASE_URL`. */
  readonly issuer: string;
  readonly clockToleranceSeconds: number;
}

/** Who makes one uses it now. */
const MAX_ASSERTION_SECONDS = 300;
const MAX_BYTES = 8192;
const MAX_JTI_LENGTH = 256;

const CLIENT_ASSERTION: TokenForm = {
  lengthSetting: '',
  kind: 'a client assertion',
  type: /^(application\/)?(client-authentication\+)?jwt$/i,
  types: 'JWT, client-authentication+jwt, or no typ',
  advice: {
    opaque: 'A client assertion is one (RFC 7523 §2.2).',
    encrypted: 'Send it without encryption.',
    signedBySecret: 'Sign it with the private key of the client.',
  },
};

/** One whose signature is not looked at yet. @throws GatewayError `invalid_token` that says what is wrong, for the log. */
export function createReadAssertion({ issuer, clockToleranceSeconds }: AssertionRules) {
  const parse = createTokenParser(MAX_BYTES, CLIENT_ASSERTION);

  /** `now` in epoch milliseconds. */
  return function readAssertion(text: string, nowMs: number): ClientAssertion {
    const token = parse(text);
    const claims = readPayload(token);
    const now = nowMs / 1000;
    const clientId = readText('sub', claims);
    if (claims.iss !== clientId) failClaim('iss', claims.iss, clientId);
    if (claims.aud !== issuer) failClaim('aud', claims.aud, issuer);
    const exp = readTime('exp', claims);
    if (now >= exp + clockToleranceSeconds) failClaim('exp', exp, `more than ${now}`);
    const latest = now + MAX_ASSERTION_SECONDS + clockToleranceSeconds;
    if (exp > latest) failClaim('exp', exp, `at most ${latest}`);
    checkBegin('iat', claims, { now, exp, clockToleranceSeconds });
    checkBegin('nbf', claims, { now, exp, clockToleranceSeconds });
    return { token, clientId, exp, jti: readText('jti', claims) };
  };
}

/** It need not be there; but it is no time to come, and no assertion is made to last. */
function checkBegin(
  name: 'iat' | 'nbf',
  claims: JsonObject,
  { now, exp, clockToleranceSeconds }: { now: number; exp: number; clockToleranceSeconds: number },
): void {
  if (claims[name] === undefined) return;
  const at = readTime(name, claims);
  const latest = Math.min(now + clockToleranceSeconds, exp);
  if (at > latest) failClaim(name, at, `at most ${latest}`);
  const earliest = now - MAX_ASSERTION_SECONDS - clockToleranceSeconds;
  if (name === 'iat' && at < earliest) failClaim(name, at, `at least ${earliest}`);
}

function readText(name: 'sub' | 'jti', claims: JsonObject): string {
  const value = claims[name];
  const isText = typeof value === 'string' && value !== '' && value.length <= MAX_JTI_LENGTH;
  return isText ? value : failClaim(name, value, `a text of 1 to ${MAX_JTI_LENGTH} characters`);
}

const readTime = (name: string, claims: JsonObject): number => {
  const value = claims[name];
  return isTime(value) ? value : failClaim(name, value, 'a number of seconds');
};

const failClaim = (name: string, found: unknown, expected: unknown): never =>
  failToken(`The ${name} of the client assertion is ${quote(found)}, and must be ${expected}.`, {
    found: `${name} ${quote(found, 200)}`,
    expected: `${name} ${expected}`,
  });
