// §5.2, §5.4: signature first, then claims, on every request.
import type { Clock } from '../../core/clock.ts';
import { type GatewayError, toGatewayError } from '../../core/errors/gateway-error.ts';
import { parseObject } from '../../core/json.ts';
import { quote } from '../../core/quote.ts';
import type { UserContext } from '../../core/user-context.ts';
import type { TokenAge } from './check-times.ts';
import { type ClaimRules, readUserContext } from './claims.ts';
import { failToken } from './fail-token.ts';
import type { KeySet } from './key-set.ts';
import { isSignedBy, type ParsedToken, parseToken } from './parse-token.ts';

export interface TokenVerifier {
  /**
   * `beforeFetch` is called where a key has to be fetched first; what it throws ends the check.
   *
   * @throws GatewayError with a reason of §7.1, or `key_set_unavailable`.
   */
  verify(token: string, beforeFetch?: () => Promise<void>): Promise<UserContext>;
  /**
   * What `verify` would say of a token whose signature is good. For tokens that came from the
   * provider itself, by TLS; never to let anybody in. It does not throw.
   */
  inspect(token: string): TokenInspection;
}

export interface TokenInspection {
  /** Whom the token names, for the log; it may be there for a token with a problem, too. */
  readonly sub: string | undefined;
  /**
   * Why the gateway would refuse the token; undefined for one that it would accept. `message` is
   * for its bearer, `key` is the reason of §7.1, and `failure.facts` are for the log: found and
   * expected, or exp (nbf) and now.
   */
  readonly problem: GatewayError | undefined;
}

export interface TokenVerifierDeps extends ClaimRules {
  readonly keySet: KeySet;
  /** `MAX_TOKEN_BYTES`. */
  readonly maxTokenBytes: number;
  readonly clock: Clock;
}

export function createTokenVerifier(deps: TokenVerifierDeps): TokenVerifier {
  const { keySet, maxTokenBytes, clock, ...rules } = deps;

  const readUser = (parsed: ParsedToken, token: string, age: TokenAge): UserContext =>
    readUserContext(readPayload(parsed), token, rules, clock.now(), age);

  return {
    async verify(token, beforeFetch) {
      const parsed = parseToken(token, maxTokenBytes);
      await verifySignature(parsed, keySet, beforeFetch);
      return readUser(parsed, token, 'unknown');
    },
    inspect(token) {
      try {
        const { sub } = readUser(parseToken(token, maxTokenBytes), token, 'new');
        return { sub, problem: undefined };
      } catch (thrown) {
        return { sub: readUnverifiedSubject(token), problem: toGatewayError(thrown) };
      }
    },
  };
}

/** @throws GatewayError `invalid_token` or `key_set_unavailable`. */
export async function verifySignature(
  token: ParsedToken,
  keySet: KeySet,
  beforeFetch = async () => {},
): Promise<void> {
  if (!keySet.isFetched) {
    await beforeFetch();
    await keySet.waitForKeys();
  }
  const known = keySet.find(token);
  if (isSignedBy(token, known)) return;
  // A known kid settles it: no flood of forged tokens may reach the provider through it. Without
  // one, the key at fault may be one that the provider has only now.
  const isSettled = token.kid !== undefined && known.some(({ kid }) => kid === token.kid);
  if (!isSettled) {
    await beforeFetch();
    if (isSignedBy(token, await keySet.findAfterRefresh(token))) return;
  }
  failToken('The signature of the token is not valid.', {
    found: `a signature that no key of the provider made (kid ${quote(token.kid)})`,
    expected: 'a signature by a key of the key set',
  });
}

const readPayload = ({ payload }: ParsedToken) =>
  parseObject(payload) ??
  failToken('The payload of the token is not a JSON object.', {
    found: 'a malformed payload',
    expected: 'a JSON object',
  });

/** As far as it can be read. */
function readUnverifiedSubject(token: string): string | undefined {
  const sub = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url'))?.sub;
  return typeof sub === 'string' && sub !== '' ? sub : undefined;
}
