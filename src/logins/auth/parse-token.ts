// RFC 7515 §5.2: the compact serialization, parsed strictly.

import type { ErrorKey } from '../../errors/catalogue.ts';
import { fail } from '../../errors/gateway-error.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { parseObject } from '../../platform/json.ts';
import { MAX_QUOTED, quote } from '../../platform/text.ts';
import { type Algorithm, algorithms } from './jwk.ts';

interface TokenHeader {
  readonly alg: string;
  readonly kid: string | undefined;
  readonly algorithm: Algorithm;
}

/** Tells whether a token of this very text was found good before. */
export type IsKnownToken = (token: ParsedToken) => boolean;

/** Marks that tell tokens of one kind from others before their signature is checked, and what to do about another. */
export interface TokenForm {
  /** The setting of its largest length, to follow the number, where there is one. */
  readonly lengthSetting?: string;
  /** With its article. */
  readonly kind: string;
  /** RFC 7519 §5.1: the `typ` of the header, where there is one. */
  readonly type: RegExp;
  /** A token without it is none. */
  readonly isTypeRequired?: true;
  /** The same in words. */
  readonly types: string;
  /** Sentences about what is no JWT, about one that is encrypted, and about one that a shared secret signed. */
  readonly advice: {
    readonly opaque: string;
    readonly encrypted: string;
    readonly signedBySecret: string;
  };
}

const ACCESS_TOKEN: TokenForm = {
  lengthSetting: ' (MAX_TOKEN_BYTES)',
  kind: 'an access token',
  // RFC 9068 §2.1.
  type: /^(jwt|(application\/)?at\+jwt)$/i,
  types: 'JWT, at+jwt, application/at+jwt, or no typ',
  advice: {
    opaque:
      'Most likely it is an opaque access token, which only its issuer can check. With OAUTH_MODE=broker the gateway issues tokens of its own, and this does not matter (/modes). Otherwise configure the provider to issue JWT access tokens for this service (/providers).',
    encrypted: 'Switch encryption of access tokens off at the provider.',
    // Keycloak signs its refresh tokens so, and access tokens where it is told to.
    signedBySecret:
      'If it is a refresh token, send the access token; if it is the access token, choose another signature algorithm for access tokens at the provider.',
  },
};

/**
 * Tokens of more than `maxBytes` are refused before anything else. The parts of a known one are not looked at again: the
 * same text has the same form.
 */
export function createTokenParser(
  maxBytes: number,
  form: TokenForm = ACCESS_TOKEN,
  isKnown: IsKnownToken = () => false,
) {
  /** Tokens of one key have the same header: it is parsed again only where it differs from the last. */
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
    const token = new ParsedToken(text, lastHeader.header, headerEnd, payloadEnd);
    if (!isKnown(token)) token.checkParts();
    return token;
  };
}

/**
 * A token whose form is right; its signature is not yet checked. The signature of one that is known is never asked for, and to decode it
 * was a third of what its check took.
 */
export class ParsedToken implements TokenHeader {
  /** All of it, as it was sent. */
  readonly text: string;
  readonly alg: string;
  readonly kid: string | undefined;
  readonly algorithm: Algorithm;
  private readonly headerEnd: number;
  private readonly payloadEnd: number;
  private digest: string | undefined;
  private payload: Buffer | undefined;
  private signature: Buffer | undefined;

  constructor(text: string, header: TokenHeader, headerEnd: number, payloadEnd: number) {
    this.text = text;
    this.alg = header.alg;
    this.kid = header.kid;
    this.algorithm = header.algorithm;
    this.headerEnd = headerEnd;
    this.payloadEnd = payloadEnd;
  }

  /** @throws GatewayError `invalid_token`. */
  checkParts() {
    this.payload = decodeBase64url(this.getPayloadText(), 'payload');
    this.signature = decodeBase64url(this.getSignatureText(), 'signature');
  }

  /** SHA-256 of the text: by this it is remembered. */
  getDigest() {
    this.digest ??= hashSha256(this.text);
    return this.digest;
  }

  decodePayload() {
    return this.payload ?? Buffer.from(this.getPayloadText(), 'base64url');
  }

  decodeSignature() {
    return this.signature ?? Buffer.from(this.getSignatureText(), 'base64url');
  }

  private getPayloadText() {
    return this.text.slice(this.headerEnd + 1, this.payloadEnd);
  }

  private getSignatureText() {
    return this.text.slice(this.payloadEnd + 1);
  }
}

function parseHeader(bytes: Buffer, form: TokenForm): TokenHeader {
  const header =
    parseObject(bytes) ?? failMalformed('The header of the token is not a JSON object.');
  const { alg, kid, typ } = header;
  // RFC 7515 §4.1.11: no extension is understood here. RFC 7797 §7: b64 is none of a JWT's, and
  // whoever leaves it out of crit hopes for a verifier that is misled.
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

/** RFC 7515 §2: base64url without padding, white space or stray bits. */
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

// A refusal of a token says what was found and what is allowed, to its bearer and to the log alike.
// Never put a token, or a part of one, here.

export interface FoundAndExpected {
  /** The token chose it: it is cut where it is long. */
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
