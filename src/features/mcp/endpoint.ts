// Spec §4.4, §4.5: POST, DELETE and GET /mcp.
import { asGatewayError, fail, GatewayError, stackOf } from '../../core/errors/gateway-error.ts';
import { JSONRPC, renderError } from '../../core/errors/render.ts';
import { type GatewayRequest, header, json, type Reply } from '../../core/message.ts';
import type { UserContext } from '../../core/user-context.ts';
import type { SessionLookup } from '../limits/limiter.ts';
import type { Context, ServiceInfo } from './catalog.ts';
import { initializeResult, readInitialize } from './initialize.ts';
import {
  isObject,
  type Message,
  paramsOf,
  parseMessage,
  type Request,
  type RequestId,
} from './json-rpc.ts';
import type { Method } from './methods.ts';
import { isKnownVersion, PROTOCOL_VERSIONS } from './protocol-version.ts';
import type { Sessions } from './sessions.ts';

/** A request past Host, Origin, limits and token. */
export interface McpCall {
  readonly request: GatewayRequest;
  readonly user: UserContext | undefined;
  /** Value of the `mcp-session-id` header. */
  readonly sessionId: string | undefined;
  /** What the store said of it. */
  readonly session: SessionLookup;
}

export interface McpDeps {
  readonly sessions: Sessions;
  readonly methods: ReadonlyMap<string, Method>;
  readonly service: ServiceInfo;
}

export interface McpEndpoint {
  /** `body` is the parsed JSON. */
  post(call: McpCall, body: unknown): Promise<Reply>;
  delete(call: McpCall): Promise<Reply>;
}

export function createMcpEndpoint({ sessions, methods, service }: McpDeps): McpEndpoint {
  return {
    async post(call, body) {
      const message = parseMessage(body);
      const reply = await accept(call, message).catch((thrown: unknown) =>
        renderError(asGatewayError(thrown), JSONRPC, idOf(message)),
      );
      return { ...reply, facts: { ...subjectOf(message), ...reply.facts } };
    },

    async delete(call) {
      if (call.sessionId === undefined) fail('missing_session_id');
      // Asked first, so that a session that has expired is counted as such.
      const ended =
        (await isActive(call, call.sessionId)) && (await sessions.end(call.sessionId, call.user));
      if (!ended) fail('session_to_end_not_found');
      return { status: 204 };
    },
  };

  async function accept(call: McpCall, message: Message): Promise<Reply> {
    const { sessionId } = call;
    if (sessionId === undefined) {
      const starts = message.kind === 'request' && message.method === 'initialize';
      return starts ? initialize(call, message) : fail('missing_session_id');
    }
    if (!(await isActive(call, sessionId))) fail('session_not_found');
    return inSession(call, sessionId, message);
  }

  async function initialize({ user }: McpCall, { id, params }: Request): Promise<Reply> {
    const session = readInitialize(params);
    const sessionId = await sessions.create(user, session);
    return answer(id, initializeResult(service, session.protocolVersion), {
      'mcp-session-id': sessionId,
      'X-Session-Expires-At': sessions.expiresAt(),
    });
  }

  /** Decisions 9: a store that does not answer is never "not found". */
  function isActive({ session, user }: McpCall, id: string): Promise<boolean> {
    if ('failure' in session) fail('internal_error', { cause: session.failure });
    return sessions.isActive(id, session.record, user);
  }

  /** Decisions 3: accepted. The touch runs beside the work and is done before the reply. */
  async function inSession(call: McpCall, id: string, message: Message): Promise<Reply> {
    const expiresAt = sessions.expiresAt();
    const [touched, reply] = await Promise.all([
      sessions.touch(id, call.user),
      work(call, message).catch((thrown: unknown) =>
        renderError(asMethodError(thrown), JSONRPC, idOf(message)),
      ),
    ]);
    if (!touched) fail('session_not_found');
    return { ...reply, headers: { ...reply.headers, 'X-Session-Expires-At': expiresAt } };
  }

  async function work({ request, user }: McpCall, message: Message): Promise<Reply> {
    checkVersionHeader(request);
    if (message.kind !== 'request') return { status: 202 };
    const { id, method, params } = message;
    if (method === 'initialize') {
      fail('invalid_request', {
        details: 'The session is initialized already; leave out mcp-session-id for a new one.',
      });
    }
    const run = methods.get(method) ?? fail('method_not_found', { details: unknown(method) });
    return answer(id, await run(paramsOf(params), contextOf(request, user)));
  }

  function contextOf(request: GatewayRequest, user: UserContext | undefined): Context {
    return {
      user,
      service,
      get signal() {
        return request.signal();
      },
      progress: () => {},
    };
  }
}

function checkVersionHeader(request: GatewayRequest): void {
  const version = header(request, 'mcp-protocol-version');
  if (version === undefined || isKnownVersion(version)) return;
  fail('unsupported_protocol_version', {
    details: `MCP-Protocol-Version must be one of ${PROTOCOL_VERSIONS.join(', ')}.`,
  });
}

const answer = (
  id: RequestId,
  result: unknown,
  headers?: Readonly<Record<string, string>>,
): Reply => json(200, { jsonrpc: '2.0', result, id }, headers);

const idOf = (message: Message): RequestId | null =>
  message.kind === 'request' ? message.id : null;

const asMethodError = (thrown: unknown): GatewayError =>
  thrown instanceof GatewayError
    ? thrown
    : new GatewayError('method_failed', { cause: thrown, facts: stackOf(thrown) });

/** What a call was about, for the log: `tools/call` of `service_ping`. */
function subjectOf(message: Message): Readonly<Record<string, unknown>> {
  if (message.kind === 'response') return {};
  const { method, params } = message;
  const { name, uri } = isObject(params) ? params : {};
  const subject = name ?? uri;
  return { rpc: shown(method), ...(typeof subject === 'string' && { of: shown(subject) }) };
}

const shown = (text: string) => text.slice(0, 200);

const unknown = (method: string) => `There is no method ${JSON.stringify(method.slice(0, 100))}`;
