// What the floors check of a token: RS256 by node:crypto, issuer, audience, times. With REMEMBER=true a signature
// that was good once is known by the SHA-256 of its token; the claims are judged on every call, either way.
import { createHash, createPublicKey, verify } from 'node:crypto';

const { ISSUER, AUDIENCE, REMEMBER } = process.env;
const { keys } = await (await fetch(`${ISSUER}/jwks`)).json();
const publicKeys = new Map(
  keys.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]),
);
const goodTokens = new Set();

/** The user that the token stands for; undefined when it is not good. */
export function verifyToken(authorization = '') {
  const token = authorization.slice('Bearer '.length);
  const [head, payload, signature] = token.split('.');
  if (!isSignatureGood(token, head, payload, signature)) return undefined;
  const { iss, aud, exp, nbf = 0, sub } = JSON.parse(Buffer.from(payload, 'base64url').toString());
  const now = Date.now() / 1000;
  return iss === ISSUER && aud === AUDIENCE && exp > now && nbf <= now ? sub : undefined;
}

function isSignatureGood(token, head, payload, signature) {
  const hash = REMEMBER === 'true' ? createHash('sha256').update(token).digest('base64') : '';
  if (goodTokens.has(hash)) return true;
  const { alg, kid } = JSON.parse(Buffer.from(head, 'base64url').toString());
  const key = publicKeys.get(kid);
  if (alg !== 'RS256' || key === undefined) return false;
  const signed = Buffer.from(`${head}.${payload}`);
  const isGood = verify('RSA-SHA256', signed, key, Buffer.from(signature, 'base64url'));
  if (isGood && REMEMBER === 'true') goodTokens.add(hash);
  return isGood;
}
