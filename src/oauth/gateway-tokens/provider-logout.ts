// §13.4: the provider says that somebody logged out there (OpenID Connect Back-Channel Logout 1.0): their logins here end.
import {
  failLogoutToken,
  type LogoutToken,
  type LogoutTokenVerifier,
} from '../../auth/logout-token.ts';
import type { TokensConfig } from '../../config/groups/own-tokens.ts';
import type { PublicEndpoint } from '../../endpoint/endpoint.ts';
import type { PendingReply, Reply, RequestBody } from '../../endpoint/message.ts';
import type { ErrorFormat } from '../../endpoint/render-error.ts';
import { fail, GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import { type Grant, nameUser, type UserIdentity } from '../../grants/grant.ts';
import type { ProviderSession } from '../../grants/grant-lists.ts';
import type { Grants } from '../../grants/grants.ts';
import { hashUser } from '../../grants/token-codec.ts';
import type { Audit } from '../../telemetry/audit/audit.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import { createNameCheck, parseBody } from '../request/parameters.ts';
import type { EndSelectedGrants } from './end-selected-grants.ts';
import type { UseLogoutToken } from './logout-token-uses.ts';
import type { GrantSelection } from './logouts.ts';

export interface ProviderLogoutDeps {
  readonly config: Pick<TokensConfig, 'backchannelEnds'>;
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
  readonly logoutTokens: LogoutTokenVerifier;
  readonly useLogoutToken: UseLogoutToken;
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
  const { config, issuer, logoutTokens, useLogoutToken, grants, endSelectedGrants } = deps;
  const { audit, metrics } = deps;

  async function logOut(text: string, ip: string): Promise<Reply> {
    const token = await logoutTokens.verify(text).catch(rethrowForProvider);
    const use = await useLogoutToken(token);
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

  async function logOutAndCount(text: string, ip: string): Promise<Reply> {
    try {
      const reply = await logOut(text, ip);
      metrics.recordLogoutToken('accepted');
      return reply;
    } catch (thrown) {
      const isRefused = toGatewayError(thrown).key === 'invalid_logout_token';
      metrics.recordLogoutToken(isRefused ? 'refused' : 'failed');
      throw thrown;
    }
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
    // The signature is checked once the request is counted: anybody may send what is none, and a key be asked for.
    async judge({ clientIp }, body): Promise<PendingReply> {
      const text = readForm(body);
      return () => logOutAndCount(text, clientIp);
    },
  };
}

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
