// RFC 7517: finds the keys of a set that can verify signatures, and their algorithms.

import {
  constants,
  createHash,
  createPublicKey,
  type KeyObject,
  type SigningOptions,
  verify,
} from 'node:crypto';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject, isStringArray, type JsonObject, parseObject } from '../../platform/json.ts';

export interface VerificationKey {
  /** Consists of the RFC 7638 thumbprint, `kid` and `alg`: stays the same for the same key when the set is fetched again. */
  readonly identity: string;
  readonly kid: string | undefined;
  readonly key: KeyObject;
  /** The algorithms it may be used with: never empty. */
  readonly algorithms: ReadonlySet<string>;
}

/**
 * The usable keys of a JWK Set, at least one; others are left out, as RFC 7517 §5 requires. `listed` is the number of keys,
 * usable or not.
 *
 * @throws Error if it is not a key set, or has no usable key: that means a broken provider, not an empty set.
 */
export function parseKeySet(body: Uint8Array) {
  const set = parseObject(body);
  if (set === undefined) throw new Error('the key set is not a JSON object in UTF-8');
  const listed = set.keys;
  if (!Array.isArray(listed)) throw new Error('the key set has no keys');
  const usable = listed.map(parseKey).filter((key) => key !== undefined);
  if (usable.length === 0) throw new Error('the key set has no key that can be used');
  return { usable, listed: listed.length };
}

function parseKey(jwk: unknown): VerificationKey | undefined {
  if (!isObject(jwk)) return undefined;
  const { use = 'sig', key_ops: operations = ['verify'] } = jwk;
  if (use !== 'sig' || !Array.isArray(operations) || !operations.includes('verify'))
    return undefined;
  const key = importKey(jwk);
  if (key === undefined) return undefined;
  const supported = [...algorithms]
    .filter(([name, { supportsKey }]) => (jwk.alg ?? name) === name && supportsKey(key))
    .map(([name]) => name);
  if (supported.length === 0) return undefined;
  const kid = typeof jwk.kid === 'string' ? jwk.kid : undefined;
  // RFC 7638 §3: the members that make up the key, in lexicographic order.
  const { crv, e, kty, n, x, y } = key.export({ format: 'jwk' });
  const thumbprint = hashSha256(JSON.stringify({ crv, e, kty, n, x, y }));
  const identity = JSON.stringify([thumbprint, kid ?? null, jwk.alg ?? null]);
  return { identity, kid, key, algorithms: new Set(supported) };
}

/** Public members only: a private key that a provider publishes by mistake is not loaded as one. */
function importKey({ kty, n, e, crv, x, y }: JsonObject): KeyObject | undefined {
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') return undefined;
  const members: JsonObject = kty === 'RSA' ? { n, e } : kty === 'EC' ? { crv, x, y } : { crv, x };
  if (!hasStringsOnly(members)) return undefined;
  try {
    // node:crypto checks that they are present, and that a point is on its curve.
    const key = createPublicKey({ key: { kty, ...members }, format: 'jwk' });
    if (key.asymmetricKeyType !== 'rsa') return key;
    const modulus = Buffer.from(key.export({ format: 'jwk' }).n ?? '', 'base64url');
    return hasRocaWeakness(BigInt(`0x${modulus.toString('hex')}`)) ? undefined : key;
  } catch {
    return undefined;
  }
}

const hasStringsOnly = (members: JsonObject): members is Readonly<Record<string, string>> =>
  isStringArray(Object.values(members));

// CVE-2017-15361 (ROCA): RSA keys from a broken generator, whose private keys can be computed.

const GENERATOR = 65_537n;

const PRIMES = [
  3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101,
  103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
].map(BigInt);

/**
 * Returns true if a modulus has the fingerprint of that generator: modulo every small prime it is a power of
 * 65537. A sound modulus has it by chance at most about once in 2^27.
 */
const hasRocaWeakness = (modulus: bigint) =>
  powersByPrime.every(([prime, powers]) => powers.has(modulus % prime));

const powersByPrime = PRIMES.map((prime) => {
  const powers = new Set<bigint>();
  for (let power = 1n; !powers.has(power); power = (power * GENERATOR) % prime) powers.add(power);
  return [prime, powers] as const;
});

// RFC 7518 §3.1, RFC 8037 §3.1: the signature algorithms that are accepted.

export interface Algorithm {
  /** Returns true if a public key can be used with it. */
  supportsKey(key: KeyObject): boolean;
  verify(signingInput: Buffer, key: KeyObject, signature: Buffer): boolean;
  /** The hash that the algorithm uses with this key (OpenID Connect Core §3.1.3.6). */
  hash(text: string, key: KeyObject): Buffer;
}

/** Smaller moduli, and exponents below 3, are forgeable. */
const MIN_RSA_BITS = 2048;
const MIN_RSA_EXPONENT = 3n;
/** Nobody needs more, and an exponent as long as the modulus makes each signature check a hundred times as expensive. */
const MAX_RSA_EXPONENT = 2n ** 32n;

const createAlgorithm = (
  supportsKey: (key: KeyObject) => boolean,
  hash: string | null,
  padding: SigningOptions = {},
): Algorithm => ({
  supportsKey,
  verify: (signingInput, key, signature) =>
    verify(hash, signingInput, { key, ...padding }, signature),
  hash(text, { asymmetricKeyType: type }) {
    // RFC 8032 §5.1, §5.2: the hashes of Ed25519, and of Ed448.
    const ofEdwards = type === 'ed25519' ? 'sha512' : 'shake256';
    const options = hash === null && type === 'ed448' ? { outputLength: 114 } : {};
    return createHash(hash ?? ofEdwards, options)
      .update(text)
      .digest();
  },
});

function isRsa({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject) {
  const { modulusLength = 0, publicExponent = 0n } = details;
  return (
    type === 'rsa' &&
    modulusLength >= MIN_RSA_BITS &&
    publicExponent >= MIN_RSA_EXPONENT &&
    publicExponent < MAX_RSA_EXPONENT
  );
}

/** RFC 8017 §8.1.2, §8.2.2: as long as the modulus. OpenSSL would also accept one without its leading zeros. */
function createRsa(bits: number, padding?: SigningOptions): Algorithm {
  const rsa = createAlgorithm(isRsa, `sha${bits}`, padding);
  return {
    ...rsa,
    verify: (signingInput, key, signature) =>
      signature.length === Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8) &&
      rsa.verify(signingInput, key, signature),
  };
}

const createRsaPss = (bits: number) =>
  createRsa(bits, {
    padding: constants.RSA_PKCS1_PSS_PADDING,
    // RFC 7518 §3.5: the salt is as long as the hash.
    saltLength: bits / 8,
  });

// RFC 7518 §3.4: r and s side by side, of fixed length.
const createEcdsa = (bits: number, curve: string) =>
  createAlgorithm(
    ({ asymmetricKeyType: type, asymmetricKeyDetails: details }) =>
      type === 'ec' && details?.namedCurve === curve,
    `sha${bits}`,
    { dsaEncoding: 'ieee-p1363' },
  );

const edDsa = createAlgorithm(
  ({ asymmetricKeyType: type }) => type === 'ed25519' || type === 'ed448',
  null,
);

export const algorithms: ReadonlyMap<string, Algorithm> = new Map([
  ['RS256', createRsa(256)],
  ['RS384', createRsa(384)],
  ['RS512', createRsa(512)],
  ['PS256', createRsaPss(256)],
  ['PS384', createRsaPss(384)],
  ['PS512', createRsaPss(512)],
  ['ES256', createEcdsa(256, 'prime256v1')],
  ['ES384', createEcdsa(384, 'secp384r1')],
  ['ES512', createEcdsa(512, 'secp521r1')],
  ['EdDSA', edDsa],
]);
