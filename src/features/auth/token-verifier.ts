// Spec §5.2, §5.4: signature first, then claims, on every request.
import type { Clock } from '../../core/clock.ts';
import { fail } from '../../core/errors/gateway-error.ts';
import { parseObject } from '../../core/json.ts';
import type { UserContext } from '../../core/user-context.ts';
import { type ClaimRules, readClaims } from './claims.ts';
import { isSignedBy, type ParsedToken, parseToken } from './jws.ts';
import type { KeySet } from './key-set.ts';

/** @throws GatewayError with a reason of §7.1, or `key_set_unavailable`. */
export type TokenVerifier = (token: string) => Promise<UserContext>;

export interface TokenVerifierDeps extends ClaimRules {
  readonly keySet: KeySet;
  readonly clock: Clock;
}

export function createTokenVerifier({ keySet, clock, ...rules }: TokenVerifierDeps): TokenVerifier {
  return async function verifyToken(token) {
    const parsed = parseToken(token);
    await verifySignature(parsed, keySet);
    const claims =
      parseObject(parsed.payload) ??
      fail('invalid_token', { details: 'The payload of the token is not a JSON object.' });
    return readClaims(claims, token, rules, clock.now());
  };
}

/** @throws GatewayError `invalid_token` or `key_set_unavailable`. */
export async function verifySignature(token: ParsedToken, keySet: KeySet): Promise<void> {
  if (!keySet.fetched) await keySet.ready();
  const known = keySet.find(token);
  if (isSignedBy(token, known)) return;
  // A known kid settles it: no flood of forged tokens may reach the provider through it. Without
  // one, the key at fault may be one that the provider has only now.
  const settled = token.kid !== undefined && known.some(({ kid }) => kid === token.kid);
  if (!settled && isSignedBy(token, await keySet.findFresh(token))) return;
  fail('invalid_token', { details: 'The signature of the token is not valid.' });
}
