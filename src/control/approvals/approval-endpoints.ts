// §27.4: where users decide about calls that wait for them. A link alone does nothing: who opens it has to be who it was made for.
import { fail } from '../../errors/gateway-error.ts';
import type { PublicEndpoint } from '../../http/endpoint/endpoint.ts';
import {
  createRedirectReply,
  getHeader,
  type Reply,
  type RequestBody,
} from '../../http/endpoint/message.ts';
import { createShowApp, renderLoginFailed } from '../../http/endpoint/own-page-parts.ts';
import {
  type BrowserSession,
  checkCsrf,
  createJudgePage,
  OWN_FORM,
  OWN_PAGE,
  type OwnPage,
  type OwnPages,
} from '../../http/endpoint/own-pages.ts';
import { createNameCheck, parseBody, parseQuery } from '../../http/endpoint/parameters.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner, withoutDefault } from '../../store/owner.ts';
import type { Owner } from '../../store/store.ts';
import {
  renderDecidedPage,
  renderForeignApprovalPage,
  renderGonePage,
  renderListPage,
  renderRequestPage,
  type ShownRequest,
} from './approval-pages.ts';
import type { ApprovalRequest, CallApprovals } from './approvals.ts';

/** Fields of the forms. */
const checkFieldName = createNameCheck(['csrf', 'action', 'request']);

/** What the id of a request can look like. */
const REQUEST_ID = /^[\w-]{1,128}$/;

const PATH = '/approvals';

const buildPage = (id: string): OwnPage => `${PATH}/${id}`;

export function createApprovalEndpoints(
  { config: { server: owner, oauth } }: Pick<Runtime, 'config'>,
  { sessions, beginLogin, listClients }: OwnPages,
  approvals: Pick<CallApprovals, 'find' | 'listOfUser' | 'decide'>,
): readonly PublicEndpoint[] {
  const { baseUrl, displayName } = owner;
  /** Users of it are named without it. */
  const issuer = oauth.provider?.issuer;

  const getPerson = ({ user }: BrowserSession): Owner => withoutDefault(user, issuer);
  const isOf = (request: ApprovalRequest, session: BrowserSession): boolean =>
    nameOwner(request.owner) === nameOwner(getPerson(session));

  /** As at `/account`. */
  async function addApps(
    requests: readonly ApprovalRequest[],
    { user }: BrowserSession,
  ): Promise<readonly ShownRequest[]> {
    const clients = await listClients(user);
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
    const found = await sessions.find(cookie);
    if (found === undefined) return beginLogin(cookie, { page: PATH, isFresh: false });
    const { session } = found;
    const requests = await approvals.listOfUser(getPerson(session));
    return renderListPage(owner, session, await addApps(requests, session));
  }

  async function getOne(id: string, query: string, cookie: string | undefined): Promise<Reply> {
    if (!REQUEST_ID.test(id)) return renderGonePage(owner);
    const page = buildPage(id);
    const problem = parseQuery(query, () => {}).get('error');
    if (problem !== undefined) return renderLoginFailed(displayName, problem, baseUrl + page);
    const found = await sessions.find(cookie);
    if (found === undefined) return beginLogin(cookie, { page, isFresh: false });
    const { session } = found;
    const request = await approvals.find(id);
    if (request === undefined) return renderGonePage(owner);
    if (!isOf(request, session)) return renderForeignApprovalPage(owner, session, id);
    if (request.state !== 'pending') return renderDecidedPage(owner, request);
    const [shown] = await addApps([request], session);
    return shown === undefined ? renderGonePage(owner) : renderRequestPage(owner, session, shown);
  }

  async function post(body: RequestBody, cookie: string | undefined): Promise<Reply> {
    const parameters = parseBody(body, checkFieldName);
    const id = parameters.require('request');
    if (!REQUEST_ID.test(id)) return renderGonePage(owner);
    const found = await sessions.find(cookie);
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
    if (request === undefined) return renderGonePage(owner);
    if (!isOf(request, session)) return renderForeignApprovalPage(owner, session, id);
    if (request.approver !== 'page') {
      fail('oauth_invalid_request', { details: 'Operators decide about this call.' });
    }
    const decision = action === 'approve' ? 'approved' : 'refused';
    const by = { kind: 'user', name: session.user.sub } as const;
    const decided = (await approvals.decide(id, decision, by)) ?? (await approvals.find(id));
    return decided === undefined ? renderGonePage(owner) : renderDecidedPage(owner, decided);
  }

  const common = { ...OWN_PAGE, limit: 'approvals' } as const;
  const judgePage = createJudgePage(sessions);

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
