// An RSA key takes a tenth of a second to make: what a closed issuer has used, the next one gets.
import { type CryptoKey, exportJWK, generateKeyPair, type JWK } from 'jose';

export interface SigningKey {
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly publicJwk: JWK;
}

const spare = new Map<string, SigningKey[]>();

/** A key that nobody else has until it is given back. */
export async function takeSigningKey(alg: string): Promise<SigningKey> {
  const kept = spare.get(alg)?.pop();
  if (kept) return kept;
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { alg, privateKey, publicJwk: await exportJWK(publicKey) };
}

export function giveBackSigningKey(key: SigningKey): void {
  spare.set(key.alg, [...(spare.get(key.alg) ?? []), key]);
}
