// §4.1, §4.4, §4.5: the endpoints of /mcp. Here messages become values of the protocol, and
// values replies.
import type { Endpoint, JudgedCall, ProtectedCall } from '../../core/endpoint.ts';
import { fail, GatewayError } from '../../core/errors/gateway-error.ts';
import { JSONRPC, toLogMembers } from '../../core/errors/render.ts';
import { isObject, isStringArray } from '../../core/json.ts';
import { truncateForLog } from '../../core/log.ts';
import {
  type GatewayRequest,
  getHeader,
  getJson,
  type Reply,
  type ReplyHeaders,
} from '../../core/message.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import { EVENT_STREAM_HEADERS } from '../../core/sse.ts';
import type { SessionLookup } from '../../core/store/store.ts';
import { stripUri } from '../../core/strip-uri.ts';
import type { UserContext } from '../../core/user-context.ts';
import type { GetChallenge } from '../auth/bearer.ts';
import { type Call, createCall, type EraHandler, readSessionHeader } from './calls/call.ts';
import type { View } from './calls/view.ts';
import type { Views } from './calls/views.ts';
import {
  getRequestId,
  type JsonRpcMessage,
  parseMessage,
  type RequestId,
  readMeta,
} from './protocol/json-rpc.ts';
import {
  type CallOutcome,
  type McpResponse,
  renderResponse,
  type SessionInfo,
  toErrorResponse,
} from './protocol/response.ts';
import { checkVersionHeader, detectEra, type Era } from './protocol/revisions.ts';
import { getTraceId, readTraceContext } from './protocol/trace-context.ts';
import { type SessionStreams, toStreamOwner } from './session/session-streams.ts';
import type { Sessions } from './session/sessions.ts';
import { acceptsEventStream } from './streaming/response-stream.ts';

export interface McpEndpointsDeps {
  readonly views: Views;
  readonly eras: Readonly<Record<Era, EraHandler>>;
  readonly sessions: Sessions;
  /** Undefined without `MCP_STREAMS`. */
  readonly sessionStreams: SessionStreams | undefined;
  readonly metrics: Metrics;
  /** Headers of a 401 at a path; undefined when nobody has to log in. */
  readonly getChallenge: GetChallenge | undefined;
  /** Called with each request of a user that needs no session, at once; undefined where nobody wants to know. */
  readonly noteStatelessUser: ((user: UserContext) => void) | undefined;
}

export function createMcpEndpoints(deps: McpEndpointsDeps): readonly Endpoint[] {
  const { views, eras, sessions, sessionStreams, metrics, getChallenge, noteStatelessUser } = deps;
  /** A server may go between the look at the path and here. */
  const findView = ({ path }: GatewayRequest): View =>
    path === '/mcp'
      ? views.all
      : (views.findServer(path.slice('/mcp/'.length)) ?? fail('not_found'));
  const isServer = (name: string) => views.findServer(name) !== undefined;
  return [
    ...createEndpointsAt({ path: '/mcp' }),
    ...createEndpointsAt({ path: '/mcp/:server', hasParameter: isServer }),
  ];

  function createEndpointsAt(at: Pick<Endpoint, 'path' | 'hasParameter'>): readonly Endpoint[] {
    const place = { ...at, errors: JSONRPC } as const;
    const guarded = { ...place, kind: 'protected', limit: 'mcp' } as const;
    return [
      { ...guarded, method: 'POST', body: 'json', judge: judgePost },
      { ...guarded, method: 'DELETE', judge: judgeDelete },
      sessionStreams === undefined
        ? {
            ...place,
            kind: 'open',
            method: 'GET',
            hasFrontPage: true,
            isUnlisted: true,
            handle: refuseStream,
          }
        : {
            ...guarded,
            method: 'GET',
            hasFrontPage: true,
            judge: (call: ProtectedCall) => judgeGet(call, sessionStreams),
          },
    ];
  }

  function judgePost(protectedCall: ProtectedCall): JudgedCall {
    const { request, user, body } = protectedCall;
    const view = findView(request);
    const message = parseMessage(getJson(body));
    const era = detectEra(message, request);
    return {
      access: eras[era].accessSession(request, user),
      run: (session) => handleMessage(view, protectedCall, session, message, era),
    };
  }

  function handleMessage(
    view: View,
    protectedCall: ProtectedCall,
    session: SessionLookup,
    message: JsonRpcMessage,
    era: Era,
  ): Promise<Reply> {
    const handler = eras[era];
    const { path } = protectedCall.request;
    if (message.kind === 'request') {
      metrics.recordMcpRequest(
        handler.supports(view, message.method) ? message.method : 'other',
        era,
      );
      if (era === 'stateless' && protectedCall.user) noteStatelessUser?.(protectedCall.user);
    }
    // Noted now, so that a call that waits does not keep its message.
    const id = getRequestId(message);
    const facts = { era, ...describeMessage(message) };
    return handler.handle(createCall(view, protectedCall, session, id), message).then(
      (response) => toReply(addScopeChallenge(response, path), id, facts),
      (thrown: unknown) => toReply(addScopeChallenge(toErrorResponse(thrown), path), id, facts),
    );
  }

  /** RFC 6750 §3.1: so that the client asks for the scopes, and calls again. */
  function addScopeChallenge(response: McpResponse, path: string): McpResponse {
    if (response.kind !== 'json' || !('error' in response.outcome)) return response;
    const { key, failure } = response.outcome.error;
    if (key !== 'insufficient_scope') return response;
    const { scopes } = failure.data ?? {};
    const scope = isStringArray(scopes) ? `, scope="${scopes.join(' ')}"` : '';
    const metadata = getChallenge?.(path)['WWW-Authenticate'].replace(/^Bearer /, ', ') ?? '';
    const headers = { 'WWW-Authenticate': `Bearer error="insufficient_scope"${scope}${metadata}` };
    return { ...response, outcome: { error: new GatewayError(key, { ...failure, headers }) } };
  }

  /** The session is read, so that one that has expired is counted as such, and does not slide. */
  function judgeDelete({ request, user }: ProtectedCall): JudgedCall {
    const view = findView(request);
    const id = readSessionHeader(request) ?? fail('missing_session_id');
    return {
      access: sessions.createAccess(id, user, 'read'),
      run: (session) => endSession(id, { user, session, view }),
    };
  }

  async function endSession(
    id: string,
    call: Pick<Call, 'user' | 'session' | 'view'>,
  ): Promise<Reply> {
    const session = await sessions.read(id, call);
    const hasEnded = session && (await sessions.end(session.sessionId, call.user));
    if (!hasEnded) fail('session_to_end_not_found');
    call.view.catalog.endSession?.(toStreamOwner(call, session).caller);
    await sessionStreams?.end(session.sessionId);
    return { status: 204 };
  }

  function judgeGet({ request, user }: ProtectedCall, { open }: SessionStreams): JudgedCall {
    const view = findView(request);
    const id = readSessionHeader(request) ?? fail('missing_session_id');
    checkVersionHeader(request);
    if (!acceptsEventStream(request)) fail('not_acceptable');
    return {
      access: sessions.createAccess(id, user, 'slide'),
      async run(session) {
        const record =
          (await sessions.read(id, { user, session, view })) ?? fail('session_not_found');
        const expiresAt = sessions.getExpiry();
        // HEAD asks what GET would say: a stream of the session that is open must not end for it.
        return request.method === 'HEAD'
          ? {
              status: 200,
              headers: addSessionHeaders({ ...EVENT_STREAM_HEADERS }, { expiresAt }),
            }
          : toReply({ ...(await open(toStreamOwner({ user, view }, record))), expiresAt }, null);
      },
    };
  }

  /** GET without MCP_STREAMS: no stream is offered; clients probe here for the login. */
  function refuseStream(request: GatewayRequest): Reply {
    if (getChallenge !== undefined && getHeader(request, 'authorization') === undefined) {
      fail('missing_token', { headers: getChallenge(request.path) });
    }
    return fail('method_not_allowed', {
      details:
        'This service offers no event stream (MCP_STREAMS is off): each POST is answered by its own response.',
      headers: { Allow: 'POST, DELETE' },
    });
  }
}

/** The one place where a response becomes HTTP. `facts` are for the log. */
function toReply(
  response: McpResponse,
  id: RequestId | null,
  facts: Readonly<Record<string, unknown>> = {},
): Reply {
  switch (response.kind) {
    case 'accepted':
      return { status: 202, headers: addSessionHeaders({}, response), facts };
    case 'stream': {
      const { events, outcome } = response;
      return {
        status: 200,
        headers: addSessionHeaders({ ...EVENT_STREAM_HEADERS }, response),
        stream: events,
        outcome: () => toOutcomeLogMembers(outcome?.()),
        facts,
      };
    }
    case 'json': {
      const { text, error } = renderResponse(response.outcome, id);
      const type = { 'Content-Type': 'application/json' };
      // Most have no error: then nothing has to be copied.
      if (error === undefined) {
        return { status: 200, headers: addSessionHeaders(type, response), body: text, facts };
      }
      const { headers, facts: errorFacts } = error.failure;
      return {
        status: error.row.status,
        headers: addSessionHeaders({ ...type, ...headers }, response),
        body: text,
        error,
        facts: { ...facts, ...errorFacts },
      };
    }
  }
}

/** Adds to the headers, which are the reply's own: a copy would cost more than all else here. */
function addSessionHeaders(
  headers: Record<string, string>,
  { sessionId, expiresAt }: SessionInfo,
): ReplyHeaders {
  if (sessionId !== undefined) headers['mcp-session-id'] = sessionId;
  if (expiresAt !== undefined) headers['X-Session-Expires-At'] = expiresAt;
  return headers;
}

function toOutcomeLogMembers(outcome: CallOutcome | undefined): Pick<Reply, 'error' | 'facts'> {
  if (outcome === undefined) return {};
  const error = 'error' in outcome ? outcome.error : outcome.failure;
  return error === undefined ? {} : toLogMembers(error);
}

/** What a message is about, for the log: `tools/call` of `service_ping`. */
function describeMessage(message: JsonRpcMessage): Readonly<Record<string, unknown>> {
  if (message.kind === 'response') return {};
  const { method, params } = message;
  const { name, uri } = isObject(params) ? params : {};
  // Callers send further members as they like: the one that the method goes by is told.
  const subject = typeof uri === 'string' && method.startsWith('resources/') ? stripUri(uri) : name;
  const trace = getTraceId(readTraceContext(readMeta(params)));
  return {
    rpc: truncateForLog(method),
    ...(typeof subject === 'string' && { of: truncateForLog(subject) }),
    ...(trace !== undefined && { trace }),
  };
}
