// §27: the approvals feature: its panel, audit log, metrics and pages.

import { fail } from '../../errors/gateway-error.ts';
import type { AdminPanel } from '../../http/endpoint/admin-panel.ts';
import { readPageRequest, renderNext, renderTime } from '../../http/endpoint/admin-requests.ts';
import { renderQuoted } from '../../http/endpoint/display-name.ts';
import type { PublicEndpoint } from '../../http/endpoint/endpoint.ts';
import { escapeHtml } from '../../http/endpoint/html-page.ts';
import { createJsonReply, type Reply, type RequestBody } from '../../http/endpoint/message.ts';
import {
  createShowApp,
  DONE_MARK,
  listAppRows,
  type PageOwner,
  renderField,
  renderForeignPage,
  renderForm,
  renderLoggedIn,
  renderMinute,
  renderPage,
  renderRows,
  type ShownApp,
  SWITCH,
} from '../../http/endpoint/own-page-parts.ts';
import {
  actForUser,
  type BrowserSession,
  createOwnPageEndpoint,
  type OwnPage,
  type OwnPages,
  showToUser,
} from '../../http/endpoint/own-pages.ts';
import {
  createNameCheck,
  failRequest,
  parseBody,
  parseQuery,
} from '../../http/endpoint/parameters.ts';
import type { CallControl } from '../../mcp/calls/run-call.ts';
import { defineFeature } from '../../mcp/feature.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { shorten } from '../../platform/text.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildApprovalsChannelName, nameOwner, withoutDefault } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import {
  type ApprovalDecision,
  type ApprovalMessage,
  type ApprovalRequest,
  type CallApprovals,
  createCallApprovals,
  isApprovalMessage,
  type NoteApproval,
  showJson,
} from './approvals.ts';
import { createAskFirst } from './ask-first.ts';

export const approvals = defineFeature({
  name: 'approvals',
  open(
    runtime,
    {
      getGuards,
      ownPages,
    }: Pick<CallControl, 'getGuards'> & { readonly ownPages: OwnPages | undefined },
  ) {
    const replicas = createReplicas<ApprovalMessage>(
      runtime,
      buildApprovalsChannelName(runtime.config.mcp.sessions.keyPrefix),
      isApprovalMessage,
    );
    const note = createNote(runtime);
    const kept = createCallApprovals(runtime, replicas, note);
    return {
      gives: { approvals: kept, askFirst: createAskFirst(runtime, kept, note, getGuards) },
      ...(ownPages && { endpoints: createApprovalEndpoints(runtime, ownPages, kept) }),
      panels: createApprovalPanels(kept),
      ...(runtime.config.admin.groups.length > 0 && {
        gauges: { waitingApprovals: kept.countForOperators },
      }),
      close: replicas.close,
    };
  },
});

// §27.5: operators' panel of calls that wait for their approval.

const createApprovalPanels = (kept: CallApprovals): readonly AdminPanel[] => [
  {
    method: 'GET',
    path: '/approvals',
    async show(query) {
      const page = await kept.listForOperators(readPageRequest(query));
      return { approvals: page.items.map(describeRequest), ...renderNext(page) };
    },
  },
  // A second audit line, of the event `approval`, names the call.
  {
    method: 'POST',
    path: '/approvals',
    prepare({ body, user }) {
      const given = body.value;
      const { id, decision: said } = isObject(given) ? given : {};
      const decision = DECISIONS.get(said);
      if (typeof id !== 'string' || !REQUEST_ID.test(id) || decision === undefined)
        return fail('bad_request', {
          details:
            'Send {"id": "ID", "decision": "approve"}, or "refuse", with an ID from GET /admin/api/approvals.',
        });
      return {
        action: decision === 'approved' ? 'approve_call' : 'refuse_call',
        target: id,
        /** @throws GatewayError `approval_not_found` if no call with this id waits for operators. */
        async run() {
          const request = await kept.find(id);
          // Operators do not decide for users.
          if (request?.approver !== 'operator') return fail('approval_not_found');
          // The first decision counts.
          const by = { kind: 'operator', name: user?.sub } as const;
          const { state } = (await kept.decide(id, decision, by)) ?? fail('approval_not_found');
          return createJsonReply(200, { decided: state });
        },
      };
    },
  },
];

function describeRequest(request: ApprovalRequest): JsonObject {
  const { id, owner, clientId, view, server, tool, name, args, meta, createdAt, expiresAt } =
    request;
  return {
    id,
    user: owner.sub,
    issuer: owner.issuer,
    client: clientId,
    view,
    server,
    tool: escapeInvisible(tool),
    name: escapeInvisible(name),
    arguments: showJson(args),
    meta: meta === undefined ? undefined : showJson(meta),
    createdAt: renderTime(createdAt),
    expiresAt: renderTime(expiresAt),
  };
}

const DECISIONS: ReadonlyMap<unknown, ApprovalDecision> = new Map([
  ['approve', 'approved'],
  ['refuse', 'refused'],
]);

const REQUEST_ID = /^[\w-]{43}$/;

// §21.1: approvals in the audit log and in metrics. Never the value of an argument.

/** Metrics first. */
function createNote({ metrics, audit }: Runtime): NoteApproval {
  return function note(call, whom, action, by) {
    metrics.recordApproval(whom, action);
    audit?.write(
      {
        event: 'approval',
        user: call.owner?.sub,
        issuer: call.owner?.issuer,
        client: call.clientId,
        server: call.server === '' ? undefined : call.server,
        tool: call.name,
        // The digest identifies the call without its arguments.
        target: `${whom} ${call.digest}`,
        action,
        ...(by && {
          by: by.kind === 'user' || by.name === undefined ? by.kind : `${by.kind} ${by.name}`,
        }),
      },
      { outcome: OUTCOMES[action] },
    );
  };
}

const OUTCOMES = {
  asked: 'asked',
  approved: 'success',
  refused: 'denied',
  used: 'success',
} as const;

// §27.4: endpoints where users decide. A link alone is not an authorization: only the user of the call can open it.

/** Fields of the forms. */
const checkFieldName = createNameCheck(['csrf', 'action', 'request']);

/** The form of request ids in paths. */
const PAGE_ID = /^[\w-]{1,128}$/;

const PATH = '/approvals';

const buildPage = (id: string): OwnPage => `${PATH}/${id}`;

function createApprovalEndpoints(
  { config: { server: owner, oauth } }: Pick<Runtime, 'config'>,
  ownPages: OwnPages,
  kept: CallApprovals,
): readonly PublicEndpoint[] {
  const { sessions, listClients } = ownPages;
  /** Omitted from the names of its users. */
  const issuer = oauth.provider?.issuer;

  const getPerson = ({ user }: BrowserSession) => withoutDefault(user, issuer);

  /** The request, or the page for a session that has none of this id. */
  async function findOwn(id: string, session: BrowserSession): Promise<ApprovalRequest | Reply> {
    const request = await kept.find(id);
    if (request === undefined) return renderGonePage(owner);
    return nameOwner(request.owner) === nameOwner(getPerson(session))
      ? request
      : renderForeignApprovalPage(owner, session, id);
  }

  /** As on `/account`. */
  async function createAddApp({ user }: BrowserSession) {
    const clients = await listClients(user);
    const showApp = createShowApp(clients);
    return (request: ApprovalRequest): ShownRequest => {
      const { clientId = '' } = request;
      const client = clients.find(({ id }) => id === clientId) ?? { id: clientId, name: clientId };
      return { request, app: showApp(client) };
    };
  }

  async function post(body: RequestBody, cookie: string | undefined) {
    const parameters = parseBody(body, checkFieldName);
    const id = parameters.require('request');
    if (!PAGE_ID.test(id)) return renderGonePage(owner);
    const form = { page: buildPage(id), parameters, cookie };
    return actForUser(owner, ownPages, form, (action, session) => decide(id, action, session));
  }

  async function decide(id: string, action: string, session: BrowserSession): Promise<Reply> {
    if (action !== 'approve' && action !== 'refuse')
      failRequest('action must be approve, refuse or switch.');
    const request = await findOwn(id, session);
    if (!('approver' in request)) return request;
    if (request.approver !== 'page') failRequest('Operators decide about this call.');
    const decision = action === 'approve' ? 'approved' : 'refused';
    const by = { kind: 'user', name: session.user.sub } as const;
    const decided = (await kept.decide(id, decision, by)) ?? (await kept.find(id));
    return decided === undefined ? renderGonePage(owner) : renderDecidedPage(owner, decided);
  }

  const serve = createOwnPageEndpoint(sessions, 'approvals');
  return [
    serve('GET', PATH, ({ query }, cookie) =>
      showToUser(
        owner,
        ownPages,
        { page: PATH, error: readError(query), cookie },
        async (session) => {
          const requests = await kept.listOfUser(getPerson(session));
          return renderListPage(owner, session, requests.map(await createAddApp(session)));
        },
      ),
    ),
    serve('POST', PATH, (_request, cookie, body) => post(body, cookie)),
    serve('GET', `${PATH}/:id`, async ({ path, query }, cookie) => {
      const id = path.slice(PATH.length + 1);
      if (!PAGE_ID.test(id)) return renderGonePage(owner);
      const at = { page: buildPage(id), error: readError(query), cookie };
      return showToUser(owner, ownPages, at, async (session) => {
        const request = await findOwn(id, session);
        if (!('approver' in request)) return request;
        if (request.state !== 'pending') return renderDecidedPage(owner, request);
        const addApp = await createAddApp(session);
        return renderRequestPage(owner, session, addApp(request));
      });
    }),
  ];
}

/** The error of a login that led back to the page. */
const readError = (query: string) => parseQuery(query, () => {}).get('error');

// §27.4: the pages that show waiting calls to their users, each exactly as it would be sent.

/** A request, and the client that sent it. */
interface ShownRequest {
  readonly request: ApprovalRequest;
  readonly app: ShownApp;
}

const renderListPage = (
  owner: PageOwner,
  session: BrowserSession,
  shown: readonly ShownRequest[],
) =>
  renderPage(owner, {
    status: 200,
    title: 'Waiting for approval',
    body: `<p>${renderLoggedIn(session.displayName)}. ${
      shown.length === 0
        ? 'There is nothing to decide.'
        : `Your apps want to make these calls through ${escapeHtml(owner.displayName)}. None of them has run yet.`
    }</p>
${shown.map((one) => renderEntry(owner, one)).join('\n')}
<p class="links"><a href="${escapeHtml(owner.baseUrl)}/account">Apps that act for you</a>
<a href="${escapeHtml(owner.baseUrl)}/">Start page</a></p>`,
  });

function renderEntry({ baseUrl }: PageOwner, { request, app }: ShownRequest): string {
  const tool = show(request.name);
  const isYours = request.approver === 'page';
  return `<section class="entry">
<div class="entry-head">
<h2>${tool}</h2>
<span class="state ${isYours ? 'bad' : 'plain'}">${isYours ? 'Waiting for you' : 'Waiting for an operator'}</span>
</div>
<p class="aside">${[renderQuoted(app.name), escapeHtml(app.host), escapeHtml(app.id ?? '')].filter((one) => one !== '').join(', ')}, ${renderMinute(request.createdAt)}</p>
<p><a href="${escapeHtml(baseUrl)}/approvals/${escapeHtml(request.id)}" aria-label="Review the call: ${tool}">Review the call</a></p>
</section>`;
}

/** The subject of the approval. */
function renderRequestPage(
  owner: PageOwner,
  session: BrowserSession,
  { request, app }: ShownRequest,
): Reply {
  const { tool, server, view } = request;
  const isYours = request.approver === 'page';
  const rows = [
    ['Tool', `<strong>${show(tool)}</strong>`],
    ['Server', server === '' ? escapeHtml(owner.displayName) : show(server)],
    ...listAppRows(app),
    ...(view === undefined ? [] : [['View', show(view)] as const]),
    ['For', `<bdi>${escapeHtml(session.displayName)}</bdi>`],
    ['Asked', renderMinute(request.createdAt)],
  ] as const;
  const form = renderRequestForm(
    owner,
    session,
    request.id,
    `<button class="primary" name="action" value="approve">Approve</button>
<button name="action" value="refuse">Refuse</button>`,
  );
  return renderPage(owner, {
    status: 200,
    title: isYours ? 'Allow this app to do this?' : 'Waiting for an operator',
    body: `<p>One of your apps wants to call a tool, with exactly the arguments shown here. ${
      isYours
        ? 'If you approve, it may do so once, within ten minutes. If you did not just use that app, refuse.'
        : `Operators of ${escapeHtml(owner.displayName)} will decide. You do not have to do anything.`
    }</p>
${renderRows(rows)}
${renderJson('arguments', 'Arguments', request.args)}${
  request.meta === undefined ? '' : renderJson('metadata', 'Metadata (_meta)', request.meta)
}
${isYours ? form : renderLinks(owner)}`,
  });
}

const renderJson = (id: string, title: string, canonical: string) =>
  `<h2 id="${id}">${title}</h2>
<pre tabindex="0" role="region" aria-labelledby="${id}">${escapeHtml(showJson(canonical))}</pre>
`;

function renderDecidedPage(
  owner: PageOwner,
  { state, name }: Pick<ApprovalRequest, 'state' | 'name'>,
): Reply {
  const isApproved = state === 'approved';
  const tool = `<strong>${show(name)}</strong>`;
  return renderPage(owner, {
    status: 200,
    title: isApproved ? 'Approved' : 'Refused',
    ...(isApproved && { mark: DONE_MARK }),
    body: `${
      isApproved
        ? `<p>${tool} may be called once, with exactly the arguments that you saw, within ten minutes. Go back to
your app: it continues automatically. If it does not, ask again.</p>`
        : `<p>Nothing was done, and ${tool} is not called. Your app has been informed.</p>`
    }
<p class="aside">You can close this page.</p>
${renderLinks(owner)}`,
  });
}

/** Shows nothing of the request. */
const renderForeignApprovalPage = (owner: PageOwner, session: BrowserSession, id: string) =>
  renderForeignPage(
    owner,
    session.displayName,
    'approved',
    `${renderRequestForm(owner, session, id, SWITCH)}
${renderLinks(owner)}`,
  );

const renderGonePage = (owner: PageOwner) =>
  renderPage(owner, {
    status: 410,
    title: 'There is nothing to decide here',
    body: `<p>This request was decided and used, or it expired after ten minutes. Go back to your app and ask
again.</p>
<p><a class="button primary" href="${escapeHtml(owner.baseUrl)}/approvals">Waiting for you</a></p>`,
  });

const renderLinks = ({ baseUrl }: PageOwner) =>
  `<p class="links"><a href="${escapeHtml(baseUrl)}/approvals">Waiting for you</a></p>`;

const renderRequestForm = (
  { baseUrl }: PageOwner,
  session: BrowserSession,
  id: string,
  buttons: string,
) => renderForm(`${baseUrl}/approvals`, session, `${renderField('request', id)}\n${buttons}`);

/** Servers choose names. HTML. */
const show = (name: string) => escapeHtml(shorten(escapeInvisible(name), MAX_NAME));

/** Characters. */
const MAX_NAME = 200;
