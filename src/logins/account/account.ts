// §5.11: `/account`: users see which clients act for them, and log them out. The gateway itself logs them in for it.

import { fail } from '../../errors/gateway-error.ts';
import type { PublicEndpoint } from '../../http/endpoint/endpoint.ts';
import {
  createRedirectReply,
  getHeader,
  type Reply,
  type RequestBody,
} from '../../http/endpoint/message.ts';
import { renderLoginFailed } from '../../http/endpoint/own-page-parts.ts';
import {
  type Browsers,
  checkCsrf,
  createJudgePage,
  OWN_FORM,
  OWN_PAGE,
  type OwnPages,
} from '../../http/endpoint/own-pages.ts';
import { createNameCheck, parseBody, parseQuery } from '../../http/endpoint/parameters.ts';
import type { ProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import { createSecretRecords } from '../../store/records.ts';
import { buildProviderRequest } from '../broker/login.ts';
import type { Broker } from '../broker/open-broker.ts';
import type { BrokerRuntime } from '../broker/runtime.ts';
import { type Grant, nameUser } from '../grants/grant.ts';
import { hashUser } from '../grants/token-codec.ts';
import { type AccountPageContent, renderAccountPage, renderLoggedOut } from './account-page.ts';
import type {
  FoundBrowserSession,
  StoredBrowserSession,
  StoredBrowserSessions,
} from './browser-sessions.ts';

/** Fields of the forms. */
const checkFieldName = createNameCheck(['csrf', 'action', 'grant']);

export function createAccountEndpoints(
  runtime: BrokerRuntime,
  { ownTokens: { grants }, endpoints, ends, servers }: Broker,
  browserSessions: StoredBrowserSessions,
  { browsers, beginLogin }: Pick<OwnPages, 'browsers' | 'beginLogin'>,
): readonly PublicEndpoint[] {
  const { config, baseUrl, audit } = runtime;
  const endProviderSession = createEndProviderSession(runtime, endpoints, browsers);
  const url = `${baseUrl}/account`;

  async function show(
    session: StoredBrowserSession,
    shown: Partial<Pick<AccountPageContent, 'asksForAll' | 'wasNotAsked' | 'notEnded'>>,
  ): Promise<Reply> {
    const [list, providerHost] = await Promise.all([
      grants.listOfUser(session.user),
      endProviderSession.findHost(),
    ]);
    const latestFirst = [...list].sort((one, other) => other.createdAt - one.createdAt);
    return renderAccountPage({
      owner: config.server,
      session,
      grants: latestFirst,
      providerHost,
      hasConnections: servers.hasConnections(),
      asksForAll: false,
      wasNotAsked: false,
      notEnded: 0,
      ...shown,
    });
  }

  async function get(query: string, cookie: string | undefined): Promise<Reply> {
    const parameters = parseQuery(query, () => {});
    const problem = parameters.get('error');
    if (problem !== undefined) return renderLoginFailed(config.server.displayName, problem, url);
    const found = await browserSessions.find(cookie);
    if (found === undefined) return getWithoutSession(parameters.get('state'), cookie);
    const { session } = found;
    return show(session, {
      asksForAll: parameters.get('all') !== undefined && session.isFresh,
      wasNotAsked: parameters.get('unsure') !== undefined && !session.isFresh,
    });
  }

  /** A user who has just logged out at the provider is not asked to log in again. */
  async function getWithoutSession(
    state: string | undefined,
    cookie: string | undefined,
  ): Promise<Reply> {
    const host = state && (await endProviderSession.findReturn(state, cookie));
    return host
      ? renderLoggedOut(config.server, host)
      : beginLogin(cookie, { page: '/account', isFresh: false });
  }

  async function post(body: RequestBody, cookie: string | undefined, ip: string): Promise<Reply> {
    const parameters = parseBody(body, checkFieldName);
    const found = await browserSessions.find(cookie);
    // The page is over: whoever comes now logs in first.
    if (found === undefined) return createRedirectReply(url);
    const { session } = found;
    checkCsrf(parameters, session);
    const action = parameters.require('action');
    if (action === 'end') {
      await endOne(session, parameters.require('grant'), ip);
      return createRedirectReply(url);
    }
    const endsAll = action === 'end_all' || action === 'end_all_provider';
    if (action === 'ask_all' || (endsAll && !session.isFresh)) {
      return session.isFresh
        ? createRedirectReply(`${url}?all=1`)
        : beginLogin(cookie, { page: '/account', isFresh: true });
    }
    if (action === 'end_all') return endAll(found, ip);
    if (action === 'end_all_provider') return endAll(found, ip, () => leave(found, cookie, true));
    if (action === 'leave') return leave(found, cookie, false);
    if (action === 'leave_provider') return leave(found, cookie, true);
    return fail('oauth_invalid_request', {
      details: 'action must be end, ask_all, end_all, end_all_provider, leave or leave_provider.',
    });
  }

  /** `isEverywhere`: at the provider, too, where that has a page for it. */
  async function leave(
    { session, end }: FoundBrowserSession,
    cookie: string | undefined,
    isEverywhere: boolean,
  ): Promise<Reply> {
    await end();
    const atProvider = isEverywhere
      ? await endProviderSession.redirect(session, cookie)
      : undefined;
    const reply = atProvider ?? createRedirectReply(`${baseUrl}/`);
    return { ...reply, headers: { ...reply.headers, ...browserSessions.removal } };
  }

  async function endOne({ user }: StoredBrowserSession, id: string, ip: string): Promise<void> {
    const stored = await grants.read(id);
    // Somebody else's is none.
    if (stored === undefined || hashUser(stored.grant.user) !== hashUser(user)) return;
    const ended = await ends.endGrant(id, 'user');
    if (ended !== undefined) writeEnd(ended, ip);
  }

  /** Other browsers of the user are logged out of this page, too; whoever sits here sees what came of it. */
  async function endAll(
    found: FoundBrowserSession,
    ip: string,
    finish?: () => Promise<Reply>,
  ): Promise<Reply> {
    const selection = { kind: 'user', user: found.session.user, client: undefined } as const;
    const { failed, logoutMark } = await ends.endSelectedGrants(selection, 'user', (grant) =>
      writeEnd(grant, ip),
    );
    if (failed === 0 && finish !== undefined) return finish();
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
        ...nameUser(user),
        client: client.id,
        grant: id,
        ip,
        action: 'account',
      },
      { outcome: 'success' },
    );
  }

  const page = { ...OWN_PAGE, path: '/account', limit: 'account' } as const;
  const judgePage = createJudgePage(browserSessions);

  return [
    {
      ...page,
      method: 'GET',
      judge: judgePage((request) => get(request.query, getHeader(request, 'cookie'))),
    },
    {
      ...page,
      ...OWN_FORM,
      method: 'POST',
      judge: judgePage((request, body) =>
        post(body, getHeader(request, 'cookie'), request.clientIp),
      ),
    },
  ];
}

// §13.5: whoever logs out at /account can log out at the provider, too (OpenID Connect RP-Initiated Logout 1.0).

/** A browser that is at the provider; found by the state that it brings back. */
interface EndingSession {
  readonly browser: string | undefined;
  readonly host: string;
}

/** The provider may ask whether it is meant. */
const ENDING_SECONDS = 600;

function createEndProviderSession(
  runtime: BrokerRuntime,
  endpoints: Pick<ProviderEndpoints, 'findEndSessionUrl'>,
  browsers: Pick<Browsers, 'readHash'>,
) {
  const { oauth, baseUrl } = runtime;
  const ending = createSecretRecords<EndingSession>(runtime, 'provider-logout', ENDING_SECONDS);

  return {
    /** The host of the page on which the provider logs browsers out; undefined where it has none. */
    async findHost(): Promise<string | undefined> {
      const url = await endpoints.findEndSessionUrl();
      return url && new URL(url).host;
    },
    /** The browser goes there. Undefined where there is no such page. */
    async redirect(
      { idToken }: Pick<StoredBrowserSession, 'idToken'>,
      cookie: string | undefined,
    ): Promise<Reply | undefined> {
      const url = await endpoints.findEndSessionUrl();
      if (url === undefined) return undefined;
      const { host } = new URL(url);
      const state = await ending.put({ browser: browsers.readHash(cookie), host });
      return createRedirectReply(
        buildProviderRequest(url, [
          ['client_id', oauth.providerClient.id],
          ['id_token_hint', idToken],
          ['post_logout_redirect_uri', `${baseUrl}/account`],
          ['state', state],
        ]),
      );
    },
    /** The host from which this browser comes back; undefined for what anybody can write into an address. */
    async findReturn(state: string, cookie: string | undefined): Promise<string | undefined> {
      const found = await ending.get(state);
      const browser = browsers.readHash(cookie);
      return browser !== undefined && found?.browser === browser ? found.host : undefined;
    },
  };
}
