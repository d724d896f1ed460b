// §4.1, §4.4, §4.5: the endpoints of /mcp. Here messages become values of the protocol, and
// values replies.
import type { Endpoint, JudgedCall, ProtectedCall } from '../../core/endpoint.ts';
import { fail } from '../../core/errors/gateway-error.ts';
import { JSONRPC, toLogMembers } from '../../core/errors/render.ts';
import { isObject } from '../../core/json.ts';
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
import type { CallInSession, Sessions } from './session/sessions.ts';
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
    { ...PROTECTED, method: 'POST', body: 'json', judge: judgePost },
    { ...PROTECTED, method: 'DELETE', judge: judgeDelete },
    sessionStreams === undefined
      ? { ...MCP, kind: 'open', method: 'GET', isUnlisted: true, handle: refuseStream }
      : {
          ...PROTECTED,
          method: 'GET',
          judge: (call: ProtectedCall) => judgeGet(call, sessionStreams),
        },
  ];

  function judgePost(protectedCall: ProtectedCall): JudgedCall {
    const { request, user, body } = protectedCall;
    const message = parseMessage(getJson(body));
    const era = detectEra(message, request);
    return {
      access: eras[era].accessSession(request, user),
      run: (session) => handleMessage(protectedCall, session, message, era),
    };
  }

  function handleMessage(
    protectedCall: ProtectedCall,
    session: SessionLookup,
    message: JsonRpcMessage,
    era: Era,
  ): Promise<Reply> {
    const handler = eras[era];
    if (message.kind === 'request') {
      metrics.recordMcpRequest(handler.supports(message.method) ? message.method : 'other', era);
    }
    // Noted now, so that a call that waits does not keep its message.
    const id = getRequestId(message);
    const facts = { era, ...describeMessage(message) };
    return handler.handle(createCall(protectedCall, session, id), message).then(
      (response) => toReply(response, id, facts),
      (thrown: unknown) => toReply(toErrorResponse(thrown), id, facts),
    );
  }

  /** The session is read, so that one that has expired is counted as such, and does not slide. */
  function judgeDelete({ request, user }: ProtectedCall): JudgedCall {
    const id = readSessionHeader(request) ?? fail('missing_session_id');
    return {
      access: sessions.createAccess(id, user, 'read'),
      run: (session) => endSession(id, { user, session }),
    };
  }

  async function endSession(id: string, call: CallInSession): Promise<Reply> {
    const session = await sessions.read(id, call);
    const hasEnded = session && (await sessions.end(session.sessionId, call.user));
    if (!hasEnded) fail('session_to_end_not_found');
    await sessionStreams?.end(session.sessionId);
    return { status: 204 };
  }

  function judgeGet({ request, user }: ProtectedCall, { open }: SessionStreams): JudgedCall {
    const id = readSessionHeader(request) ?? fail('missing_session_id');
    checkVersionHeader(request);
    if (!acceptsEventStream(request)) fail('not_acceptable');
    return {
      access: sessions.createAccess(id, user, 'slide'),
      async run(session) {
        const { sessionId } =
          (await sessions.read(id, { user, session })) ?? fail('session_not_found');
        const expiresAt = sessions.getExpiry();
        // HEAD asks what GET would say: a stream of the session that is open must not end for it.
        return request.method === 'HEAD'
          ? {
              status: 200,
              headers: addSessionHeaders({ ...EVENT_STREAM_HEADERS }, { expiresAt }),
            }
          : toReply({ ...(await open(sessionId, user)), expiresAt }, null);
      },
    };
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

const PROTECTED = { ...MCP, kind: 'protected', limit: 'mcp' } as const;

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
