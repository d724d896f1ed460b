// Spec §4.4, §4.5: POST and DELETE /mcp, and GET with MCP_STREAMS=true.
import { fail, toGatewayError } from '../../core/errors/gateway-error.ts';
import { JSONRPC, renderError } from '../../core/errors/render.ts';
import { isObject } from '../../core/json.ts';
import { header, type Reply } from '../../core/message.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import { EVENT_STREAM_HEADERS } from '../../core/sse.ts';
import type { Codec, McpCall } from './era-handler.ts';
import { eraOfMessage } from './protocol/era-of-message.ts';
import { idOf, type Message, metaOf, parseMessage } from './protocol/json-rpc.ts';
import type { Era } from './protocol/revisions.ts';
import { traceIdOf, traceOf } from './protocol/trace-context.ts';
import { checkVersionHeader } from './protocol/version-header.ts';
import type { Streams } from './session/get-stream.ts';
import type { Sessions } from './session/sessions.ts';
import { takesEventStream } from './streaming/response-stream.ts';

export interface McpDeps {
  readonly codecs: Readonly<Record<Era, Codec>>;
  readonly sessions: Sessions;
  /** Undefined without `MCP_STREAMS`. */
  readonly streams: Streams | undefined;
  readonly metrics: Metrics;
}

export interface McpEndpoint {
  /** `body` is the parsed JSON. */
  post(call: McpCall, body: unknown): Promise<Reply>;
  delete(call: McpCall): Promise<Reply>;
  /** The stream of a session; undefined without `MCP_STREAMS`. */
  readonly get: ((call: McpCall) => Promise<Reply>) | undefined;
}

export function createMcpEndpoint({ codecs, sessions, streams, metrics }: McpDeps): McpEndpoint {
  return {
    async post(call, body) {
      const message = parseMessage(body);
      const era = eraOfMessage(message, call.request);
      const codec = codecs[era];
      if (message.kind === 'request') {
        metrics.recordMcpRequest(codec.knows(message.method) ? message.method : 'other', era);
      }
      // Noted now, so that a call that waits does not keep its message (decisions 10).
      const id = idOf(message);
      const facts = { era, ...subjectOf(message) };
      return codec
        .take(call, message)
        .catch((thrown: unknown) => renderError(toGatewayError(thrown), JSONRPC, id))
        .then((reply) => ({ ...reply, facts: { ...facts, ...reply.facts } }));
    },

    async delete(call) {
      if (call.sessionId === undefined) fail('missing_session_id');
      // Asked first, so that a session that has expired is counted as such.
      const session = await sessions.of(call);
      const ended = session && (await sessions.end(session.sessionId, call.user));
      if (!ended) fail('session_to_end_not_found');
      await streams?.end(session.sessionId);
      return { status: 204 };
    },

    get: streams && ((call) => openStream(call, streams)),
  };

  async function openStream(call: McpCall, { open }: Streams): Promise<Reply> {
    if (call.sessionId === undefined) fail('missing_session_id');
    const session = (await sessions.of(call)) ?? fail('session_not_found');
    checkVersionHeader(call.request);
    if (!takesEventStream(header(call.request, 'accept'))) fail('not_acceptable');
    const expiresAt = sessions.expiresAt();
    if (!(await sessions.touch(session.sessionId, call.user))) fail('session_not_found');
    // HEAD asks what GET would say: a stream of the session that is open must not end for it.
    const reply =
      call.request.method === 'HEAD'
        ? { status: 200, headers: EVENT_STREAM_HEADERS }
        : await open(session.sessionId, call.user);
    return { ...reply, headers: { ...reply.headers, 'X-Session-Expires-At': expiresAt } };
  }
}

/** What a call was about, for the log: `tools/call` of `service_ping`. */
function subjectOf(message: Message): Readonly<Record<string, unknown>> {
  if (message.kind === 'response') return {};
  const { method, params } = message;
  const { name, uri } = isObject(params) ? params : {};
  const subject = name ?? uri;
  const trace = traceIdOf(traceOf(metaOf(params)));
  return {
    rpc: shown(method),
    ...(typeof subject === 'string' && { of: shown(subject) }),
    ...(trace !== undefined && { trace }),
  };
}

const shown = (text: string) => text.slice(0, 200);
