// Tokens signed anew, so that a verifier that refuses everything fails, too.
import { constants, createPrivateKey, type JsonWebKey, type KeyObject, sign } from 'node:crypto';

/** Header and claims of a good token. */
export const ISSUER = 'https://issuer.example';
export const AUDIENCE = 'https://mcp.example';

/** A compact JWS; `alg` determines how it is made. */
export function signToken(alg: string, key: KeyObject, kid: unknown): string {
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'user-1', exp: 4_102_444_800 };
  const signed = `${encodeJson({ alg, kid })}.${encodeJson(claims)}`;
  const hash = alg === 'EdDSA' ? null : `sha${alg.slice(2)}`;
  const options = alg.startsWith('PS')
    ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
    : {};
  const signature = sign(hash, Buffer.from(signed), {
    key,
    dsaEncoding: 'ieee-p1363',
    ...options,
  });
  return `${signed}.${signature.toString('base64url')}`;
}

/** The same token with one bit of its signature turned. */
export function spoilSignature(token: string): string {
  const at = token.lastIndexOf('.') + 1;
  const bytes = Buffer.from(token.slice(at), 'base64url');
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  return token.slice(0, at) + bytes.toString('base64url');
}

/** The private key of a vector; undefined for shared secrets and keys that cannot be imported. */
export function importPrivateKey(jwk: JsonWebKey | undefined): KeyObject | undefined {
  if (jwk === undefined) return undefined;
  try {
    return createPrivateKey({ key: jwk, format: 'jwk' });
  } catch {
    return undefined;
  }
}

const encodeJson = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
