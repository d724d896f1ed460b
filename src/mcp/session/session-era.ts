// The session era, 2024-11-05 to 2025-11-25 (§4.4): sessions that begin with `initialize`,
// notifications, and requests to the client.
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { isObject } from '../../platform/json.ts';
import {
  isRequestId,
  type JsonRpcMessage,
  type JsonRpcNotification,
  type JsonRpcRequest,
  readParams,
} from '../../protocol/json-rpc.ts';
import { checkVersionHeader, hasSessionVersion } from '../../protocol/revisions.ts';
import type { SessionRecord } from '../../store/store.ts';
import { type Call, type EraHandler, readSessionHeader } from '../calls/call.ts';
import type { CallClient } from '../calls/context.ts';
import { failUnknownMethod } from '../calls/methods.ts';
import {
  ACCEPTED,
  type Answer,
  type McpResponse,
  type Outcome,
  toAnswer,
  toErrorAnswer,
  toErrorResponse,
  toResultResponse,
} from '../calls/outcome.ts';
import type { FindClientId, RunCall } from '../calls/run-call.ts';
import type { ServiceInfo } from '../catalog/catalog.ts';
import { type Content, isContent } from '../catalog/content.ts';
import type { IdentifiedCaller } from '../catalog/served-catalog.ts';
import type { Questions } from './questions.ts';
import type { McpReplicas } from './replica-message.ts';
import {
  type Cancellations,
  createCancellations,
  createInitialize,
  createSessionMethods,
  type SessionMethod,
  type SessionMethods,
} from './session-methods.ts';
import type { FindStreamOwner, SessionStreams } from './session-streams.ts';
import { readLogLevel, readStoredCapabilities, type Sessions } from './sessions.ts';

export interface SessionEraDeps {
  readonly runCall: RunCall;
  readonly findClientId: FindClientId;
  readonly sessions: Sessions;
  readonly replicas: McpReplicas;
  readonly questions: Questions;
  /** Undefined without `MCP_STREAMS`. */
  readonly sessionStreams: SessionStreams | undefined;
  /** Closes what catalogues opened for a session, at whatever path it was. */
  closeSession(caller: IdentifiedCaller): void;
  readonly findStreamOwner: FindStreamOwner;
  readonly service: ServiceInfo;
}

export function createSessionEra(deps: SessionEraDeps): EraHandler {
  const { sessions, questions } = deps;
  const sessionMethods = createSessionMethods(deps);
  const cancellations = createCancellations(deps.replicas);
  const initialize = createInitialize(deps);
  const respondToRequest = createRespondToRequest({ ...deps, sessionMethods, cancellations });

  return {
    // A message of an unknown protocol version is of no era, and does not slide its session.
    accessSession: (request, user) =>
      sessions.createAccess(
        readSessionHeader(request),
        user,
        hasSessionVersion(request) ? 'slide' : 'read',
      ),
    async handle(call, message) {
      const { sessionId } = call;
      if (sessionId === undefined) {
        const isInitialize = message.kind === 'request' && message.method === 'initialize';
        return isInitialize ? initialize(call, message.params) : fail('missing_session_id');
      }
      const session = (await sessions.read(sessionId, call)) ?? fail('session_not_found');
      checkVersionHeader(call.request);
      return addExpiry(respond(call, session, message).catch(toErrorResponse));
    },
  };

  /** Apart from the message, so that a call that waits does not keep it. */
  async function addExpiry(pending: Promise<McpResponse>): Promise<McpResponse> {
    const expiresAt = sessions.getExpiry();
    const response = await pending;
    // Nearly all are of this kind, and a literal costs far less than a spread.
    return response.kind === 'json'
      ? { kind: 'json', answer: response.answer, expiresAt }
      : { ...response, expiresAt };
  }

  async function respond(
    call: Call,
    session: SessionRecord,
    message: JsonRpcMessage,
  ): Promise<McpResponse> {
    switch (message.kind) {
      case 'request':
        return respondToRequest(call, session, message);
      case 'notification':
        await handleNotification(session.sessionId, message);
        return ACCEPTED;
      case 'response':
        await questions.receiveAnswer(session.sessionId, message);
        return ACCEPTED;
    }
  }

  async function handleNotification(
    sessionId: string,
    { method, params }: JsonRpcNotification,
  ): Promise<void> {
    if (method !== 'notifications/cancelled' || !isObject(params)) return;
    if (isRequestId(params.requestId)) await cancellations.cancel(sessionId, params.requestId);
  }
}

interface RequestDeps extends SessionEraDeps {
  readonly sessionMethods: SessionMethods;
  readonly cancellations: Cancellations;
}

/** Answers a request in a session: of a method that only sessions have, or that both eras have. */
function createRespondToRequest(deps: RequestDeps) {
  const { sessionMethods, runCall, questions, cancellations } = deps;

  return function respondToRequest(
    call: Call,
    session: SessionRecord,
    request: JsonRpcRequest,
  ): Promise<McpResponse> {
    if (request.method === 'initialize') {
      fail('invalid_request', {
        details: 'The session is already initialized. Leave out mcp-session-id to start a new one.',
      });
    }
    if (call.record.method === undefined) failUnknownMethod('method_not_found', request.method);
    const sessionMethod = sessionMethods[request.method];
    return sessionMethod === undefined
      ? answerCall(call, session, request)
      : runSessionMethod(sessionMethod, readParams(request.params), session, call);
  };

  function answerCall(
    call: Call,
    session: SessionRecord,
    { id, params }: JsonRpcRequest,
  ): Promise<McpResponse> {
    const { protocolVersion, sessionId } = session;
    const outcome = runCall(call, toClient(call, session), params);
    const answer = answerInVersion(protocolVersion, outcome);
    return call.stream.respond(cancellations.raceCancellation(call, sessionId, id, answer));
  }

  function toClient(call: Call, session: SessionRecord): CallClient {
    const { offers } = call.catalog;
    const logLevel = offers.logging ? readLogLevel(session.logLevel) : undefined;
    return {
      capabilities: () => readStoredCapabilities(session.clientCapabilities),
      logLevel,
      ask: (requests) => questions.ask(call, session, requests),
      createRelay: ({ wantsProgress, signal, meta }) => ({
        era: 'session',
        signal,
        wantsProgress,
        meta,
        logLevel,
        ask: (request, cancelled) => questions.askRaw(call, session, request, cancelled),
        completeElicitation: (elicitationId) =>
          call.stream.send({
            method: 'notifications/elicitation/complete',
            params: { elicitationId },
          }),
      }),
      isAsking: () => false,
    };
  }
}

/** Sessions are asked while a call goes on: none of their calls ends with a question. */
const answerInVersion = (version: string, working: Promise<Outcome>): Promise<Answer> =>
  working.then(
    (outcome) =>
      outcome.kind === 'asked'
        ? { error: new GatewayError('method_failed') }
        : toAnswer(outcome, version >= FAILURE_RESULTS, ({ result }) =>
            adaptContent(version, result),
          ),
    toErrorAnswer,
  );

async function runSessionMethod(
  method: SessionMethod,
  ...args: Parameters<SessionMethod>
): Promise<McpResponse> {
  await method(...args);
  return toResultResponse({});
}

/** The revision that asks for results where a tool's arguments do not fit or it fails. Versions compare as text. */
const FAILURE_RESULTS = '2025-11-25';

// MCP: kinds of content that a revision does not have reach its clients as text.

/** The revision that brought each kind beside text, image and resource. */
const SINCE: Readonly<Record<string, string>> = {
  audio: '2025-03-26',
  resource_link: '2025-06-18',
};

const NEWEST_CHANGE = '2025-06-18';

/** The result as a client of `version` can read it. Versions compare as text: they are dates. */
function adaptContent(version: string, result: object): object {
  if (version >= NEWEST_CHANGE) return result;
  const { content, messages }: { content?: unknown; messages?: unknown } = result;
  if (Array.isArray(content)) {
    return { ...result, content: content.map((item: unknown) => adaptItem(version, item)) };
  }
  if (!Array.isArray(messages)) return result;
  return {
    ...result,
    messages: messages.map((message: unknown) =>
      isObject(message) ? { ...message, content: adaptItem(version, message.content) } : message,
    ),
  };
}

/** What is no content of MCP stays as it is: not every catalogue checks what it returns. */
const adaptItem = (version: string, content: unknown): unknown =>
  isContent(content) ? adaptKind(version, content) : content;

function adaptKind(version: string, content: Content): Content {
  if (version >= (SINCE[content.type] ?? '')) return content;
  if (content.type === 'resource_link') return { type: 'text', text: content.uri };
  if (content.type === 'audio') return { type: 'text', text: `[${content.mimeType}]` };
  return content;
}
