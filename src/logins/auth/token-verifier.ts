// §5.2, §5.4: signature first, then claims, on every request.

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
import {
  createTokenParser,
  failToken,
  type IsKnownToken,
  type ParsedToken,
} from './parse-token.ts';

export interface TokenInspection {
  /** The user that the token names, for the log; it may be there for a token with a problem, too. */
  readonly sub: string | undefined;
  /**
   * Why the gateway would refuse the token; undefined for one that it would accept. `message` is
   * for its bearer, `key` is the reason of §7.1, and `failure.facts` are for the log: found and
   * expected, or exp (nbf) and now.
   */
  readonly problem: GatewayError | undefined;
}

export interface TokenRules extends ClaimRules {
  /** `MAX_TOKEN_BYTES`. */
  readonly maxTokenBytes: number;
  /** `TOKEN_SIGNATURE_MEMORY`: how many tokens whose signature is good are remembered. */
  readonly signatureMemory: number;
}

export type TokenVerifier = ReturnType<typeof createTokenVerifier>;

export function createTokenVerifier(clock: Clock, keySet: KeySet, rules: TokenRules) {
  const { maxTokenBytes, signatureMemory } = rules;
  const memory =
    signatureMemory > 0 ? createBoundedMap<string, string>(signatureMemory) : undefined;
  // The form of a known one needs no second look: nothing is said of its signature, for its key may be gone.
  const isKnown: IsKnownToken | undefined =
    memory && ((token) => memory.peek(token.getDigest()) !== undefined);
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
     * With the key at hand the user is there at once: only who waits for a key gets a promise.
     * `beforeFetch` is called where a key has to be fetched first; what it throws ends the check.
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
     * Says what `verify` would of a token whose signature is good, which is neither checked here nor remembered. For tokens
     * that came from the provider itself, by TLS; never to let anybody in. It does not throw.
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

/** The keys that count, and how the one is found that made a signature. */
export interface SignatureCheck {
  readonly keySet: KeySet;
  readonly findSigner: FindSigner;
}

/**
 * Undefined where the keys at hand settle it; else a promise, for they are fetched first.
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
 * Tells whether a key at hand made the signature; false where one that is not may have.
 *
 * @throws GatewayError `invalid_token` where none did.
 */
export function isSignedAtHand(token: ParsedToken, { keySet, findSigner: find }: SignatureCheck) {
  const known = keySet.find(token);
  if (find(token, known) !== undefined) return true;
  // A known kid settles it: no flood of forged tokens may reach the provider through it. Without
  // one, the key at fault may be one that the provider has only now.
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

// §5.2: the key that signed a token. It depends on the token and the key alone, so the answer may be
// remembered; what depends on anything else (issuer, audience, times, kind of token) is never kept.

type FindSigner = typeof findSigner;

/** The first of the keys that made the signature; undefined where none did. */
export function findSigner(token: ParsedToken, keys: readonly VerificationKey[]) {
  const { text, alg, algorithm } = token;
  const signature = token.decodeSignature();
  // RFC 7515 §5.2: what was signed is header and payload, as they were sent.
  const signingInput = Buffer.from(text.slice(0, text.lastIndexOf('.')), 'latin1');
  return keys.find(
    ({ key, algorithms }) => algorithms.has(alg) && algorithm.verify(signingInput, key, signature),
  );
}

/**
 * The same answer as `check` gives, without its work for a token that it found good before, as long as the
 * key that signed it is among the keys. `identities` has the SHA-256 of each good token, and the identity of the key that signed it.
 * That no key signed a token is never remembered: there may be new keys.
 */
export function rememberSigners(
  check: FindSigner,
  identities: BoundedMap<string, string>,
): FindSigner {
  return function findRememberedSigner(token, keys) {
    const digest = token.getDigest();
    const identity = identities.get(digest);
    const remembered = identity && keys.find((key) => key.identity === identity);
    if (remembered) return remembered;
    const signer = check(token, keys);
    if (signer !== undefined) identities.set(digest, signer.identity);
    return signer;
  };
}
