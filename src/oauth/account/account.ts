// §5.11: `/account`: users see which clients act for them, and log them out. The gateway itself logs them in for it.

import { ACCOUNT_CLIENT_ID } from '../../auth/own-clients.ts';
import type { ProviderEndpoints } from '../../auth/provider-metadata.ts';
import type { PublicEndpoint } from '../../endpoint/endpoint.ts';
import {
  createRedirectReply,
  getHeader,
  type PendingReply,
  type Reply,
  type RequestBody,
} from '../../endpoint/message.ts';
import { OAUTH } from '../../endpoint/render-error.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { Grant } from '../../grants/grant.ts';
import type { Grants } from '../../grants/grants.ts';
import { hashUser } from '../../grants/token-codec.ts';
import type { Clock } from '../../platform/clock.ts';
import { generateSecret, isEqualSecret } from '../../platform/ids.ts';
import type { SealedRecords } from '../../store/seal/sealed-records.ts';
import type { Audit } from '../../telemetry/audit/audit.ts';
import { buildLoginRequest, type Login } from '../broker/redirect-to-provider.ts';
import type { Browsers } from '../consent/browser.ts';
import type { EndGrant } from '../gateway-tokens/end-grant.ts';
import type { EndSelectedGrants } from '../gateway-tokens/end-selected-grants.ts';
import type { Logouts } from '../gateway-tokens/logouts.ts';
import type { Identity } from '../identity/identity.ts';
import type { AuthorizationParameters } from '../provider/provider-parameters.ts';
import { createNameCheck, parseBody, parseQuery } from '../request/parameters.ts';
import { type AccountPageContent, renderAccountPage, renderLoginFailed } from './account-page.ts';
import type { BrowserSession, BrowserSessions, OpenBrowserSession } from './browser-sessions.ts';

export interface AccountDeps {
  /** `BASE_URL`. */
  readonly baseUrl: string;
  /** `SERVICE_DISPLAY_NAME`. */
  readonly displayName: string;
  /** The gateway's own client at the provider. */
  readonly clientId: string;
  readonly endpoints: ProviderEndpoints;
  /** What the provider is asked for, so that it says the same of the person as at a client's login. */
  readonly buildParameters: () => Pick<AuthorizationParameters, 'scope' | 'authorization'>;
  readonly clock: Clock;
  readonly logins: SealedRecords<Login>;
  readonly browsers: Browsers;
  readonly browserSessions: BrowserSessions;
  readonly grants: Pick<Grants, 'listOfUser' | 'read'>;
  readonly endGrant: EndGrant;
  readonly endSelectedGrants: EndSelectedGrants;
  readonly logouts: Pick<Logouts, 'getMark'>;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
}

export interface Account {
  readonly endpoints: readonly PublicEndpoint[];
  /** The provider says who came for this page. */
  finish(identity: Identity, login: Pick<Login, 'account' | 'logoutMark'>): Promise<Reply>;
}

/** OpenID Connect Core §3.1.2.1: without `auth_time` nobody knows. The provider's clock may be behind. */
const wasAskedSince = (authTime: unknown, since: number): boolean =>
  typeof authTime === 'number' && authTime * 1000 >= since - TOLERANCE_MS;

const TOLERANCE_MS = 60_000;

/** Anybody can write what stands in an address: of that nothing is shown. */
const explain = (error: string): string =>
  error === 'access_denied'
    ? 'The identity provider did not let you in, or the login was cancelled.'
    : 'The identity provider could not log you in. Try again; if it fails again, tell whoever runs this gateway.';

/** Fields of the forms. */
const checkFieldName = createNameCheck(['csrf', 'action', 'grant']);

export function createAccount(deps: AccountDeps): Account {
  const { baseUrl, displayName, browsers, browserSessions, grants, logouts, audit } = deps;
  const url = `${baseUrl}/account`;

  /** Asked even where the provider knows the browser, if it has to be sure who sits there. */
  async function redirectToProvider(cookie: string | undefined, isFresh: boolean): Promise<Reply> {
    const { clientId, endpoints, logins, clock } = deps;
    const { scope, authorization } = deps.buildParameters();
    const logoutMark = await logouts.getMark();
    const browser = browsers.getOrCreate(cookie);
    const codeVerifier = generateSecret();
    const nonce = generateSecret();
    const state = await logins.put({
      browser: browser.hash,
      clientId: ACCOUNT_CLIENT_ID,
      redirectUri: url,
      state: undefined,
      codeChallenge: '',
      resources: [],
      logoutMark,
      codeVerifier,
      nonce,
      sendsIssuer: await endpoints.sendsIssuer(),
      account: isFresh ? { freshSince: clock.now() } : {},
    });
    const reply = createRedirectReply(
      buildLoginRequest(
        await endpoints.findAuthorizationUrl(),
        { baseUrl, clientId, scope, state, codeVerifier, nonce },
        [
          ...(isFresh
            ? ([
                ['prompt', 'login'],
                ['max_age', '0'],
              ] as const)
            : []),
          ...authorization.filter(([name]) => !isFresh || name !== 'prompt'),
        ],
      ),
    );
    return { ...reply, headers: { ...reply.headers, ...browser.headers } };
  }

  async function show(
    session: BrowserSession,
    shown: Partial<Pick<AccountPageContent, 'asksForAll' | 'wasNotAsked' | 'notEnded'>>,
  ): Promise<Reply> {
    const list = await grants.listOfUser(session.user);
    const latestFirst = [...list].sort((one, other) => other.createdAt - one.createdAt);
    return renderAccountPage({
      service: displayName,
      session,
      grants: latestFirst,
      action: url,
      asksForAll: false,
      wasNotAsked: false,
      notEnded: 0,
      ...shown,
    });
  }

  async function get(query: string, cookie: string | undefined): Promise<Reply> {
    const parameters = parseQuery(query, () => {});
    const problem = parameters.get('error');
    if (problem !== undefined) return renderLoginFailed(displayName, explain(problem), url);
    const found = await browserSessions.find(cookie);
    if (found === undefined) return redirectToProvider(cookie, false);
    const { session } = found;
    return show(session, {
      asksForAll: parameters.get('all') !== undefined && session.isFresh,
      wasNotAsked: parameters.get('unsure') !== undefined && !session.isFresh,
    });
  }

  async function post(body: RequestBody, cookie: string | undefined, ip: string): Promise<Reply> {
    const parameters = parseBody(body, checkFieldName);
    const found = await browserSessions.find(cookie);
    // What was on the page is over: whoever comes now logs in first.
    if (found === undefined) return createRedirectReply(url);
    const { session } = found;
    if (!isEqualSecret(parameters.get('csrf') ?? '', session.csrf)) {
      fail('oauth_invalid_request', {
        details: 'This page was left open for too long. Go back, load it again, and try once more.',
      });
    }
    const action = parameters.require('action');
    if (action === 'end') {
      await endOne(session, parameters.require('grant'), ip);
      return createRedirectReply(url);
    }
    if (action === 'ask_all' || (action === 'end_all' && !session.isFresh)) {
      return session.isFresh
        ? createRedirectReply(`${url}?all=1`)
        : redirectToProvider(cookie, true);
    }
    if (action === 'end_all') return endAll(found, ip);
    if (action === 'leave') {
      await found.end();
      const reply = createRedirectReply(`${baseUrl}/`);
      return { ...reply, headers: { ...reply.headers, ...browserSessions.removal } };
    }
    return fail('oauth_invalid_request', {
      details: 'action must be end, ask_all, end_all or leave.',
    });
  }

  async function endOne({ user }: BrowserSession, id: string, ip: string): Promise<void> {
    const stored = await grants.read(id);
    // Somebody else's is none.
    if (stored === undefined || hashUser(stored.grant.user) !== hashUser(user)) return;
    const ended = await deps.endGrant(id, 'user');
    if (ended !== undefined) writeEnd(ended, ip);
  }

  /** Other browsers of the user are logged out of this page, too; whoever sits here sees what came of it. */
  async function endAll(found: OpenBrowserSession, ip: string): Promise<Reply> {
    const selection = { kind: 'user', user: found.session.user, client: undefined } as const;
    const { failed, logoutMark } = await deps.endSelectedGrants(selection, 'user', (grant) =>
      writeEnd(grant, ip),
    );
    const { session, headers } = await found.renew(logoutMark);
    const reply =
      failed === 0
        ? createRedirectReply(url)
        : await show(session, { asksForAll: true, notEnded: failed });
    return { ...reply, headers: { ...reply.headers, ...headers } };
  }

  function writeEnd({ id, user, client }: Grant, ip: string): void {
    audit?.write(
      {
        event: 'revocation',
        user: user.sub,
        client: client.id,
        grant: id,
        ip,
        action: 'account',
      },
      { outcome: 'success' },
    );
  }

  const common = {
    kind: 'public',
    errors: OAUTH,
    path: '/account',
    limit: 'account',
    hasErrorPages: true,
    isNavigation: true,
  } as const;

  return {
    async finish({ user, claims, sid }, { account, logoutMark }) {
      const { freshSince } = account ?? {};
      const isFresh = freshSince !== undefined && wasAskedSince(claims.auth_time, freshSince);
      const names = [claims.email, claims.name].filter((one) => typeof one === 'string');
      const displayed = names.find((one) => one !== '') ?? user.sub;
      const session = { user, displayName: displayed, isFresh, sid, logoutMark };
      const headers = await browserSessions.create(session);
      const notice = freshSince === undefined ? '' : isFresh ? '?all=1' : '?unsure=1';
      const reply = createRedirectReply(`${url}${notice}`);
      return { ...reply, headers: { ...reply.headers, ...headers } };
    },
    endpoints: [
      {
        ...common,
        method: 'GET',
        judge:
          async (request): Promise<PendingReply> =>
          () =>
            get(request.query, getHeader(request, 'cookie')),
      },
      {
        ...common,
        method: 'POST',
        body: 'json or form',
        maxBodyBytes: 16_384,
        judge:
          async (request, body): Promise<PendingReply> =>
          () =>
            post(body, getHeader(request, 'cookie'), request.clientIp),
      },
    ],
  };
}
