// §22: the endpoints of the operators' page. There are none without ADMIN_GROUPS.
import type { Audit, AuditedAction } from '../../core/audit/audit.ts';
import type { ProtectedCall, ProtectedEndpoint } from '../../core/endpoint.ts';
import { fail } from '../../core/errors/gateway-error.ts';
import { JSONRPC } from '../../core/errors/render.ts';
import { isRegisteredClientId, isSessionId } from '../../core/ids.ts';
import type { JsonObject } from '../../core/json.ts';
import { createJsonReply, type GatewayRequest, type Reply } from '../../core/message.ts';
import type { UserContext } from '../../core/user-context.ts';
import type { ClientOf } from '../rules/client-of.ts';
import type { Admin } from './admin.ts';
import { readPageRequest } from './read-page-request.ts';

export interface AdminEndpointsDeps {
  readonly admin: Admin;
  /** `ADMIN_GROUPS`. */
  readonly groups: readonly string[];
  /** False when there is none. */
  endSession(id: string): Promise<boolean>;
  /** False when there is none. */
  deleteClient(id: string): Promise<boolean>;
  readonly audit: Audit;
  readonly getTraceId: (request: GatewayRequest) => string | undefined;
  /** The OAuth client of a token; undefined where it is not known. */
  readonly clientOf: ClientOf;
}

const API = '/admin/api';

/** What an operator sees. @throws GatewayError `bad_request`, or what the store throws. */
type Show = (query: URLSearchParams) => JsonObject | Promise<JsonObject>;

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
  const { admin, audit, getTraceId, clientOf } = deps;
  const groups = new Set(deps.groups);

  const shown: readonly (readonly [path: string, show: Show])[] = [
    [
      '/sessions',
      (query) => admin.listSessions(readPageRequest(query), query.get('user') ?? undefined),
    ],
    ['/clients', (query) => admin.listClients(readPageRequest(query))],
    ['/login-failures', admin.listLoginFailures],
    ['/limits', admin.describeLimits],
    ['/key-set', admin.describeKeySet],
    ['/store', admin.describeStore],
    ['/servers', admin.listServers],
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

  const isOperator = (user: UserContext | undefined): boolean =>
    user?.groups?.some((group) => groups.has(group)) === true;

  const createShowEndpoint = ([path, show]: (typeof shown)[number]): ProtectedEndpoint => ({
    ...GUARDED,
    method: 'GET',
    path: API + path,
    judge: ({ request, user }) => ({
      access: undefined,
      async run() {
        if (!isOperator(user))
          await refuse(request, user, { action: 'show', target: path.slice(1) });
        return createJsonReply(200, await show(new URLSearchParams(request.query)));
      },
    }),
  });

  const createActEndpoint = ({ path, isId, ...act }: Act): ProtectedEndpoint => ({
    ...GUARDED,
    method: 'DELETE',
    path: API + path,
    hasParameter: isId,
    judge: (call) => ({ access: undefined, run: () => runAct(call, act) }),
  });

  async function runAct(
    { request, user }: ProtectedCall,
    { action, act, notFound }: Omit<Act, 'path' | 'isId'>,
  ): Promise<Reply> {
    const target = request.path.slice(request.path.lastIndexOf('/') + 1);
    if (!isOperator(user)) return refuse(request, user, { action, target });
    await audit.run(await describeAction(request, user, { action, target }), async () => {
      if (!(await act(target))) fail(notFound);
    });
    return { status: 204 };
  }

  async function refuse(
    request: GatewayRequest,
    user: UserContext | undefined,
    what: What,
  ): Promise<never> {
    const reason = 'operators_only';
    audit.write(await describeAction(request, user, what), { outcome: 'denied', reason });
    return fail(reason);
  }

  const describeAction = async (
    request: GatewayRequest,
    user: UserContext | undefined,
    what: What,
  ): Promise<AuditedAction> => ({
    event: 'admin',
    ...what,
    user: user?.sub,
    client: await clientOf({ user }),
    ip: request.clientIp,
    trace: getTraceId(request),
  });

  return [...shown.map(createShowEndpoint), ...acts.map(createActEndpoint)];
}

interface What {
  readonly action: string;
  readonly target: string;
}

const GUARDED = {
  kind: 'protected',
  errors: JSONRPC,
  limit: 'admin',
  isForOwnPages: true,
  headers: { 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' },
} as const;
