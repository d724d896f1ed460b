// §5.11, §24.3, §27.4: the gateway's own pages for users, who log in for them in their browser: what the features that have
// such pages need of the one that logs people in.

import type { LimitGroup } from '../../config/groups/limits.ts';
import { fail } from '../../errors/gateway-error.ts';
import { isEqualSecret } from '../../platform/ids.ts';
import type { Owner } from '../../store/store.ts';
import type { NamedClient } from './display-name.ts';
import type { PublicEndpoint } from './endpoint.ts';
import {
  createRedirectReply,
  type GatewayRequest,
  getHeader,
  type Reply,
  type ReplyHeaders,
  type RequestBody,
} from './message.ts';
import { type PageOwner, renderLoginFailed } from './own-page-parts.ts';
import type { RequestParameters } from './parameters.ts';
import { OAUTH } from './render-error.ts';

/** Browsers log in by it for these pages. `cookie` is the Cookie header. */
export interface OwnPages {
  readonly sessions: BrowserSessions;
  readonly browsers: Browsers;
  readonly beginLogin: BeginLogin;
  /** The clients that act for a user. */
  listClients(user: BrowserSession['user']): Promise<readonly NamedClient[]>;
}

interface BrowserSessions {
  /** Without effect. */
  has(cookie: string | undefined): Promise<boolean>;
  /** Undefined without one. Being read, it lives on. */
  find(cookie: string | undefined): Promise<OpenBrowserSession | undefined>;
}

interface OpenBrowserSession {
  readonly session: BrowserSession;
  end(): Promise<void>;
}

/** Somebody who is logged in at these pages. */
export interface BrowserSession {
  readonly user: Owner & { readonly issuer: string };
  /** As the person knows it: an address, or a name. */
  readonly displayName: string;
  /** RFC 9700 §4.7: what each form repeats. */
  readonly csrf: string;
  /** In one of `ADMIN_GROUPS` when they logged in. Such a session is short, as that may change. */
  readonly isOperator: boolean;
}

/** Known by a cookie that only it has, with or without a session. */
export interface Browser {
  /** Stands in records for the cookie. */
  readonly hash: string;
  /** Headers that give a new browser its cookie, or let a known one keep it. */
  readonly headers: ReplyHeaders;
}

export interface Browsers {
  /** The browser of a Cookie header, or a new one. */
  getOrCreate(cookie: string | undefined): Browser;
  /** The hash of the cookie that was sent; undefined without one. */
  readHash(cookie: string | undefined): string | undefined;
}

/** Sends a browser without a session to the provider, to log in for a page. */
export type BeginLogin = (cookie: string | undefined, login: LoginForPage) => Promise<Reply>;

interface LoginForPage {
  /** The browser is led back to it. */
  readonly page: OwnPage;
  /** Asked even where the provider knows the browser, as it has to be sure who sits there. */
  readonly isFresh: boolean;
}

/** A path of the gateway's own, with its query. Pages make it themselves: nothing that somebody sent leads anywhere else. */
export type OwnPage =
  | '/account'
  | '/connections'
  | `/connections/${string}`
  | '/approvals'
  | `/approvals/${string}`;

/** Answers a browser. `cookie` is the Cookie header. */
type RunPage = (
  request: GatewayRequest,
  cookie: string | undefined,
  body: RequestBody,
) => Promise<Reply>;

/**
 * Makes the endpoints of one feature's pages, all counted in the group `limit`. A browser without a session may be anybody's. Nothing
 * else is to be judged before the request is counted.
 */
export const createOwnPageEndpoint =
  ({ has }: BrowserSessions, limit: LimitGroup) =>
  (method: 'GET' | 'POST', path: string, run: RunPage): PublicEndpoint => ({
    kind: 'public',
    method,
    path,
    // One that there is none of is told so on a page.
    ...(path.includes(':') && { hasParameter: () => true }),
    ...(method === 'POST' && { body: 'json or form', maxBodyBytes: 16_384 }),
    limit,
    errors: OAUTH,
    hasErrorPages: true,
    isPageOfUser: true,
    isNavigation: true,
    async judge(request, body) {
      const cookie = getHeader(request, 'cookie');
      const pending = () => run(request, cookie, body);
      return (await has(cookie)) ? pending : { runAnonymous: pending };
    },
  });

/** Shows a page to the one who is logged in; anybody else logs in for it first. `error` is that of a login that led back to it. */
export async function showToUser(
  { displayName, baseUrl }: PageOwner,
  { sessions, beginLogin }: OwnPages,
  { page, error, cookie }: Record<'error' | 'cookie', string | undefined> & { page: OwnPage },
  show: (session: BrowserSession) => Promise<Reply>,
): Promise<Reply> {
  if (error !== undefined) return renderLoginFailed(displayName, error, baseUrl + page);
  const found = await sessions.find(cookie);
  return found === undefined ? beginLogin(cookie, { page, isFresh: false }) : show(found.session);
}

/** Carries out what a form of `page` asks for. What was on the page may be over: whoever comes now logs in first. */
export async function actForUser(
  { baseUrl }: PageOwner,
  { sessions, beginLogin }: OwnPages,
  { page, parameters, cookie }: OwnForm,
  act: (action: string, session: BrowserSession) => Promise<Reply>,
): Promise<Reply> {
  const found = await sessions.find(cookie);
  if (found === undefined) return createRedirectReply(baseUrl + page);
  checkCsrf(parameters, found.session);
  const action = parameters.require('action');
  if (action !== 'switch') return act(action, found.session);
  await found.end();
  // The provider asks who it is, or it would bring back the same person.
  return beginLogin(cookie, { page, isFresh: true });
}

interface OwnForm {
  readonly page: OwnPage;
  readonly parameters: RequestParameters;
  readonly cookie: string | undefined;
}

/** RFC 9700 §4.7. @throws GatewayError where the form is none of this session. */
export function checkCsrf(
  parameters: Pick<RequestParameters, 'get'>,
  { csrf }: BrowserSession,
): void {
  if (isEqualSecret(parameters.get('csrf') ?? '', csrf)) return;
  fail('oauth_invalid_request', {
    details: 'This page was open for too long. Go back, reload it, and try again.',
  });
}
