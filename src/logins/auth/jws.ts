// RFC 7515 §5.2: Strictly parses tokens in compact serialization, and finds the key that verifies a token's signature.

import type { ErrorKey } from '../../errors/catalogue.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { BoundedMap } from '../../platform/bounded-map.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { parseObject } from '../../platform/json.ts';
import { MAX_QUOTED, quote } from '../../platform/text.ts';
import { type Algorithm, algorithms, type VerificationKey } from './jwk.ts';
import type { KeySet } from './key-set.ts';

interface TokenHeader {
  readonly alg: string;
  readonly kid: string | undefined;
  readonly algorithm: Algorithm;
}

/** A token of the right form, whose signature is not checked yet. */
export interface ParsedToken extends TokenHeader {
  /** The token as sent. */
  readonly text: string;
  readonly payload: Buffer;
  /** The SHA-256 of the text, if signers are remembered. */
  readonly digest: string | undefined;
  /** The identity of the key that signed it, if that is remembered. */
  readonly signedBy: string | undefined;
}

/** The form of one kind of token, checked before its signature, and advice for tokens of any other form. */
export interface TokenForm {
  /** Names the setting for the maximum length, after the number. */
  readonly lengthSetting?: string;
  /** With an article. */
  readonly kind: string;
  /** RFC 7519 §5.1: the `typ` of the header, if there is one. */
  readonly type: RegExp;
  /** Refuses tokens without a `typ`. */
  readonly isTypeRequired?: true;
  /** The accepted types in words. */
  readonly types: string;
  /** Advice if the token is not a JWT, is encrypted, or is signed by a shared secret. */
  readonly advice: {
    readonly opaque: string;
    readonly encrypted: string;
    readonly signedBySecret: string;
  };
}

export const ACCESS_TOKEN: TokenForm = {
  lengthSetting: ' (MAX_TOKEN_BYTES)',
  kind: 'an access token',
  // RFC 9068 §2.1.
  type: /^(jwt|(application\/)?at\+jwt)$/i,
  types: 'JWT, at+jwt, application/at+jwt, or no typ',
  advice: {
    opaque:
      'Most likely it is an opaque access token, which only its issuer can check. With OAUTH_MODE=broker the gateway issues its own tokens, and this does not matter (/modes). Otherwise configure the provider to issue JWT access tokens for this service (/providers).',
    encrypted: 'Switch encryption of access tokens off at the provider.',
    // Keycloak signs refresh tokens this way, and access tokens if configured to.
    signedBySecret:
      'If it is a refresh token, send the access token; if it is the access token, choose a different signature algorithm for access tokens at the provider.',
  },
};

/**
 * Creates the parser. It refuses tokens of more than `maxBytes` before anything else. `signers` has the identity of the key that
 * signed a token, by the SHA-256 of the token: the parts of such a token are not checked again, since the same text has the same
 * form.
 */
export function createTokenParser(
  maxBytes: number,
  form: TokenForm,
  signers?: BoundedMap<string, string>,
) {
  /** Tokens of one key have the same header: it is parsed only if it differs from the last one. */
  let lastHeader: { readonly text: string; readonly header: TokenHeader } | undefined;

  /** @throws GatewayError `invalid_token`. `jku`, `x5u`, `jwk` and `x5c` are never looked at. */
  return function parseToken(text: string): ParsedToken {
    if (text.length > maxBytes) {
      const { lengthSetting = '' } = form;
      failToken(
        `The token has ${text.length} bytes; at most ${maxBytes} are accepted${lengthSetting}.`,
        { found: `${text.length} bytes`, expected: `at most ${maxBytes} bytes` },
      );
    }
    const headerEnd = text.indexOf('.');
    const payloadEnd = text.indexOf('.', headerEnd + 1);
    if (payloadEnd < 0 || text.includes('.', payloadEnd + 1)) failParts(text, form);
    const headerText = text.slice(0, headerEnd);
    if (headerText !== lastHeader?.text) {
      const bytes = decodeBase64url(headerText, 'header');
      // A copy: a substring would keep the text of the whole token in memory.
      lastHeader = { text: bytes.toString('base64url'), header: parseHeader(bytes, form) };
    }
    const { alg, kid, algorithm } = lastHeader.header;
    const payloadText = text.slice(headerEnd + 1, payloadEnd);
    const digest = signers && hashSha256(text);
    const signedBy = digest && signers?.get(digest);
    const payload =
      signedBy === undefined
        ? decodeBase64url(payloadText, 'payload')
        : Buffer.from(payloadText, 'base64url');
    if (signedBy === undefined) decodeBase64url(text.slice(payloadEnd + 1), 'signature');
    return { text, alg, kid, algorithm, payload, digest, signedBy };
  };
}

function parseHeader(bytes: Buffer, form: TokenForm): TokenHeader {
  const header =
    parseObject(bytes) ?? failMalformed('The header of the token is not a JSON object.');
  const { alg, kid, typ } = header;
  // RFC 7515 §4.1.11: no extension is supported. RFC 7797 §7: JWTs must not use b64; leaving it out of crit is an attempt to
  // mislead verifiers.
  if ('crit' in header || 'b64' in header)
    failMalformed('The header of the token has a critical extension (crit or b64).');
  if (typeof alg !== 'string') return failMalformed('The header of the token names no algorithm.');
  if (kid !== undefined && typeof kid !== 'string')
    return failMalformed('The kid in the header of the token is not a string.');
  const isRightType =
    typ === undefined ? !form.isTypeRequired : typeof typ === 'string' && form.type.test(typ);
  if (!isRightType)
    failToken(
      `The typ in the header of the token is ${quote(typ)}, which is not that of ${form.kind}; accepted are ${form.types}.`,
      { found: typ, expected: form.types },
    );
  return { alg, kid, algorithm: algorithms.get(alg) ?? failAlgorithm(alg, form) };
}

/** RFC 7515 §2: decodes base64url without padding, white space or stray bits. */
function decodeBase64url(text: string, part: string): Buffer {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.toString('base64url') === text) return bytes;
  return failMalformed(`The ${part} of the token is not base64url.`);
}

function failParts(text: string, { advice }: TokenForm): never {
  const count = text.split('.').length;
  return failToken(
    count === 5
      ? `The token is not a JWT that this service can read: its five parts are those of an encrypted token (JWE). ${advice.encrypted}`
      : `The token is not a JWT (three parts with dots between them). ${advice.opaque}`,
    { found: `${count} ${count === 1 ? 'part' : 'parts'}`, expected: 'a JWT of three parts' },
  );
}

function failAlgorithm(alg: string, { advice }: TokenForm): never {
  const expected = [...algorithms.keys()].join(', ');
  const explanation = /^HS/.test(alg)
    ? ` Only its issuer can check this one. ${advice.signedBySecret}`
    : '';
  return failToken(
    `The algorithm of the token is ${quote(alg)}; accepted are ${expected}.${explanation}`,
    { found: alg, expected },
  );
}

const failMalformed = (details: string): never =>
  failToken(details, { found: 'a malformed token', expected: 'a signed JWT (RFC 7519)' });

/** @throws GatewayError `invalid_token`. */
export const readPayload = ({ payload }: ParsedToken) =>
  parseObject(payload) ??
  failToken('The payload of the token is not a JSON object.', {
    found: 'a malformed payload',
    expected: 'a JSON object',
  });

// §5.2: finds the key that signed a token. The result depends only on the token and the key, so it may be remembered; checks that
// depend on anything else (issuer, audience, times, kind of token) are never cached.

/** Finds the key that made the signature. A remembered signer counts as long as it is among the keys. */
export function findSigner(
  { text, alg, algorithm, signedBy }: ParsedToken,
  keys: readonly VerificationKey[],
): VerificationKey | undefined {
  if (signedBy !== undefined) for (const key of keys) if (key.identity === signedBy) return key;
  const inputEnd = text.lastIndexOf('.');
  // RFC 7515 §5.2: the signing input is header and payload, as sent.
  const signingInput = Buffer.from(text.slice(0, inputEnd), 'latin1');
  const signature = Buffer.from(text.slice(inputEnd + 1), 'base64url');
  return keys.find(
    ({ key, algorithms: usable }) =>
      usable.has(alg) && algorithm.verify(signingInput, key, signature),
  );
}

/**
 * Finds the cached key that made the signature; undefined if a newer key may have made it.
 *
 * @throws GatewayError `invalid_token` if no key did.
 */
export function findSignerAtHand(token: ParsedToken, keySet: KeySet): VerificationKey | undefined {
  const known = keySet.find(token);
  const signer = findSigner(token, known);
  if (signer !== undefined) return signer;
  // A known kid settles it, so that forged tokens cannot flood the provider. Without a known kid, the key may be new at the
  // provider.
  const isSettled = token.kid !== undefined && known.some(({ kid }) => kid === token.kid);
  return isSettled ? failSignature(token) : undefined;
}

/**
 * Fetches keys, and finds the one that made the signature. `beforeFetch` is called before each fetch.
 *
 * @throws GatewayError `invalid_token` or `key_set_unavailable`.
 */
export async function fetchSigner(
  token: ParsedToken,
  keySet: KeySet,
  beforeFetch = async () => {},
): Promise<VerificationKey> {
  if (!keySet.isFetched) {
    await beforeFetch();
    await keySet.waitForKeys();
    const signer = findSignerAtHand(token, keySet);
    if (signer !== undefined) return signer;
  }
  await beforeFetch();
  return findSigner(token, await keySet.findAfterRefresh(token)) ?? failSignature(token);
}

/** Finds the key that made the signature, and fetches keys if necessary. @throws GatewayError as `fetchSigner`. */
export const verifySignature = async (
  token: ParsedToken,
  keySet: KeySet,
): Promise<VerificationKey> =>
  (keySet.isFetched ? findSignerAtHand(token, keySet) : undefined) ?? fetchSigner(token, keySet);

const failSignature = ({ kid }: ParsedToken): never =>
  failToken('The signature of the token is not valid.', {
    found: `a signature that no key of the provider made (kid ${quote(kid)})`,
    expected: 'a signature by a key of the key set',
  });

// Refusals of tokens, with the found and the expected value for the bearer and for the log. Never put a token, or a part of one,
// here.

export interface FoundAndExpected {
  /** Chosen by the token: truncated if long. */
  readonly found: unknown;
  readonly expected: unknown;
}

/** @throws GatewayError `invalid_token`, or `key`, always. */
export function failToken(
  details: string,
  compared: FoundAndExpected,
  key: ErrorKey = 'invalid_token',
): never {
  return fail(key, { details, facts: { ...cutFound(compared) } });
}

export function cutFound({ found, expected }: FoundAndExpected): FoundAndExpected {
  const quoted = quote(found);
  return { found: quoted.length <= MAX_QUOTED ? found : quoted, expected };
}
