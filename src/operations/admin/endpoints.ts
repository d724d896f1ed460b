// §22: the endpoints of the operators' page. There are none without ADMIN_GROUPS.

import type { ProtectedCall, ProtectedEndpoint } from '../../endpoint/endpoint.ts';
import { createJsonReply, getJson, type Reply } from '../../endpoint/message.ts';
import { JSONRPC } from '../../endpoint/render-error.ts';
import { fail } from '../../errors/gateway-error.ts';
import { isGrantId } from '../../grants/grant.ts';
import type { EndGrant } from '../../oauth/broker/end-grant.ts';
import type { EndSelectedGrants } from '../../oauth/broker/end-selected-grants.ts';
import { type Clock, createTurns } from '../../platform/clock.ts';
import { isRegisteredClientId, isSessionId } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import { stripUri } from '../../platform/strip-uri.ts';
import type { ReviewedChange } from '../../upstreams/catalog/review-lock.ts';
import type { Admin } from './admin.ts';
import { readCallDecision } from './approval-actions.ts';
import {
  readAdminPageRequest,
  readConnectionSelection,
  readDigests,
  readGrantSelection,
  readPageRequest,
  readPerson,
  readUser,
} from './read-request.ts';
import { createRunAudited, type RunAuditedDeps, type What } from './run-audited.ts';

export interface AdminEndpointsDeps extends RunAuditedDeps {
  readonly admin: Admin;
  /** False when there is none. */
  endSession(id: string): Promise<boolean>;
  /** False when there is none. */
  deleteClient(id: string): Promise<boolean>;
  /** Undefined where clients get the provider's tokens. */
  readonly endGrant: EndGrant | undefined;
  /** Likewise. */
  readonly endSelectedGrants: EndSelectedGrants | undefined;
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
  /** `BASE_URL`. */
  readonly baseUrl: string;
  readonly clock: Clock;
}

const API = '/admin/api';

/** What an operator (`sub`) sees. @throws GatewayError `bad_request`, or what the store throws. */
type Show = (
  query: URLSearchParams,
  operator: string | undefined,
) => JsonObject | Promise<JsonObject>;

/** What an operator does. */
interface Act {
  readonly path: string;
  /** In the audit log. */
  readonly action: string;
  readonly isId: (text: string) => boolean;
  /** False when there is nothing of this id. */
  readonly act: (id: string) => Promise<boolean>;
  readonly notFound: 'session_to_end_not_found' | 'client_not_found' | 'grant_not_found';
}

export function createAdminEndpoints(deps: AdminEndpointsDeps): readonly ProtectedEndpoint[] {
  const { admin, operators, endGrant, endSelectedGrants, clock } = deps;
  const runAudited = createRunAudited(deps);

  const shown: readonly (readonly [path: string, show: Show])[] = [
    [
      '/sessions',
      (query) => {
        const person = query.get('person') ?? '';
        return person === ''
          ? admin.listSessions(readPageRequest(query), readUser(query, deps))
          : admin.findSessions(readAdminPageRequest(query), person);
      },
    ],
    [
      '/callers',
      (query) => {
        const person = query.get('person') ?? '';
        return person === ''
          ? admin.listCallers(readPageRequest(query))
          : admin.findCallers(readPageRequest(query), person);
      },
    ],
    [
      '/grants',
      (query) => {
        const person = query.get('person') ?? '';
        return person === ''
          ? admin.listGrants(readPageRequest(query), readUser(query, deps))
          : admin.findGrants(readAdminPageRequest(query), person);
      },
    ],
    [
      '/connections',
      (query) => {
        const person = query.get('person') ?? '';
        return person === ''
          ? admin.countConnections()
          : admin.findConnections(readAdminPageRequest(query), person);
      },
    ],
    ['/clients', (query) => admin.listClients(readPageRequest(query))],
    ['/login-failures', admin.listLoginFailures],
    ['/limits', admin.describeLimits],
    ['/key-set', admin.describeKeySet],
    ['/store', admin.describeStore],
    ['/servers', admin.listServers],
    ['/guards', admin.listGuards],
    ['/idle-patterns', admin.listIdlePatterns],
    ['/lists', admin.measureLists],
    ['/tools', (query) => admin.listTools(query.get('server') ?? '', readPageRequest(query))],
    [
      '/rules',
      (query, operator) => admin.previewAccess(readPerson(query), readPageRequest(query), operator),
    ],
    ['/lock', (query) => admin.listLockDifferences(readPageRequest(query))],
    ['/approvals', (query) => admin.listCallApprovals(readPageRequest(query))],
    ['/lock/review', (query) => admin.reviewLock(query.getAll('server'))],
  ];
  const acts: readonly Act[] = [
    {
      path: '/sessions/:id',
      action: 'end_session',
      isId: isSessionId,
      act: deps.endSession,
      notFound: 'session_to_end_not_found',
    },
    {
      path: '/clients/:id',
      action: 'delete_client',
      isId: isRegisteredClientId,
      act: deps.deleteClient,
      notFound: 'client_not_found',
    },
    {
      path: '/grants/:id',
      action: 'end_grant',
      isId: isGrantId,
      act: async (id) => (await endGrant?.(id, 'operator')) !== undefined,
      notFound: 'grant_not_found',
    },
  ];

  /** For the front page, which links to that of operators. It tells callers nothing but their own groups. */
  const access = createEndpoint('GET', '/access', async ({ user }) =>
    createJsonReply(200, { isOperator: operators.isOperator(user) }),
  );

  const createShowEndpoint = ([path, show]: (typeof shown)[number]): ProtectedEndpoint =>
    createEndpoint('GET', path, (call) => {
      const query = new URLSearchParams(call.request.query);
      return runAudited(call, describeShow(path, query), async () =>
        createJsonReply(200, await show(query, call.user?.sub)),
      );
    });

  const createActEndpoint = ({ path, isId, action, act, notFound }: Act): ProtectedEndpoint => ({
    ...createEndpoint('DELETE', path, (call) => {
      const target = call.request.path.slice(call.request.path.lastIndexOf('/') + 1);
      return runAudited(call, { action, target }, async () => {
        if (!(await act(target))) fail(notFound);
        return { status: 204 };
      });
    }),
    hasParameter: isId,
  });

  /** The lines of the audit log say which: one for the request, and one for each login. */
  const endSelected = createEndpoint('DELETE', '/grants', (call) => {
    const query = new URLSearchParams(call.request.query);
    return runAudited(
      call,
      { action: 'end_grants', target: describeSelection(query) },
      async (note) => {
        const selection = readGrantSelection(query, deps);
        if (endSelectedGrants === undefined) return fail('bad_request', { details: NO_GRANTS });
        const { ended, failed } = await endSelectedGrants(selection, 'operator', ({ id }) =>
          note({ action: 'end_grant', target: id }),
        );
        if (failed > 0) failNotEnded(ended, failed);
        return createJsonReply(200, { ended });
      },
    );
  });

  /** Each connection that ends has a line of its own, of the event `connection`. */
  const endConnections = createEndpoint('DELETE', '/connections', (call) => {
    const query = new URLSearchParams(call.request.query);
    const what = { action: 'end_connections', target: describeSelection(query) };
    return runAudited(call, what, async () => {
      const { server, user } = readConnectionSelection(query, deps);
      const { ended, failed } = await admin.endConnections(server, user);
      return createJsonReply(200, { ended, failed });
    });
  });

  const approve: ProtectedEndpoint = {
    ...GUARDED,
    method: 'POST',
    path: `${API}/lock`,
    body: 'json',
    judge(call) {
      const digests = readDigests(getJson(call.body));
      const target = [...digests.keys()].join(', ');
      return {
        access: undefined,
        run: () =>
          runAudited(call, { action: 'approve', target }, async (note) => {
            const { reviews, isLoaded } = await admin.approveLock(digests);
            const turns = createTurns(clock);
            for (const change of reviews.flatMap(({ changes }) => changes)) {
              note(describeApproved(change));
              if (turns.isOver()) await turns.next();
            }
            return createJsonReply(200, {
              approved: reviews.map(({ server, changes }) => ({
                server,
                differences: changes.length,
              })),
              isLoaded,
            });
          }),
      };
    },
  };

  /** The audit log has a second line, of the event `approval`, that says which call it is. */
  const decideCall: ProtectedEndpoint = {
    ...GUARDED,
    method: 'POST',
    path: `${API}/approvals`,
    body: 'json',
    judge(call) {
      const said = readCallDecision(getJson(call.body));
      const action = said.decision === 'approved' ? 'approve_call' : 'refuse_call';
      return {
        access: undefined,
        run: () =>
          runAudited(call, { action, target: said.id }, async () => {
            const { state } = await admin.decideCall(said, call.user?.sub);
            return createJsonReply(200, { decided: state });
          }),
      };
    },
  };

  return [
    access,
    ...shown.map(createShowEndpoint),
    ...acts.map(createActEndpoint),
    endSelected,
    endConnections,
    decideCall,
    approve,
  ];
}

/** Also whose sessions or tools, or which server's, were looked at: all that was asked for, so that nobody is hidden behind another. */
function describeShow(path: string, query: URLSearchParams): What {
  const whose = WHOSE.flatMap((name) => query.getAll(name)).filter((value) => value !== '');
  const target = whose.length === 0 ? path.slice(1) : `${path.slice(1)} of ${whose.join(', ')}`;
  return { action: 'show', target };
}

const describeSelection = (query: URLSearchParams): string =>
  [...query].map((parameter) => parameter.join(' ')).join(', ');

const failNotEnded = (ended: number, failed: number): never =>
  fail('grants_not_ended', {
    details: `Logins that have ended: ${ended}. Still there, because the store failed: ${failed}. Send the request again.`,
  });

const NO_GRANTS =
  'In proxy mode clients have tokens of the provider, which cannot be ended here. Block the account at the provider.';

const WHOSE = ['user', 'issuer', 'person', 'email', 'group', 'server'] as const;

/** A line of its own for each: texts of the audit log are short. */
const describeApproved = ({ server, kind, name, change }: ReviewedChange): What => ({
  action: `approve_${change}`,
  target: kind,
  server,
  ...(kind === 'tool' && { tool: name }),
  ...(kind === 'prompt' && { prompt: name }),
  ...(kind === 'skill' && name !== undefined && { resource: stripUri(name) }),
});

/** Nothing is to be judged before it is counted. */
const createEndpoint = (
  method: 'GET' | 'DELETE',
  path: string,
  run: (call: ProtectedCall) => Promise<Reply>,
): ProtectedEndpoint => ({
  ...GUARDED,
  method,
  path: API + path,
  judge: (call) => ({ access: undefined, run: () => run(call) }),
});

const GUARDED = {
  kind: 'protected',
  errors: JSONRPC,
  limit: 'admin',
  isForOwnPages: true,
  headers: { 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' },
} as const;
