// RFC 6749 §2.3, RFC 7521 §4.2: reads the credentials of a client, by one method per request.

import { failRequest, type RequestParameters } from '../../http/endpoint/parameters.ts';
import type { JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { createTokenParser, failToken, readPayload, type TokenForm } from '../auth/jws.ts';
import { isTime } from '../auth/token-verifier.ts';

export interface SecretCredentials {
  readonly clientId: string;
  readonly secret: string;
}

export interface AssertionCredentials {
  /** `client_id` is optional: the assertion also names the client. */
  readonly clientId: string | undefined;
  readonly assertion: string;
  readonly assertionType: string | undefined;
}

type Credentials = SecretCredentials | AssertionCredentials | 'malformed';

/** `WWW-Authenticate`, if the client used the header (RFC 6749 §5.2). */
export const hasTriedBasic = (authorization: string | undefined): boolean =>
  authorization !== undefined && BASIC.test(authorization);

const BASIC = /^Basic(?: |$)/i;

/** True if the request has more than an ID. */
export const hasCredentials = (
  parameters: RequestParameters,
  authorization: string | undefined,
): boolean =>
  authorization !== undefined || PROOFS.some((name) => parameters.get(name) !== undefined);

const PROOFS = ['client_secret', 'client_assertion', 'client_assertion_type'] as const;

/**
 * Undefined if the request has none.
 *
 * @throws GatewayError `oauth_invalid_request` for more than one method.
 */
export function readCredentials(
  parameters: RequestParameters,
  authorization: string | undefined,
): Credentials | undefined {
  const clientId = parameters.get('client_id');
  const secret = parameters.get('client_secret');
  const assertion = parameters.get('client_assertion');
  const assertionType = parameters.get('client_assertion_type');
  const hasAssertion = assertion !== undefined || assertionType !== undefined;
  const tried = [authorization !== undefined, secret !== undefined, hasAssertion];
  if (tried.filter(Boolean).length > 1)
    failRequest(
      'The request authenticates its client in more than one way (Authorization, client_secret, client_assertion). Use one.',
    );
  if (authorization !== undefined) return readBasic(authorization, clientId);
  if (secret !== undefined) return clientId === undefined ? 'malformed' : { clientId, secret };
  if (!hasAssertion) return undefined;
  return assertion === undefined ? 'malformed' : { clientId, assertion, assertionType };
}

/** RFC 7617, with both halves encoded as a form (RFC 6749 §2.3.1). */
function readBasic(authorization: string, clientId: string | undefined): Credentials {
  const [, encoded = ''] = /^Basic +([A-Za-z0-9+/_-]+={0,2})$/i.exec(authorization) ?? [];
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  const id = decodeForm(text.slice(0, Math.max(0, colon)));
  const secret = decodeForm(text.slice(colon + 1));
  const isRight = colon > 0 && id !== undefined && secret !== undefined && secret !== '';
  if (!isRight) return 'malformed';
  if (clientId !== undefined && clientId !== id)
    failRequest('The client_id does not match the Authorization header.');
  return { clientId: id, secret };
}

/** Undefined if it is not encoded this way. */
function decodeForm(text: string) {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

// RFC 7523 §2.2, §3: client assertions. `aud` must be our issuer and nothing else, as in the corrected text
// (draft-ietf-oauth-rfc7523bis): an assertion for another server must be worthless here, and vice versa.

export interface ClientAssertionRules {
  /** Our issuer: `BASE_URL`. */
  readonly issuer: string;
  readonly clockToleranceSeconds: number;
}

/** Clients create an assertion for immediate use. */
const MAX_ASSERTION_SECONDS = 300;
const MAX_BYTES = 8192;
const MAX_JTI_LENGTH = 256;

const CLIENT_ASSERTION: TokenForm = {
  kind: 'a client assertion',
  type: /^(application\/)?(client-authentication\+)?jwt$/i,
  types: 'JWT, client-authentication+jwt, or no typ',
  advice: {
    opaque: 'A client assertion is one (RFC 7523 §2.2).',
    encrypted: 'Send it without encryption.',
    signedBySecret: 'Sign it with the private key of the client.',
  },
};

const parseAssertion = createTokenParser(MAX_BYTES, CLIENT_ASSERTION);

/**
 * Reads an assertion without checking its signature. `nowMs` in epoch milliseconds, `exp` in seconds; `clientId` is `iss` and
 * `sub`.
 *
 * @throws GatewayError `invalid_token` with the problem, for the log.
 */
export function readAssertion(
  text: string,
  nowMs: number,
  { issuer, clockToleranceSeconds }: ClientAssertionRules,
) {
  const token = parseAssertion(text);
  const claims = readPayload(token);
  const now = nowMs / 1000;
  const clientId = readText('sub', claims);
  if (claims.iss !== clientId) failClaim('iss', claims.iss, clientId);
  if (claims.aud !== issuer) failClaim('aud', claims.aud, issuer);
  const exp = readTime('exp', claims);
  if (now >= exp + clockToleranceSeconds) failClaim('exp', exp, `more than ${now}`);
  const latest = now + MAX_ASSERTION_SECONDS + clockToleranceSeconds;
  if (exp > latest) failClaim('exp', exp, `at most ${latest}`);
  // `iat` and `nbf` are optional, but neither may be in the future. The assertion must not be older than the maximum lifetime.
  const begin = Math.min(now + clockToleranceSeconds, exp);
  for (const name of ['iat', 'nbf']) {
    if (claims[name] === undefined) continue;
    const at = readTime(name, claims);
    if (at > begin) failClaim(name, at, `at most ${begin}`);
    const earliest = now - MAX_ASSERTION_SECONDS - clockToleranceSeconds;
    if (name === 'iat' && at < earliest) failClaim(name, at, `at least ${earliest}`);
  }
  return { token, clientId, exp, jti: readText('jti', claims) };
}

function readText(name: 'sub' | 'jti', claims: JsonObject) {
  const value = claims[name];
  const isText = typeof value === 'string' && value !== '' && value.length <= MAX_JTI_LENGTH;
  return isText ? value : failClaim(name, value, `a text of 1 to ${MAX_JTI_LENGTH} characters`);
}

const readTime = (name: string, claims: JsonObject) => {
  const value = claims[name];
  return isTime(value) ? value : failClaim(name, value, 'a number of seconds');
};

/** The client does not learn about it. */
const failClaim = (name: string, found: unknown, expected: unknown): never =>
  failToken('A claim of the client assertion is wrong.', {
    found: `${name} ${quote(found, 200)}`,
    expected: `${name} ${expected}`,
  });
