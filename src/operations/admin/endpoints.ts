// §22: the endpoints of the operators' page. There are none without ADMIN_GROUPS.

import type { ProtectedCall, ProtectedEndpoint } from '../../endpoint/endpoint.ts';
import {
  createJsonReply,
  type GatewayRequest,
  getJson,
  type Reply,
} from '../../endpoint/message.ts';
import { JSONRPC } from '../../endpoint/render-error.ts';
import { fail } from '../../errors/gateway-error.ts';
import { type Clock, createTurns } from '../../platform/clock.ts';
import { isRegisteredClientId, isSessionId } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { ClientOf } from '../../policy/rules/client-of.ts';
import type { Audit, AuditedAction } from '../../telemetry/audit/audit.ts';
import type { ReviewedChange } from '../../upstreams/catalog/review-lock.ts';
import type { Admin } from './admin.ts';
import type { Operators } from './operators.ts';
import { readAdminPageRequest, readDigests, readPageRequest, readPerson } from './read-request.ts';

export interface AdminEndpointsDeps {
  readonly admin: Admin;
  readonly operators: Operators;
  /** False when there is none. */
  endSession(id: string): Promise<boolean>;
  /** False when there is none. */
  deleteClient(id: string): Promise<boolean>;
  readonly clock: Clock;
  readonly audit: Audit;
  readonly getTraceId: (request: GatewayRequest) => string | undefined;
  /** The OAuth client of a token that is refused; undefined where it is not known. */
  readonly clientOf: ClientOf;
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
  readonly notFound: 'session_to_end_not_found' | 'client_not_found';
}

export function createAdminEndpoints(deps: AdminEndpointsDeps): readonly ProtectedEndpoint[] {
  const { admin, operators, clock, audit, getTraceId, clientOf } = deps;

  const shown: readonly (readonly [path: string, show: Show])[] = [
    [
      '/sessions',
      (query) => {
        const person = query.get('person') ?? '';
        return person === ''
          ? admin.listSessions(readPageRequest(query), query.get('user') ?? undefined)
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
    ['/clients', (query) => admin.listClients(readPageRequest(query))],
    ['/login-failures', admin.listLoginFailures],
    ['/limits', admin.describeLimits],
    ['/key-set', admin.describeKeySet],
    ['/store', admin.describeStore],
    ['/servers', admin.listServers],
    ['/tools', (query) => admin.listTools(query.get('server') ?? '', readPageRequest(query))],
    [
      '/rules',
      (query, operator) => admin.previewAccess(readPerson(query), readPageRequest(query), operator),
    ],
    ['/lock', (query) => admin.listLockDifferences(readPageRequest(query))],
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

  /** @throws GatewayError `operators_only` or `operators_client_only`, or what the work throws. */
  async function runAudited(
    { request, user }: ProtectedCall,
    what: What,
    work: (note: (what: What) => void) => Promise<Reply>,
  ): Promise<Reply> {
    const action = {
      event: 'admin',
      ...what,
      user: user?.sub,
      ip: request.clientIp,
      trace: getTraceId(request),
    } as const;

    async function refuse(reason: 'operators_only' | 'operators_client_only'): Promise<never> {
      audit.write({ ...action, client: await clientOf({ user }) }, { outcome: 'denied', reason });
      return fail(reason);
    }

    if (user === undefined || !operators.isOperator(user)) return refuse('operators_only');
    const client = await operators.findClient(user);
    if (client === undefined) return refuse('operators_client_only');
    const note = (part: What) =>
      audit.write({ ...action, client, ...part }, { outcome: 'success' });
    return audit.run({ ...action, client }, () => work(note));
  }

  return [access, ...shown.map(createShowEndpoint), ...acts.map(createActEndpoint), approve];
}

/** Also whose sessions or tools, or which server's, were looked at: all that was asked for, so that nobody is hidden behind another. */
function describeShow(path: string, query: URLSearchParams): What {
  const whose = WHOSE.flatMap((name) => query.getAll(name)).filter((value) => value !== '');
  const target = whose.length === 0 ? path.slice(1) : `${path.slice(1)} of ${whose.join(', ')}`;
  return { action: 'show', target };
}

const WHOSE = ['user', 'person', 'email', 'group', 'server'] as const;

interface What extends Pick<AuditedAction, 'server' | 'tool' | 'prompt'> {
  readonly action: string;
  readonly target: string;
}

/** A line of its own for each: texts of the audit log are short. */
const describeApproved = ({ server, kind, name, change }: ReviewedChange): What => ({
  action: `approve_${change}`,
  target: kind,
  server,
  ...(kind === 'tool' && { tool: name }),
  ...(kind === 'prompt' && { prompt: name }),
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
