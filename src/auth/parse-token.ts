// RFC 7515 §5.2: the compact serialization, parsed strictly.

import type { ErrorKey } from '../errors/catalogue.ts';
import { fail } from '../errors/gateway-error.ts';
import { parseObject } from '../platform/json.ts';
import { MAX_QUOTED, quote } from '../platform/text.ts';
import { type Algorithm, algorithms } from './jwk.ts';

interface TokenHeader {
  readonly alg: string;
  readonly kid: string | undefined;
  readonly algorithm: Algorithm;
}

/** A token whose form is right; its signature is not yet checked. */
export interface ParsedToken extends TokenHeader {
  /** All of it, as it was sent. */
  readonly text: string;
  readonly payload: Buffer;
  readonly signature: Buffer;
}

/** @throws GatewayError `invalid_token`. `jku`, `x5u`, `jwk` and `x5c` are never looked at. */
export type ParseToken = (token: string) => ParsedToken;

/** `maxBytes` is `MAX_TOKEN_BYTES`: longer tokens are refused before anything else. */
export function createTokenParser(maxBytes: number): ParseToken {
  /** Tokens of one key have the same header: it is parsed again only where it differs from the last. */
  let lastHeader: { readonly text: string; readonly header: TokenHeader } | undefined;

  return function parseToken(text) {
    if (text.length > maxBytes) failLength(text.length, maxBytes);
    const headerEnd = text.indexOf('.');
    const payloadEnd = text.indexOf('.', headerEnd + 1);
    if (payloadEnd < 0 || text.includes('.', payloadEnd + 1)) failParts(text);
    const { alg, kid, algorithm } = readHeader(text.slice(0, headerEnd));
    return {
      text,
      alg,
      kid,
      algorithm,
      payload: decodeBase64url(text.slice(headerEnd + 1, payloadEnd), 'payload'),
      signature: decodeBase64url(text.slice(payloadEnd + 1), 'signature'),
    };
  };

  function readHeader(text: string): TokenHeader {
    if (text === lastHeader?.text) return lastHeader.header;
    const bytes = decodeBase64url(text, 'header');
    // A copy: a substring would keep the text of the whole token in memory.
    lastHeader = { text: bytes.toString('base64url'), header: parseHeader(bytes) };
    return lastHeader.header;
  }
}

function parseHeader(bytes: Buffer): TokenHeader {
  const header =
    parseObject(bytes) ?? failMalformed('The header of the token is not a JSON object.');
  const { alg, kid, typ } = header;
  // RFC 7515 §4.1.11: no extension is understood here. RFC 7797 §7: b64 is none of a JWT's, and
  // whoever leaves it out of crit hopes for a verifier that is misled.
  if ('crit' in header || 'b64' in header) {
    failMalformed('The header of the token has a critical extension (crit or b64).');
  }
  if (typeof alg !== 'string') return failMalformed('The header of the token names no algorithm.');
  if (kid !== undefined && typeof kid !== 'string') {
    return failMalformed('The kid in the header of the token is not a string.');
  }
  if (!isAccessTokenType(typ)) failType(typ);
  return { alg, kid, algorithm: algorithms.get(alg) ?? failAlgorithm(alg) };
}

/** RFC 7515 §2: base64url without padding, white space or stray bits. */
function decodeBase64url(text: string, part: string): Buffer {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.toString('base64url') === text) return bytes;
  return failMalformed(`The ${part} of the token is not base64url.`);
}

const failLength = (bytes: number, maxBytes: number) =>
  failToken(`The token has ${bytes} bytes; at most ${maxBytes} are accepted (MAX_TOKEN_BYTES).`, {
    found: `${bytes} bytes`,
    expected: `at most ${maxBytes} bytes`,
  });

function failParts(text: string): never {
  const count = text.split('.').length;
  return failToken(
    count === 5
      ? 'The token is not a JWT that this service can read: its five parts are those of an encrypted token (JWE). Switch encryption of access tokens off at the provider.'
      : 'The token is not a JWT (three parts with dots between them). Most likely it is an opaque access token, which only its issuer can check: configure the provider to issue JWT access tokens for this service, or set OAUTH_ACCESS_TOKEN=id_token with OAUTH_MODE=broker. The page on identity providers (/providers) says how.',
    { found: `${count} ${count === 1 ? 'part' : 'parts'}`, expected: 'a JWT of three parts' },
  );
}

const failType = (typ: unknown) =>
  failToken(
    `The typ in the header of the token is ${quote(typ)}, which is not that of an access token; accepted are ${ACCESS_TOKEN_TYPES}.`,
    { found: typ, expected: ACCESS_TOKEN_TYPES },
  );

function failAlgorithm(alg: string): never {
  const expected = [...algorithms.keys()].join(', ');
  return failToken(
    `The algorithm of the token is ${quote(alg)}; accepted are ${expected}.${/^HS/.test(alg) ? SIGNED_BY_SECRET : ''}`,
    { found: alg, expected },
  );
}

/** Keycloak signs its refresh tokens so, and access tokens where it is told to. */
const SIGNED_BY_SECRET =
  ' Only its issuer can check this one. If it is a refresh token, send the access token; if it is the access token, choose another signature algorithm for access tokens at the provider.';

const failMalformed = (details: string): never =>
  failToken(details, { found: 'a malformed token', expected: 'a signed JWT (RFC 7519)' });

/** RFC 7519 §5.1, RFC 9068 §2.1: the `typ` header of an access token, where there is one. */
const isAccessTokenType = (typ: unknown): boolean =>
  typ === undefined || (typeof typ === 'string' && /^(jwt|(application\/)?at\+jwt)$/i.test(typ));

const ACCESS_TOKEN_TYPES = 'JWT, at+jwt, application/at+jwt, or no typ';

// A refusal of a token says what was found and what is allowed, to its bearer and to the log alike.
// Never put a token, or a part of one, here.

export interface FoundAndExpected {
  /** Of the token's own choosing: it is cut where it is long. */
  readonly found: unknown;
  readonly expected: unknown;
}

/** @throws GatewayError `invalid_token`, or `key`, always. */
export function failToken(
  details: string,
  { found, expected }: FoundAndExpected,
  key: ErrorKey = 'invalid_token',
): never {
  const quoted = quote(found);
  const facts = { found: quoted.length <= MAX_QUOTED ? found : quoted, expected };
  return fail(key, { details, facts });
}
