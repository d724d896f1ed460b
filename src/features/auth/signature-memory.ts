// §5.2: which key signed a token. It depends on the token and the key alone, so the answer may be
// remembered; what depends on anything else (issuer, audience, times, kind of token) is never kept.
import { hashSha256 } from '../../core/sha256.ts';
import type { VerificationKey } from './jwk.ts';
import type { ParsedToken } from './parse-token.ts';

/** The first of the keys that made the signature; undefined where none did. */
export type FindSigner = (
  token: ParsedToken,
  keys: readonly VerificationKey[],
) => VerificationKey | undefined;

export function findSigner(
  { text, alg, algorithm, signature }: ParsedToken,
  keys: readonly VerificationKey[],
): VerificationKey | undefined {
  // RFC 7515 §5.2: what was signed is header and payload, as they were sent.
  const signingInput = Buffer.from(text.slice(0, text.lastIndexOf('.')), 'latin1');
  return keys.find(
    ({ key, algorithms }) => algorithms.has(alg) && algorithm.verify(signingInput, key, signature),
  );
}

/**
 * The same answer as `check` gives, without its work for a token that it found good before, as long as the
 * key that signed it is among the keys. At most `maxEntries` are remembered, and the least recently
 * used one is forgotten first. That no key signed a token is never remembered: there may be new keys.
 */
export function rememberSigners(check: FindSigner, maxEntries: number): FindSigner {
  /** The SHA-256 of a token, and the identity of the key that signed it; the last used one is last. */
  const signers = new Map<string, string>();

  return function findRememberedSigner(token, keys) {
    const digest = hashSha256(token.text);
    const identity = signers.get(digest);
    const remembered = identity === undefined ? undefined : findByIdentity(keys, identity);
    const signer = remembered ?? check(token, keys);
    if (signer === undefined) return undefined;
    signers.delete(digest);
    signers.set(digest, signer.identity);
    if (signers.size > maxEntries) forgetFirst(signers);
    return signer;
  };
}

const findByIdentity = (
  keys: readonly VerificationKey[],
  wanted: string,
): VerificationKey | undefined => keys.find(({ identity }) => identity === wanted);

function forgetFirst(entries: Map<string, unknown>): void {
  for (const key of entries.keys()) {
    entries.delete(key);
    return;
  }
}
