// §27.4: where users decide about calls that wait for them. A link alone does nothing: who opens it has to be who it was made for.

import { fail } from '../../errors/gateway-error.ts';
import type { PublicEndpoint } from '../../http/endpoint/endpoint.ts';
import type { GrantReader } from '../../http/endpoint/grants.ts';
import {
  createRedirectReply,
  getHeader,
  type Reply,
  type RequestBody,
} from '../../http/endpoint/message.ts';
import { createNameCheck, parseBody, parseQuery } from '../../http/endpoint/parameters.ts';
import type { BeginLogin, OwnPage } from '../../logins/account/begin-login.ts';
import type { BrowserSession, BrowserSessions } from '../../logins/account/browser-sessions.ts';
import { renderLoginFailed } from '../../logins/account/login-failed-page.ts';
import { checkCsrf, createJudgePage, OWN_FORM, OWN_PAGE } from '../../logins/account/own-page.ts';
import { createShowApp } from '../../logins/account/page-parts.ts';
import { nameOwner, withoutDefault } from '../../store/owner.ts';
import type { Owner } from '../../store/store.ts';
import {
  renderDecidedPage,
  renderForeignPage,
  renderGonePage,
  renderListPage,
  renderRequestPage,
  type ShownRequest,
} from './approval-pages.ts';
import type { ApprovalRequest, CallApprovals } from './approvals.ts';

export interface ApprovalEndpointsDeps {
  /** `BASE_URL`. */
  readonly baseUrl: string;
  /** `SERVICE_DISPLAY_NAME`. */
  readonly displayName: string;
  /** `OIDC_ISSUER`: users of it are named without it. */
  readonly issuer: string;
  readonly approvals: Pick<CallApprovals, 'find' | 'listOfUser' | 'decide'>;
  readonly grants: Pick<GrantReader, 'listOfUser'>;
  readonly beginLogin: BeginLogin;
  readonly browserSessions: Pick<BrowserSessions, 'find' | 'has'>;
}

/** Fields of the forms. */
const checkFieldName = createNameCheck(['csrf', 'action', 'request']);

/** What the id of a request can look like. */
const REQUEST_ID = /^[\w-]{1,128}$/;

const PATH = '/approvals';

const buildPage = (id: string): OwnPage => `${PATH}/${id}`;

export function createApprovalEndpoints(deps: ApprovalEndpointsDeps): readonly PublicEndpoint[] {
  const { baseUrl, displayName, issuer, approvals, grants, beginLogin, browserSessions } = deps;

  const getPerson = ({ user }: BrowserSession): Owner => withoutDefault(user, issuer);
  const isOf = (request: ApprovalRequest, session: BrowserSession): boolean =>
    nameOwner(request.owner) === nameOwner(getPerson(session));

  /** As at `/account`. */
  async function addApps(
    requests: readonly ApprovalRequest[],
    { user }: BrowserSession,
  ): Promise<readonly ShownRequest[]> {
    const clients = (await grants.listOfUser(user)).map(({ client }) => client);
    const showApp = createShowApp(clients);
    return requests.map((request) => {
      const { clientId = '' } = request;
      const client = clients.find(({ id }) => id === clientId) ?? { id: clientId, name: clientId };
      return { request, app: showApp(client) };
    });
  }

  async function getList(query: string, cookie: string | undefined): Promise<Reply> {
    const problem = parseQuery(query, () => {}).get('error');
    if (problem !== undefined) return renderLoginFailed(displayName, problem, baseUrl + PATH);
    const found = await browserSessions.find(cookie);
    if (found === undefined) return beginLogin(cookie, { page: PATH, isFresh: false });
    const { session } = found;
    const requests = await approvals.listOfUser(getPerson(session));
    return renderListPage(deps, session, await addApps(requests, session));
  }

  async function getOne(id: string, query: string, cookie: string | undefined): Promise<Reply> {
    if (!REQUEST_ID.test(id)) return renderGonePage(deps);
    const page = buildPage(id);
    const problem = parseQuery(query, () => {}).get('error');
    if (problem !== undefined) return renderLoginFailed(displayName, problem, baseUrl + page);
    const found = await browserSessions.find(cookie);
    if (found === undefined) return beginLogin(cookie, { page, isFresh: false });
    const { session } = found;
    const request = await approvals.find(id);
    if (request === undefined) return renderGonePage(deps);
    if (!isOf(request, session)) return renderForeignPage(deps, session, id);
    if (request.state !== 'pending') return renderDecidedPage(deps, request);
    const [shown] = await addApps([request], session);
    return shown === undefined ? renderGonePage(deps) : renderRequestPage(deps, session, shown);
  }

  async function post(body: RequestBody, cookie: string | undefined): Promise<Reply> {
    const parameters = parseBody(body, checkFieldName);
    const id = parameters.require('request');
    if (!REQUEST_ID.test(id)) return renderGonePage(deps);
    const found = await browserSessions.find(cookie);
    // What was on the page is over: whoever comes now logs in first.
    if (found === undefined) return createRedirectReply(baseUrl + buildPage(id));
    const { session } = found;
    checkCsrf(parameters, session);
    const action = parameters.require('action');
    if (action === 'switch') {
      await found.end();
      return beginLogin(cookie, { page: buildPage(id), isFresh: true });
    }
    if (action !== 'approve' && action !== 'refuse') {
      fail('oauth_invalid_request', { details: 'action must be approve, refuse or switch.' });
    }
    const request = await approvals.find(id);
    if (request === undefined) return renderGonePage(deps);
    if (!isOf(request, session)) return renderForeignPage(deps, session, id);
    if (request.approver !== 'page') {
      fail('oauth_invalid_request', { details: 'Operators decide about this call.' });
    }
    const decision = action === 'approve' ? 'approved' : 'refused';
    const by = { kind: 'user', name: session.user.sub } as const;
    const decided = (await approvals.decide(id, decision, by)) ?? (await approvals.find(id));
    return decided === undefined ? renderGonePage(deps) : renderDecidedPage(deps, decided);
  }

  const common = { ...OWN_PAGE, limit: 'approvals' } as const;
  const judgePage = createJudgePage(browserSessions);

  return [
    {
      ...common,
      method: 'GET',
      path: PATH,
      judge: judgePage((request) => getList(request.query, getHeader(request, 'cookie'))),
    },
    {
      ...common,
      ...OWN_FORM,
      method: 'POST',
      path: PATH,
      judge: judgePage((request, body) => post(body, getHeader(request, 'cookie'))),
    },
    {
      ...common,
      method: 'GET',
      path: `${PATH}/:id`,
      // One that there is none of is told so on a page.
      hasParameter: () => true,
      judge: judgePage((request) =>
        getOne(request.path.slice(PATH.length + 1), request.query, getHeader(request, 'cookie')),
      ),
    },
  ];
}
