// §5.2, §5.4: verifies tokens, first the signature, then the claims, on every request.

import { type GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import { readUnverifiedClaims } from '../../http/oauth-client/token-answer.ts';
import { type BoundedMap, createBoundedMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { parseObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { type ClaimRules, readUserContext, type TokenAge } from './claims.ts';
import type { VerificationKey } from './jwk.ts';
import type { KeySet } from './key-set.ts';
import { createTokenParser, failToken, type ParsedToken } from './parse-token.ts';

export interface TokenInspection {
  /** The user that the token names, for the log; may be set for a token with a problem, too. */
  readonly sub: string | undefined;
  /**
   * The refusal of the token; undefined if the gateway would accept it. `message` is for its bearer, `key` is the reason of §7.1,
   * and `failure.facts` are for the log: found and expected, or exp (nbf) and now.
   */
  readonly problem: GatewayError | undefined;
}

interface TokenRules extends ClaimRules {
  /** `MAX_TOKEN_BYTES`. */
  readonly maxTokenBytes: number;
  /** `TOKEN_SIGNATURE_MEMORY`: the number of tokens with a valid signature that are remembered. */
  readonly signatureMemory: number;
}

export type TokenVerifier = ReturnType<typeof createTokenVerifier>;

export function createTokenVerifier(clock: Clock, keySet: KeySet, rules: TokenRules) {
  const { maxTokenBytes, signatureMemory } = rules;
  const memory =
    signatureMemory > 0 ? createBoundedMap<string, string>(signatureMemory) : undefined;
  // The form of a known token is not checked again. Its signature is: its key may be gone.
  const isKnown = memory && ((token: ParsedToken) => memory.peek(token.getDigest()) !== undefined);
  const parseToken = createTokenParser(maxTokenBytes, undefined, isKnown);
  const signatures = {
    keySet,
    findSigner: memory === undefined ? findSigner : rememberSigners(findSigner, memory),
  };

  function readUser(parsed: ParsedToken, age: TokenAge): UserContext {
    const user = readUserContext(readPayload(parsed), rules, clock.now(), age);
    user.token = parsed.text;
    return user;
  }

  return {
    /**
     * Verifies a token. A promise only if a key has to be fetched: `beforeFetch` is called then, and an error of it ends the check.
     *
     * @throws GatewayError with a reason of §7.1, or `key_set_unavailable`, at once or by the promise.
     */
    verify(token: string, beforeFetch?: () => Promise<void>): UserContext | Promise<UserContext> {
      const parsed = parseToken(token);
      const verifying = verifySignature(parsed, signatures, beforeFetch);
      return verifying === undefined
        ? readUser(parsed, 'unknown')
        : verifying.then(() => readUser(parsed, 'unknown'));
    },
    /**
     * Checks form and claims as `verify` does, and neither checks nor remembers the signature. For tokens that came from the
     * provider itself, by TLS; never to admit a caller. Does not throw.
     */
    inspect(token: string): TokenInspection {
      try {
        const { sub } = readUser(parseToken(token), 'new');
        return { sub, problem: undefined };
      } catch (thrown) {
        const { sub } = readUnverifiedClaims(token) ?? {};
        const isNamed = typeof sub === 'string' && sub !== '';
        return { sub: isNamed ? sub : undefined, problem: toGatewayError(thrown) };
      }
    },
  };
}

/** The trusted keys, and the function that finds the signer among them. */
interface SignatureCheck {
  readonly keySet: KeySet;
  readonly findSigner: FindSigner;
}

/**
 * Verifies the signature: undefined if the keys at hand suffice, else a promise, since they are fetched first.
 *
 * @throws GatewayError `invalid_token` or `key_set_unavailable`, at once or by the promise.
 */
export function verifySignature(
  token: ParsedToken,
  check: SignatureCheck,
  beforeFetch = async () => {},
): Promise<void> | undefined {
  if (check.keySet.isFetched && isSignedAtHand(token, check)) return undefined;
  return verifyAfterFetch(token, check, beforeFetch);
}

async function verifyAfterFetch(
  token: ParsedToken,
  check: SignatureCheck,
  beforeFetch: () => Promise<void>,
) {
  const { keySet, findSigner: find } = check;
  if (!keySet.isFetched) {
    await beforeFetch();
    await keySet.waitForKeys();
    if (isSignedAtHand(token, check)) return;
  }
  await beforeFetch();
  if (find(token, await keySet.findAfterRefresh(token)) === undefined) failSignature(token);
}

/**
 * Returns true if a key at hand made the signature, false if a newer key may have made it.
 *
 * @throws GatewayError `invalid_token` if no key did.
 */
export function isSignedAtHand(token: ParsedToken, { keySet, findSigner: find }: SignatureCheck) {
  const known = keySet.find(token);
  if (find(token, known) !== undefined) return true;
  // A known kid settles it, so that forged tokens cannot flood the provider. Without a known kid, the key may be new at the
  // provider.
  const isSettled = token.kid !== undefined && known.some(({ kid }) => kid === token.kid);
  return isSettled ? failSignature(token) : false;
}

const failSignature = ({ kid }: ParsedToken): never =>
  failToken('The signature of the token is not valid.', {
    found: `a signature that no key of the provider made (kid ${quote(kid)})`,
    expected: 'a signature by a key of the key set',
  });

export const readPayload = (token: ParsedToken) =>
  parseObject(token.decodePayload()) ??
  failToken('The payload of the token is not a JSON object.', {
    found: 'a malformed payload',
    expected: 'a JSON object',
  });

// §5.2: finds the key that signed a token. The result depends on the token and the key only, so it may be remembered; checks
// that depend on anything else (issuer, audience, times, kind of token) are never cached.

type FindSigner = typeof findSigner;

/** Finds the key that made the signature. */
export function findSigner(token: ParsedToken, keys: readonly VerificationKey[]) {
  const { text, alg, algorithm } = token;
  const signature = token.decodeSignature();
  // RFC 7515 §5.2: the signing input is header and payload, as sent.
  const signingInput = Buffer.from(text.slice(0, text.lastIndexOf('.')), 'latin1');
  return keys.find(
    ({ key, algorithms }) => algorithms.has(alg) && algorithm.verify(signingInput, key, signature),
  );
}

/**
 * Caches `check` for valid tokens, as long as the key that signed them is among the keys. `identities` maps the SHA-256 of each
 * valid token to the identity of its key. Failures are never remembered: there may be new keys.
 */
export function rememberSigners(
  check: FindSigner,
  identities: BoundedMap<string, string>,
): FindSigner {
  return function findRememberedSigner(token, keys) {
    const digest = token.getDigest();
    const identity = identities.get(digest);
    if (identity !== undefined) for (const key of keys) if (key.identity === identity) return key;
    const signer = check(token, keys);
    if (signer !== undefined) identities.set(digest, signer.identity);
    return signer;
  };
}
