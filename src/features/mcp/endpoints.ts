// §4.1, §4.4, §4.5: the endpoints of /mcp. Here messages become values of the protocol, and
// values replies.
import type { Endpoint, ProtectedCall, ProtectedEndpoint } from '../../core/endpoint.ts';
import { fail } from '../../core/errors/gateway-error.ts';
import { JSONRPC, toLogMembers } from '../../core/errors/render.ts';
import { isSessionId } from '../../core/ids.ts';
import { isObject } from '../../core/json.ts';
import { truncateForLog } from '../../core/log.ts';
import { type GatewayRequest, getHeader, getJson, type Reply } from '../../core/message.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import { EVENT_STREAM_HEADERS } from '../../core/sse.ts';
import { createCall, type EraHandler, readSessionHeader } from './calls/call.ts';
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
import type { SessionStreams } from './session/session-streams.ts';
import type { Sessions } from './session/sessions.ts';
import { acceptsEventStream } from './streaming/response-stream.ts';

export interface McpEndpointsDeps {
  readonly eras: Readonly<Record<Era, EraHandler>>;
  readonly sessions: Sessions;
  /** Undefined without `MCP_STREAMS`. */
  readonly sessionStreams: SessionStreams | undefined;
  readonly metrics: Metrics;
  /** Headers of a 401; undefined when nobody has to log in. */
  readonly challenge: Readonly<Record<string, string>> | undefined;
}

export function createMcpEndpoints(deps: McpEndpointsDeps): readonly Endpoint[] {
  const { eras, sessions, sessionStreams, metrics, challenge } = deps;
  return [
    { ...PROTECTED, method: 'POST', body: 'json', handle: handlePost },
    { ...PROTECTED, method: 'DELETE', handle: endSession },
    sessionStreams === undefined
      ? { ...MCP, kind: 'open', method: 'GET', isUnlisted: true, handle: refuseStream }
      : {
          ...PROTECTED,
          method: 'GET',
          handle: (call: ProtectedCall) => openStream(call, sessionStreams),
        },
  ];

  async function handlePost(protectedCall: ProtectedCall): Promise<Reply> {
    const message = parseMessage(getJson(protectedCall.body));
    const era = detectEra(message, protectedCall.request);
    const handler = eras[era];
    if (message.kind === 'request') {
      metrics.recordMcpRequest(handler.supports(message.method) ? message.method : 'other', era);
    }
    // Noted now, so that a call that waits does not keep its message.
    const id = getRequestId(message);
    const facts = { era, ...describeMessage(message) };
    return handler
      .handle(createCall(protectedCall, id), message)
      .catch(toErrorResponse)
      .then((response) => toReply(response, id, facts));
  }

  async function endSession({ request, ...call }: ProtectedCall): Promise<Reply> {
    const sessionId = readSessionHeader(request) ?? fail('missing_session_id');
    // Asked first, so that a session that has expired is counted as such.
    const session = await sessions.read(sessionId, call);
    const hasEnded = session && (await sessions.end(session.sessionId, call.user));
    if (!hasEnded) fail('session_to_end_not_found');
    await sessionStreams?.end(session.sessionId);
    return { status: 204 };
  }

  async function openStream(
    { request, ...call }: ProtectedCall,
    { open }: SessionStreams,
  ): Promise<Reply> {
    const id = readSessionHeader(request) ?? fail('missing_session_id');
    const { sessionId } = (await sessions.read(id, call)) ?? fail('session_not_found');
    checkVersionHeader(request);
    if (!acceptsEventStream(request)) fail('not_acceptable');
    const expiresAt = sessions.getExpiry();
    if (!(await sessions.touch(sessionId, call.user))) fail('session_not_found');
    // HEAD asks what GET would say: a stream of the session that is open must not end for it.
    return request.method === 'HEAD'
      ? { status: 200, headers: { ...EVENT_STREAM_HEADERS, ...toSessionHeaders({ expiresAt }) } }
      : toReply({ ...(await open(sessionId, call.user)), expiresAt }, null);
  }

  /** GET without MCP_STREAMS: no stream is offered; clients probe here for the login. */
  function refuseStream(request: GatewayRequest): Reply {
    if (challenge !== undefined && getHeader(request, 'authorization') === undefined) {
      fail('missing_token', { headers: challenge });
    }
    return fail('method_not_allowed', {
      details:
        'This service offers no event stream (MCP_STREAMS is off): each POST is answered by its own response.',
      headers: { Allow: 'POST, DELETE' },
    });
  }
}

const MCP = { path: '/mcp', errors: JSONRPC } as const;

const PROTECTED = {
  ...MCP,
  kind: 'protected',
  limit: 'mcp',
  /** Nothing that cannot be a session id reaches the store. */
  readSessionId(request) {
    const sessionId = readSessionHeader(request);
    return sessionId !== undefined && isSessionId(sessionId) ? sessionId : undefined;
  },
} as const satisfies Partial<ProtectedEndpoint>;

/** The one place where a response becomes HTTP. `facts` are for the log. */
function toReply(
  response: McpResponse,
  id: RequestId | null,
  facts: Readonly<Record<string, unknown>> = {},
): Reply {
  const headers = toSessionHeaders(response);
  switch (response.kind) {
    case 'accepted':
      return { status: 202, headers, facts };
    case 'stream': {
      const { events, outcome } = response;
      return {
        status: 200,
        headers: { ...EVENT_STREAM_HEADERS, ...headers },
        stream: events,
        outcome: () => toOutcomeLogMembers(outcome?.()),
        facts,
      };
    }
    case 'json': {
      const { text, error } = renderResponse(response.outcome, id);
      return {
        status: error?.row.status ?? 200,
        headers: { 'Content-Type': 'application/json', ...error?.failure.headers, ...headers },
        body: text,
        ...(error && { error }),
        facts: { ...facts, ...error?.failure.facts },
      };
    }
  }
}

const toSessionHeaders = ({ sessionId, expiresAt }: SessionInfo): Record<string, string> => ({
  ...(sessionId !== undefined && { 'mcp-session-id': sessionId }),
  ...(expiresAt !== undefined && { 'X-Session-Expires-At': expiresAt }),
});

const toOutcomeLogMembers = (outcome: CallOutcome | undefined) =>
  outcome !== undefined && 'error' in outcome ? toLogMembers(outcome.error) : {};

/** What a message is about, for the log: `tools/call` of `service_ping`. */
function describeMessage(message: JsonRpcMessage): Readonly<Record<string, unknown>> {
  if (message.kind === 'response') return {};
  const { method, params } = message;
  const { name, uri } = isObject(params) ? params : {};
  const subject = name ?? uri;
  const trace = getTraceId(readTraceContext(readMeta(params)));
  return {
    rpc: truncateForLog(method),
    ...(typeof subject === 'string' && { of: truncateForLog(subject) }),
    ...(trace !== undefined && { trace }),
  };
}
