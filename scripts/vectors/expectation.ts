// §5 once more, from the side of the vectors: which tokens must be accepted, and why the others not.
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import type { Group, Vector } from './corpus.ts';

const CURVES = new Map([
  ['ES256', 'P-256'],
  ['ES384', 'P-384'],
  ['ES512', 'P-521'],
]);
const RSA = /^[RP]S(256|384|512)$/;

/** Groups whose key is weak in a way that no member of the key says. */
const WEAK = new Map([['jws_rsa_roca_key', 'key of the ROCA generator (CVE-2017-15361)']]);

/** Why no token of the group may be accepted; undefined when its valid vectors must be. */
export function explainGroupRefusal(group: Group): string | undefined {
  if (group.publicKeys.length === 0) return 'shared secret: HS* and oct keys are not accepted';
  return WEAK.get(group.comment) ?? group.publicKeys.map(explainUnusableKey).find(Boolean);
}

/** Why a vector that Wycheproof calls valid must be refused all the same. */
export function explainVectorRefusal(group: Group, { jws }: Vector): string | undefined {
  const header: unknown = JSON.parse(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString());
  const alg = typeof header === 'object' && header !== null && 'alg' in header && header.alg;
  // RFC 7517 §4.4: a key with alg is for that algorithm alone.
  return group.publicKeys.some((key) => key.alg === alg)
    ? undefined
    : `alg of the token is ${alg}, of its key ${group.publicKeys[0]?.alg}`;
}

function explainUnusableKey(key: JsonWebKey): string | undefined {
  const { use, key_ops: operations, alg } = key;
  if (use !== undefined && use !== 'sig') return `use is ${use}`;
  if (Array.isArray(operations) && !operations.includes('verify')) {
    return `key_ops is ${operations.join(', ')}`;
  }
  if (typeof alg !== 'string') return 'the key names no alg';
  if (!CURVES.has(alg) && !RSA.test(alg)) return `alg ${alg} of the key is not accepted`;
  if (key.kty !== (RSA.test(alg) ? 'RSA' : 'EC')) return `kty is ${key.kty}, alg ${alg}`;
  return RSA.test(alg) ? explainWeakKey(key) : explainInvalidPoint(key, CURVES.get(alg));
}

function explainWeakKey({ n = '', e = '' }: JsonWebKey): string | undefined {
  const bits = Buffer.from(n, 'base64url').toString('hex').replace(/^0+/, '').length * 4;
  if (bits < 2048) return `RSA key of ${bits} bits`;
  return Buffer.from(e, 'base64url').toString('hex') === '01' ? 'RSA exponent 1' : undefined;
}

function explainInvalidPoint(key: JsonWebKey, curve: string | undefined): string | undefined {
  if (key.crv !== curve) return `crv is ${key.crv}, alg ${key.alg}`;
  try {
    createPublicKey({ key, format: 'jwk' });
    return undefined;
  } catch {
    return 'point off the curve';
  }
}
