// §5.11, §24.3, §27.4: the gateway's own pages for users, who log in to them in the browser: the port between the features with
// such pages and the one that handles logins.

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

/** Handles browser logins for these pages. `cookie` is the Cookie header. */
export interface OwnPages {
  readonly sessions: BrowserSessions;
  readonly browsers: Browsers;
  readonly beginLogin: BeginLogin;
  /** The clients that act on behalf of a user. */
  listClients(user: BrowserSession['user']): Promise<readonly NamedClient[]>;
}

interface BrowserSessions {
  /** Has no effect on the session. */
  has(cookie: string | undefined): Promise<boolean>;
  /** Undefined without a session. Reading a session extends it. */
  find(cookie: string | undefined): Promise<OpenBrowserSession | undefined>;
}

interface OpenBrowserSession {
  readonly session: BrowserSession;
  end(): Promise<void>;
}

/** A user who is logged in to these pages. */
export interface BrowserSession {
  readonly user: Owner & { readonly issuer: string };
  /** A name that the user recognizes: an e-mail address or a name. */
  readonly displayName: string;
  /** RFC 9700 §4.7: the token that each form repeats. */
  readonly csrf: string;
  /** True if the user was in one of `ADMIN_GROUPS` at the login. Such a session is short, as the groups may change. */
  readonly isOperator: boolean;
}

/** A browser, identified by a cookie, with or without a session. */
export interface Browser {
  /** Represents the cookie in records. */
  readonly hash: string;
  /** Headers that give a new browser its cookie, or extend the cookie of a known one. */
  readonly headers: ReplyHeaders;
}

export interface Browsers {
  /** Returns the browser of a Cookie header, or a new one. */
  getOrCreate(cookie: string | undefined): Browser;
  /** The hash of the sent cookie; undefined without one. */
  readHash(cookie: string | undefined): string | undefined;
}

/** Redirects a browser without a session to the provider, to log in for a page. */
export type BeginLogin = (cookie: string | undefined, login: LoginForPage) => Promise<Reply>;

interface LoginForPage {
  /** The page to return to. */
  readonly page: OwnPage;
  /** True if the provider must ask for the user, even if it knows the browser: a different user may sit there. */
  readonly isFresh: boolean;
}

/** A path of the gateway's own pages, with its query. Only pages build it: input never determines where a redirect leads. */
export type OwnPage =
  | '/account'
  | '/connections'
  | `/connections/${string}`
  | '/approvals'
  | `/approvals/${string}`;

/** Handles a browser's request. `cookie` is the Cookie header. */
type RunPage = (
  request: GatewayRequest,
  cookie: string | undefined,
  body: RequestBody,
) => Promise<Reply>;

/**
 * Creates the endpoints of one feature's pages, all counted in the group `limit`. A browser without a session may be a
 * stranger's. Nothing else is checked before the request is counted.
 */
export const createOwnPageEndpoint =
  ({ has }: BrowserSessions, limit: LimitGroup) =>
  (method: 'GET' | 'POST', path: string, run: RunPage): PublicEndpoint => ({
    kind: 'public',
    method,
    path,
    // Accepts any parameter: for an unknown one, the page says so.
    ...(path.includes(':') && { hasParameter: () => true }),
    ...(method === 'POST' && { body: 'json or form', maxBodyBytes: 16_384 }),
    limit,
    errors: OAUTH,
    hasErrorPages: true,
    isPageOfUser: true,
    refusesScripts: true,
    async judge(request, body) {
      const cookie = getHeader(request, 'cookie');
      const pending = () => run(request, cookie, body);
      return (await has(cookie)) ? pending : { runAnonymous: pending };
    },
  });

/** Shows a page to a logged-in user; other browsers log in first. `error` is from a failed login that led back to the page. */
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

/** Performs the action of a form on `page`. Without a session, redirects to the page to log in first. */
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
  // The provider must ask for the user; otherwise it would return the same one.
  return beginLogin(cookie, { page, isFresh: true });
}

interface OwnForm {
  readonly page: OwnPage;
  readonly parameters: RequestParameters;
  readonly cookie: string | undefined;
}

/** RFC 9700 §4.7. @throws GatewayError if the form is not from this session. */
export function checkCsrf(
  parameters: Pick<RequestParameters, 'get'>,
  { csrf }: BrowserSession,
): void {
  if (isEqualSecret(parameters.get('csrf') ?? '', csrf)) return;
  fail('oauth_invalid_request', {
    details: 'This page was open for too long. Go back, reload it, and try again.',
  });
}
