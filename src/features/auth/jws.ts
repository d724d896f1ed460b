// RFC 7515 §5.2, decisions 5: the compact serialization, taken apart strictly.
import { fail } from '../../core/errors/gateway-error.ts';
import { parseObject } from '../../core/json.ts';
import { type Algorithm, algorithms } from './algorithms.ts';
import type { VerificationKey } from './jwk.ts';

/** A token whose form is right; its signature is not yet checked. */
export interface ParsedToken {
  readonly alg: string;
  readonly kid: string | undefined;
  readonly algorithm: Algorithm;
  /** Header and payload as they were signed. */
  readonly signed: Buffer;
  readonly payload: Buffer;
  readonly signature: Buffer;
}

/** Decisions 5: longer tokens are refused before anything else. */
const MAX_LENGTH = 8192;

/**
 * @throws GatewayError `invalid_token`. `jku`, `x5u`, `jwk` and `x5c` are never looked at.
 */
export function parseToken(token: string): ParsedToken {
  if (token.length > MAX_LENGTH) refuse(`The token is longer than ${MAX_LENGTH} bytes.`);
  const parts = token.split('.');
  const [header = '', payload = '', signature = ''] = parts;
  if (parts.length !== 3) refuse('The token does not have three parts.');
  const { alg, kid } = readHeader(decode(header));
  const algorithm = algorithms.get(alg) ?? refuse('The algorithm of the token is not accepted.');
  return {
    alg,
    kid,
    algorithm,
    signed: Buffer.from(`${header}.${payload}`, 'latin1'),
    payload: decode(payload),
    signature: decode(signature),
  };
}

/** Whether any of the keys made the signature. */
export const isSignedBy = (token: ParsedToken, keys: readonly VerificationKey[]): boolean =>
  keys.some(
    ({ key, algorithms: fitting }) =>
      fitting.has(token.alg) && token.algorithm.verify(token.signed, key, token.signature),
  );

function readHeader(bytes: Buffer): { alg: string; kid: string | undefined } {
  const header = parseObject(bytes) ?? refuse('The header of the token is not a JSON object.');
  const { alg, kid } = header;
  // RFC 7515 §4.1.11: no extension is understood here. RFC 7797 §7: b64 is none of a JWT's, and
  // whoever leaves it out of crit hopes for a verifier that is misled.
  if ('crit' in header || 'b64' in header) refuse('The token has a critical extension.');
  if (typeof alg !== 'string') refuse('The token names no algorithm.');
  if (kid !== undefined && typeof kid !== 'string') refuse('The kid of the token is not a string.');
  return { alg, kid };
}

/** RFC 7515 §2: base64url without padding, white space or stray bits. */
function decode(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : refuse('The token is not base64url.');
}

function refuse(details: string): never {
  return fail('invalid_token', { details });
}
