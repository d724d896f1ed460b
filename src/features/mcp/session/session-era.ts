// The session era, 2024-11-05 to 2025-11-25 (Spec §4.4, decisions 3): sessions that begin with
// `initialize`, notifications, and requests to the client.
import { fail, GatewayError, toGatewayError } from '../../../core/errors/gateway-error.ts';
import { JSONRPC, renderError } from '../../../core/errors/render.ts';
import { isObject } from '../../../core/json.ts';
import { header, json, type Reply } from '../../../core/message.ts';
import type { SessionRecord } from '../../../core/store/store.ts';
import { type CallContext, createContext, createSignal, isLogSeverity } from '../calls/context.ts';
import { inputErrorResult } from '../calls/input-error.ts';
import {
  capabilitiesOf,
  type Method,
  type Methods,
  mayAsk,
  noSuchMethod,
  type Outcome,
} from '../calls/methods.ts';
import { replyTo } from '../calls/reply-to.ts';
import type { Calls } from '../calls/running-calls.ts';
import type { Catalog, LogSeverity, ServiceInfo } from '../catalog/catalog.ts';
import type { Codec, McpCall } from '../era-handler.ts';
import {
  idOf,
  isRequestId,
  type Message,
  type Notification,
  paramsOf,
  type Request,
} from '../protocol/json-rpc.ts';
import { checkVersionHeader } from '../protocol/version-header.ts';
import { type Line, openLine, takesEventStream } from '../streaming/response-stream.ts';
import { inRevision } from './content.ts';
import type { Streams } from './get-stream.ts';
import { readInitialize, storedCapabilities } from './initialize.ts';
import { createSessionMethods } from './methods.ts';
import type { Questions } from './questions.ts';
import type { Replicas } from './replicas.ts';
import { createRunning } from './running.ts';
import type { Sessions } from './sessions.ts';

export interface SessionCodecDeps {
  readonly catalog: Catalog;
  readonly methods: Methods;
  readonly sessions: Sessions;
  readonly replicas: Replicas;
  readonly questions: Questions;
  readonly calls: Calls;
  /** Undefined without `MCP_STREAMS`. */
  readonly streams: Streams | undefined;
  readonly service: ServiceInfo;
}

export function createSessionCodec(deps: SessionCodecDeps): Codec {
  const { catalog, methods, sessions, replicas, questions, calls, service, streams } = deps;
  const ownMethods = createSessionMethods({ catalog, sessions, streams });
  const running = createRunning(replicas);

  return {
    era: 'session',
    knows: (method) => method === 'initialize' || ownMethods.has(method) || methods.has(method),
    async take(call, message) {
      const { sessionId } = call;
      if (sessionId === undefined) {
        const starts = message.kind === 'request' && message.method === 'initialize';
        return starts ? initialize(call, message) : fail('missing_session_id');
      }
      const record = (await sessions.of(call)) ?? fail('session_not_found');
      return inSession(call, record, message);
    },
  };

  async function initialize({ user }: McpCall, { id, params }: Request): Promise<Reply> {
    const session = readInitialize(params);
    const { sessionId, ended } = await sessions.create(user, session);
    // As after DELETE; nobody waits for it, and it never rejects.
    for (const id of ended) void streams?.end(id);
    const { name, version } = service;
    const result = {
      protocolVersion: session.protocolVersion,
      capabilities: capabilitiesOf(catalog, streams !== undefined),
      serverInfo: { name, version },
      ...(catalog.instructions !== undefined && { instructions: catalog.instructions }),
    };
    return json(
      200,
      { jsonrpc: '2.0', result, id },
      {
        'mcp-session-id': sessionId,
        'X-Session-Expires-At': sessions.expiresAt(),
      },
    );
  }

  /** Decisions 3: accepted. The touch runs beside the work and is done before the reply. */
  function inSession(call: McpCall, record: SessionRecord, message: Message): Promise<Reply> {
    const { signal, abort } = createSignal(call.request);
    const id = idOf(message);
    const working = accepted({ call, record, signal, abort }, message).catch((thrown: unknown) =>
      renderError(toGatewayError(thrown), JSONRPC, id),
    );
    const touched = sessions.touch(record.sessionId, call.user).then(orNotFound);
    return whenTouched(touched, working, abort);
  }

  /** Apart from the message, so that a call that waits does not keep it (decisions 10). */
  async function whenTouched(touched: Promise<void>, working: Promise<Reply>, abort: () => void) {
    const expiresAt = sessions.expiresAt();
    try {
      const [reply] = await Promise.all([working, touched]);
      return { ...reply, headers: { ...reply.headers, 'X-Session-Expires-At': expiresAt } };
    } catch (error) {
      // Nobody will hear what the tool says.
      abort();
      void working.then(({ stream }) => stream?.[Symbol.asyncIterator]().return?.());
      throw error;
    }
  }

  async function accepted(own: Accepted, message: Message): Promise<Reply> {
    const { call, record } = own;
    checkVersionHeader(call.request);
    switch (message.kind) {
      case 'request':
        return requested(own, message);
      case 'notification':
        await notified(record.sessionId, message);
        return { status: 202 };
      case 'response':
        await questions.answered(record.sessionId, message);
        return { status: 202 };
    }
  }

  async function notified(sessionId: string, { method, params }: Notification): Promise<void> {
    if (method !== 'notifications/cancelled' || !isObject(params)) return;
    if (isRequestId(params.requestId)) await running.cancel(sessionId, params.requestId);
  }

  async function requested(accepted: Accepted, message: Request) {
    const { call, record } = accepted;
    const { id, method, params } = message;
    if (method === 'initialize') {
      fail('invalid_request', {
        details: 'The session is initialized already; leave out mcp-session-id for a new one.',
      });
    }
    const own = ownMethods.get(method);
    if (own === undefined) return run(accepted, message);
    await own(paramsOf(params), { sessionId: record.sessionId, user: call.user });
    return json(200, { jsonrpc: '2.0', result: {}, id });
  }

  function run({ call, record, signal, abort }: Accepted, message: Request): Promise<Reply> {
    const { id, method, params } = message;
    const row = methods.get(method) ?? noSuchMethod('method_not_found', method);
    const { sessionId, protocolVersion } = record;
    const { line, reply } = openLine(takesEventStream(header(call.request, 'accept')));
    const context = contextOf(call, record, { method: row, params, line, signal });
    const over = running.add(sessionId, id, () => {
      abort();
      line.finish(renderError(new GatewayError('request_cancelled'), JSONRPC, id));
    });
    const work = resultIn(protocolVersion, calls.run(call, row, params, context));
    void replyTo(id, signal, work).then((last) => {
      line.finish(last);
      over();
    });
    return reply;
  }

  function contextOf(
    { user }: McpCall,
    { sessionId, clientCapabilities, logLevel }: SessionRecord,
    { method, params, line, signal }: Way,
  ): CallContext {
    const client = () => storedCapabilities(clientCapabilities);
    return createContext({
      mayAsk: mayAsk(method),
      params,
      user,
      service,
      client,
      line,
      signal,
      ask: questions.askOn({ sessionId, client, line, signal }),
      logLevel: catalog.offers.logging ? levelOf(logLevel) : undefined,
      isAsking: () => false,
    });
  }
}

/** A call in its session; `abort` tells the tool that nobody waits for it. */
interface Accepted {
  readonly call: McpCall;
  readonly record: SessionRecord;
  signal(): AbortSignal;
  abort(): void;
}

const orNotFound = (touched: boolean): void => {
  if (!touched) fail('session_not_found');
};

/** The revision that asks for results where arguments do not fit. Versions compare as text. */
const INPUT_ERROR_RESULTS = '2025-11-25';

async function resultIn(version: string, work: Promise<Outcome>) {
  if (version >= INPUT_ERROR_RESULTS) return (await work.catch(asOutcome)).result;
  return inRevision(version, (await work).result);
}

const asOutcome = (thrown: unknown): Outcome => ({ result: inputErrorResult(thrown) });

/** How one request reaches its tool, and the tool its client. */
interface Way {
  readonly method: Method;
  readonly params: unknown;
  readonly line: Line;
  signal(): AbortSignal;
}

/** MCP, logging: until the client says more, the server decides. */
const levelOf = (stored: string | undefined): LogSeverity =>
  isLogSeverity(stored) ? stored : 'info';
