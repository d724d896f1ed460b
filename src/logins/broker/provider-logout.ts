// §13.4: the provider says that somebody logged out there (OpenID Connect Back-Channel Logout 1.0): their logins here end.

import type { TokensConfig } from '../../config/groups/own-tokens.ts';
import { fail, GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { KnownLogin, PublicEndpoint } from '../../http/endpoint/endpoint.ts';
import type { Reply, RequestBody } from '../../http/endpoint/message.ts';
import { createNameCheck, parseBody } from '../../http/endpoint/parameters.ts';
import type { ErrorFormat } from '../../http/endpoint/render-error.ts';
import type { Audit } from '../../telemetry/audit/audit.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import {
  failLogoutToken,
  type LogoutToken,
  type LogoutTokenVerifier,
} from '../auth/logout-token.ts';
import { type Grant, nameUser, type UserIdentity } from '../grants/grant.ts';
import type { Grants, ProviderSession } from '../grants/grants.ts';
import { hashUser } from '../grants/token-codec.ts';
import type { EndSelectedGrants } from './end-selected-grants.ts';
import type { LogoutTokenUses } from './logout-token-uses.ts';
import type { GrantSelection } from './logouts.ts';

export interface ProviderLogoutDeps {
  readonly config: Pick<TokensConfig, 'backchannelEnds'>;
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
  readonly logoutTokens: LogoutTokenVerifier;
  readonly uses: LogoutTokenUses;
  readonly grants: Pick<Grants, 'list'>;
  readonly endSelectedGrants: EndSelectedGrants;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  readonly metrics: Pick<Metrics, 'recordLogoutToken'>;
}

/** Providers have no use for anything else than what §2.8 says. */
const ERRORS: ErrorFormat = {
  form: 'oauth',
  body: 'invalid_request',
  limit: 'temporarily_unavailable',
};

/** §2.8: no cache may keep the answer. */
const NO_STORE = { 'Cache-Control': 'no-store' } as const;

/** Of the form: a logout token has a tenth of that. */
const MAX_BODY_BYTES = 20_480;

/** A logout at the provider is of one session, which few clients came from. */
const PAGE = 100;

/** Whoever posts more is heard all the same (§2.5). */
const checkFieldName = createNameCheck(['logout_token']);

export function createProviderLogout(deps: ProviderLogoutDeps): PublicEndpoint {
  const { config, issuer, logoutTokens, uses, grants, endSelectedGrants } = deps;
  const { audit, metrics } = deps;

  const looks = new WeakMap<RequestBody, Look>();

  /** Once for each request: limits and endpoint ask of the same one. */
  function lookAt(body: RequestBody): Look {
    const look = looks.get(body) ?? lookAnew(body);
    looks.set(body, look);
    return look;
  }

  function lookAnew(body: RequestBody): Look {
    try {
      const text = readForm(body);
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
  }

  async function verifyUnused(verifying: LogoutToken | Promise<LogoutToken>): Promise<LogoutToken> {
    const token = await verifying;
    return (await uses.isUsed(token)) ? failReplayed() : token;
  }

  async function logOut(token: LogoutToken, ip: string): Promise<Reply> {
    const use = await uses.use(token);
    if (use.kind === 'again') return failReplayed();
    if (use.kind === 'underWay') fail('logout_unfinished', { headers: RETRY });
    try {
      const ended = await endAll(token, ip);
      await use.finish();
      return { status: 200, facts: { ...(token.user && nameUser(token.user)), ended } };
    } catch (thrown) {
      await use.giveBack();
      throw thrown;
    }
  }

  /** Resolves to how many. */
  async function endAll(token: LogoutToken, ip: string): Promise<number> {
    let count = 0;
    for (const selection of await select(token)) {
      const { ended, failed } = await endSelectedGrants(selection, 'provider', (grant) =>
        writeEnd(grant, ip),
      );
      count += ended;
      if (failed > 0) {
        fail('logout_unfinished', { headers: RETRY, facts: { ended: count, failed } });
      }
    }
    return count;
  }

  async function select({ user, sid }: LogoutToken): Promise<readonly GrantSelection[]> {
    const endsAll = config.backchannelEnds === 'all';
    if (sid === undefined || (endsAll && user !== undefined)) {
      return user === undefined ? [] : [selectUser(user)];
    }
    const session = { issuer, sid };
    const users = endsAll ? await listUsers(session) : [];
    // The session last: who sends the token again must find whose it is.
    return [...users.map(selectUser), { kind: 'session', session, user }];
  }

  async function listUsers(session: ProviderSession): Promise<readonly UserIdentity[]> {
    const users = new Map<string, UserIdentity>();
    let page = await grants.list({ from: undefined, limit: PAGE }, { kind: 'session', session });
    for (;;) {
      for (const { user, sid } of page.items) {
        if (sid === session.sid) users.set(hashUser(user), user);
      }
      if (page.next === undefined) return [...users.values()];
      page = await grants.list({ from: page.next, limit: PAGE }, { kind: 'session', session });
    }
  }

  function writeEnd({ id, user, client }: Grant, ip: string): void {
    const login = { ...nameUser(user), client: client.id, grant: id };
    audit?.write({ event: 'revocation', ...login, ip, action: 'provider' }, { outcome: 'success' });
  }

  function countAndRethrow(thrown: unknown): never {
    const { key, row } = toGatewayError(thrown);
    if (key === 'invalid_logout_token') metrics.recordLogoutToken('refused');
    else if (row.status >= 500) metrics.recordLogoutToken('failed');
    throw thrown;
  }

  async function logOutAndCount(token: LogoutToken, ip: string): Promise<Reply> {
    const reply = await logOut(token, ip).catch(countAndRethrow);
    metrics.recordLogoutToken('accepted');
    return reply;
  }

  return {
    kind: 'public',
    method: 'POST',
    path: '/oauth/backchannel-logout',
    errors: ERRORS,
    headers: NO_STORE,
    limit: 'logout',
    body: 'json or form',
    maxBodyBytes: MAX_BODY_BYTES,
    // Anybody may send one. Those that the provider signed with a key at hand keep out each other alone; all others count for
    // their address before a key is asked for.
    chooseLimit(body) {
      const { isProven, verify } = lookAt(body);
      if (!isProven) return { group: 'logout' };
      const find = async () => {
        await verify();
        return PROVIDER;
      };
      return { group: 'logout', login: { knownId: PROVIDER.id, find } };
    },
    async judge({ clientIp }, body) {
      const { verify } = lookAt(body);
      const token = await verify().catch(rethrowForProvider).catch(countAndRethrow);
      return () => logOutAndCount(token, clientIp);
    },
  };
}

/** What a request says before its logout token is used. */
interface Look {
  /** Whether a key at hand signed it, and all else is right. */
  readonly isProven: boolean;
  /** @throws GatewayError `invalid_logout_token`, also for one that was used; `key_set_unavailable`, or what the store throws. */
  verify(): Promise<LogoutToken>;
}

/** In whose place its logout tokens are counted, whatever address they come from. */
const PROVIDER: KnownLogin = { id: 'provider', isAnswered: false, isProven: true };

const RETRY = { 'Retry-After': '5' };

const selectUser = (user: UserIdentity): GrantSelection => ({
  kind: 'user',
  user,
  client: undefined,
});

/** §2.5. @throws GatewayError `oauth_invalid_request`. */
function readForm(body: RequestBody): string {
  if (body.type !== 'form') {
    fail('oauth_invalid_request', { details: 'The body must be a form that has logout_token.' });
  }
  return parseBody(body, checkFieldName).require('logout_token');
}

const failReplayed = (): never =>
  failLogoutToken('jti', 'The logout token was used before.', {
    found: 'one that was used',
    expected: 'a new one',
  });

/** That the keys of the provider cannot be had is no fault of the token. @throws what the provider understands. */
function rethrowForProvider(thrown: unknown): never {
  if (thrown instanceof GatewayError && thrown.key === 'key_set_unavailable') {
    fail('logout_unfinished', { headers: RETRY, cause: thrown.failure.cause });
  }
  throw thrown;
}
