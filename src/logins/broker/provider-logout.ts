// §13.4: OpenID Connect Back-Channel Logout 1.0: the provider reports that a user logged out there, and the user's logins here end.

import { fail, GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { KnownLogin, PublicEndpoint } from '../../http/endpoint/endpoint.ts';
import type { Reply, RequestBody } from '../../http/endpoint/message.ts';
import { createNameCheck, failRequest, parseBody } from '../../http/endpoint/parameters.ts';
import { computeOnce } from '../../platform/bounded-map.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { buildLogoutTokenKey } from '../../store/keys.ts';
import { readPages } from '../../store/page.ts';
import { failLogoutToken, type LogoutToken } from '../auth/logout-token.ts';
import { computeNotedSeconds } from '../auth/token-verifier.ts';
import { nameUser, type UserIdentity } from '../grants/grant.ts';
import { hashUser } from '../grants/token-codec.ts';
import { auditEnd } from './ends.ts';
import type { GrantSelection } from './logouts.ts';
import type { Broker } from './open-broker.ts';

/** Limit of the form; a logout token is about a tenth of that. */
const MAX_BODY_BYTES = 20_480;

/** Further fields are ignored (§2.5). */
const checkFieldName = createNameCheck(['logout_token']);

export function createProviderLogout({
  runtime: { oauth, audit, metrics, store, clock },
  ownTokens: { grants },
  ends,
  logoutTokens,
}: Broker): PublicEndpoint {
  const { issuer } = oauth.provider;
  const buildUseKey = ({ jti }: LogoutToken) =>
    buildLogoutTokenKey(hashSha256(JSON.stringify([issuer, jti])));

  /** Once per request: limits and endpoint share the result. */
  const lookAt = computeOnce((body: RequestBody): Look => {
    try {
      if (body.type !== 'form') failRequest('The body must be a form that has logout_token.');
      const text = parseBody(body, checkFieldName).require('logout_token');
      const atHand = logoutTokens.verifyAtHand(text);
      let verifying: Promise<LogoutToken> | undefined;
      return {
        isProven: atHand !== undefined,
        verify() {
          verifying ??= verifyUnused(atHand ?? logoutTokens.verify(text));
          return verifying;
        },
      };
    } catch (refusal) {
      return { isProven: false, verify: () => Promise.reject(refusal) };
    }
  });

  /** Without effect. */
  async function verifyUnused(verifying: LogoutToken | Promise<LogoutToken>) {
    const token = await verifying;
    return (await store.get(buildUseKey(token))) === USED ? failReplayed() : token;
  }

  /**
   * Each logout token is used once, on all replicas (§2.6), but one whose logout failed half-way can be sent again. A concurrent
   * request with the same token has to retry, since this one may still fail.
   */
  async function logOut(token: LogoutToken, ip: string): Promise<Reply> {
    const key = buildUseKey(token);
    const claim = generateSecret();
    const standing = await store.getOrSet(key, claim, UNDER_WAY_SECONDS);
    if (standing === USED) return failReplayed();
    if (standing !== claim) fail('logout_unfinished', { headers: RETRY });
    let count = 0;
    try {
      for (const selection of await select(token)) {
        const { ended, failed } = await ends.endSelectedGrants(selection, 'provider', (grant) =>
          auditEnd(audit, grant, 'provider', ip),
        );
        count += ended;
        if (failed > 0)
          fail('logout_unfinished', { headers: RETRY, facts: { ended: count, failed } });
      }
      // All logins have ended: the token is not accepted again. If that took longer than the claim lasts, the request that has
      // claimed it in the meantime notes the outcome.
      const ttlSeconds = computeNotedSeconds(token.acceptedUntil, clock.now());
      const isNoted = await store.compareAndSet(key, claim, USED, ttlSeconds);
      if (!isNoted) await store.compareAndSet(key, undefined, USED, ttlSeconds);
    } catch (thrown) {
      // If the store fails, the token can be sent again once the claim has expired.
      await store.compareAndDelete(key, claim).catch(() => false);
      throw thrown;
    }
    return { status: 200, facts: { ...(token.user && nameUser(token.user)), ended: count } };
  }

  async function select({ user, sid }: LogoutToken): Promise<readonly GrantSelection[]> {
    const endsAll = oauth.tokens.backchannelEnds === 'all';
    if (sid === undefined || (endsAll && user !== undefined))
      return user === undefined ? [] : [{ user }];
    const session = { issuer, sid };
    const users = new Map<string, UserIdentity>();
    if (endsAll) {
      const owner = { kind: 'session', session } as const;
      for await (const page of readPages((request) => grants.list(request, owner))) {
        for (const grant of page)
          if (grant.sid === sid) users.set(hashUser(grant.user), grant.user);
      }
    }
    // The session comes last: a repeated request must still find its user.
    return [
      ...[...users.values()].map((one) => ({ user: one })),
      { session, ...(user && { user }) },
    ];
  }

  function countAndRethrow(thrown: unknown): never {
    const { key, row } = toGatewayError(thrown);
    if (key === 'invalid_logout_token') metrics.recordLogoutToken('refused');
    else if (row.status >= 500) metrics.recordLogoutToken('failed');
    throw thrown;
  }

  return {
    kind: 'public',
    method: 'POST',
    path: '/oauth/backchannel-logout',
    // Providers need only what §2.8 specifies, and no cache may store the reply.
    errors: { form: 'oauth', body: 'invalid_request', limit: 'temporarily_unavailable' },
    headers: { 'Cache-Control': 'no-store' },
    limit: 'logout',
    body: 'json or form',
    maxBodyBytes: MAX_BODY_BYTES,
    // Anybody may send one. Tokens that the provider signed with a known key are limited together; all others count for their
    // address before a key is fetched.
    chooseLimit(body) {
      const { isProven, verify } = lookAt(body);
      if (!isProven) return { group: 'logout' };
      const find = () => verify().then(() => PROVIDER);
      return { group: 'logout', login: { knownId: PROVIDER.id, find } };
    },
    async judge({ clientIp }, body) {
      const { verify } = lookAt(body);
      const token = await verify()
        .catch((thrown: unknown) => {
          // Unavailable keys are not the token's fault: the reply uses terms of the specification.
          const isOfKeys = thrown instanceof GatewayError && thrown.key === 'key_set_unavailable';
          if (!isOfKeys) throw thrown;
          return fail('logout_unfinished', { headers: RETRY, cause: thrown.failure.cause });
        })
        .catch(countAndRethrow);
      return async function logOutAndCount() {
        const reply = await logOut(token, clientIp).catch(countAndRethrow);
        metrics.recordLogoutToken('accepted');
        return reply;
      };
    },
  };
}

/** If a process dies halfway, the token can be sent again after this time. */
const UNDER_WAY_SECONDS = 30;

const USED = 'used';

/** Result of the checks before a logout token is used. */
interface Look {
  /** Signed with a known key, and valid. */
  readonly isProven: boolean;
  /** @throws GatewayError `invalid_logout_token`, also for a used one; `key_set_unavailable`, or the store's error. */
  verify(): Promise<LogoutToken>;
}

/** All of the provider's logout tokens are counted together, whatever address they come from. */
const PROVIDER: KnownLogin = { id: 'provider', isCheap: false, isProven: true };

const RETRY = { 'Retry-After': '5' };

const failReplayed = (): never =>
  failLogoutToken('jti', 'The logout token was used before.', {
    found: 'one that was used',
    expected: 'a new one',
  });
