// RFC 7518 §3.1, RFC 8037 §3.1: the signature algorithms that are accepted.
import { constants, type KeyObject, type SigningOptions, verify } from 'node:crypto';

export interface Algorithm {
  /** Whether a public key can be used with it. */
  supportsKey(key: KeyObject): boolean;
  verify(signingInput: Buffer, key: KeyObject, signature: Buffer): boolean;
}

/** Smaller moduli, and exponents below 3, are forgeable. */
const MIN_RSA_BITS = 2048;
const MIN_RSA_EXPONENT = 3n;

const createAlgorithm = (
  supportsKey: (key: KeyObject) => boolean,
  hash: string | null,
  options: SigningOptions = {},
): Algorithm => ({
  supportsKey,
  verify: (signingInput, key, signature) =>
    verify(hash, signingInput, { key, ...options }, signature),
});

const isRsa = ({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): boolean =>
  type === 'rsa' &&
  (details?.modulusLength ?? 0) >= MIN_RSA_BITS &&
  (details?.publicExponent ?? 0n) >= MIN_RSA_EXPONENT;

const isOnCurve =
  (curve: string) =>
  ({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): boolean =>
    type === 'ec' && details?.namedCurve === curve;

const isEdwards = ({ asymmetricKeyType: type }: KeyObject): boolean =>
  type === 'ed25519' || type === 'ed448';

/** RFC 8017 §8.1.2, §8.2.2: as long as the modulus. OpenSSL would take one without its leading zeros, too. */
function createRsa(hash: string, options?: SigningOptions): Algorithm {
  const rsa = createAlgorithm(isRsa, hash, options);
  return {
    ...rsa,
    verify: (signingInput, key, signature) =>
      signature.length === Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8) &&
      rsa.verify(signingInput, key, signature),
  };
}

const createRsaPkcs1 = (bits: number) => createRsa(`sha${bits}`);

const createRsaPss = (bits: number) =>
  createRsa(`sha${bits}`, {
    padding: constants.RSA_PKCS1_PSS_PADDING,
    // RFC 7518 §3.5: the salt is as long as the hash.
    saltLength: bits / 8,
  });

// RFC 7518 §3.4: r and s side by side, of fixed length.
const createEcdsa = (bits: number, curve: string) =>
  createAlgorithm(isOnCurve(curve), `sha${bits}`, { dsaEncoding: 'ieee-p1363' });

export const algorithms: ReadonlyMap<string, Algorithm> = new Map([
  ['RS256', createRsaPkcs1(256)],
  ['RS384', createRsaPkcs1(384)],
  ['RS512', createRsaPkcs1(512)],
  ['PS256', createRsaPss(256)],
  ['PS384', createRsaPss(384)],
  ['PS512', createRsaPss(512)],
  ['ES256', createEcdsa(256, 'prime256v1')],
  ['ES384', createEcdsa(384, 'secp384r1')],
  ['ES512', createEcdsa(512, 'secp521r1')],
  ['EdDSA', createAlgorithm(isEdwards, null)],
]);
