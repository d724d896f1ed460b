// The session era, 2024-11-05 to 2025-11-25 (§4.4): sessions that begin with `initialize`, notifications, and server-initiated
// requests.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { getHeader } from '../../http/endpoint/message.ts';
import { type Link, LinkedList } from '../../platform/bounded-map.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { noteMembers } from '../../platform/noted-json.ts';
import { nameOwner } from '../../store/keys.ts';
import type { SessionRecord } from '../../store/store.ts';
import { type Call, type EraHandler, SESSION_HEADER, toAnswer } from '../calls/call.ts';
import type { CallClient } from '../calls/context.ts';
import type { QuestionGuards } from '../calls/guards.ts';
import { failUnknownMethod } from '../calls/methods.ts';
import type { RelayedSessionClient } from '../catalog/catalog.ts';
import type { Answers, ClientCapabilities, ClientRequests } from '../catalog/client-requests.ts';
import { adaptContent, NEWEST_KINDS } from '../catalog/content.ts';
import type { IdentifiedCaller } from '../catalog/served-catalog.ts';
import {
  isRequestId,
  isShortId,
  type JsonRpcMessage,
  type JsonRpcRequest,
  type RequestId,
  readParams,
} from '../protocol/json-rpc.ts';
import type { LogSeverity } from '../protocol/methods.ts';
import { checkVersionHeader, hasSessionVersion } from '../protocol/revisions.ts';
import type { EventChannel } from '../streaming/event-queue.ts';
import {
  ACCEPTED,
  type Answer,
  type KeepStream,
  type McpResponse,
  toErrorAnswer,
} from '../streaming/response-stream.ts';
import { isPrimed, RESUMABLE_SINCE } from './resumable-events.ts';
import { beginSession, SESSION_METHODS, type SessionServices } from './session-services.ts';
import { type McpReplicas, readLogLevel, readStoredCapabilities } from './sessions.ts';

export function createSessionEraHandler(
  services: SessionServices,
  closeSession: (caller: IdentifiedCaller) => void,
): EraHandler {
  const { calls, sessions, questions, replicas } = services;
  const cancellations = createCancellations(replicas);

  return {
    // A message of an unknown protocol version does not slide its session.
    toSessionAccess: (request, user) =>
      sessions.toAccess(
        getHeader(request, SESSION_HEADER),
        user,
        hasSessionVersion(request) ? 'slide' : 'read',
      ),
    handle(call) {
      const { sessionId, message } = call;
      if (sessionId === undefined)
        return isInitialize(message)
          ? beginSession(call, services, closeSession)
          : fail('missing_session_id');
      const session = sessions.selectOwn(call);
      if (session === undefined)
        // A client that sends `initialize` with the id of an expired session follows its instructions, and needs more of them.
        return sessions.failNotFound(
          sessionId,
          call.session,
          'session_not_found',
          isInitialize(message)
            ? `The session does not exist or has expired. ${WITHOUT_SESSION}`
            : undefined,
        );
      checkVersionHeader(call.request);
      // All further responses include the expiry, even errors.
      call.sessionInfo = { expiresAt: sessions.getExpiry(session) };
      switch (message.kind) {
        case 'request':
          return answerRequest(call, session, message);
        case 'notification':
          return receiveNotification(sessionId, message);
        case 'response':
          noteMembers(message, call.sentText ?? '', []);
          return questions.receiveAnswer(sessionId, message).then(() => ACCEPTED);
      }
    },
  };

  async function receiveNotification(
    sessionId: string,
    { method, params }: JsonRpcMessage,
  ): Promise<McpResponse> {
    const { requestId }: JsonObject = isObject(params) ? params : {};
    if (method === 'notifications/cancelled' && isRequestId(requestId))
      await cancellations.cancel(sessionId, requestId);
    return ACCEPTED;
  }

  /** Answers a request: of a method that only sessions have, or that both eras have. */
  function answerRequest(
    call: Call,
    session: SessionRecord,
    request: JsonRpcRequest,
  ): Promise<McpResponse> {
    const { method } = request;
    if (method === 'initialize')
      fail('invalid_request', {
        details: `The session is already initialized. ${WITHOUT_SESSION}`,
      });
    if (call.record.method === undefined) failUnknownMethod('method_not_found', method);
    const { stream } = call;
    stream.isStreamableRevision = session.protocolVersion >= RESUMABLE_SINCE;
    const runMethod = SESSION_METHODS[method];
    if (runMethod !== undefined) {
      const running = runMethod(readParams(request.params), session, call, services);
      return stream.answerWith(running.then(() => ({ result: {} })));
    }
    void run(call, session, request.id);
    return stream.respond();
  }

  /** Runs the call and ends its stream with the answer. Never rejects. */
  async function run(call: Call, session: SessionRecord, id: RequestId) {
    const { stream } = call;
    const { sessionId } = session;
    const client = new SessionClient(call, session, services);
    if (stream.isStreamableRevision) stream.keep(client);
    const running = cancellations.add(call, sessionId, id);
    try {
      const outcome = await calls.run(call, client);
      running.list?.remove(running);
      const { protocolVersion: version } = session;
      const answer: Answer =
        outcome.kind === 'asked'
          ? { error: new GatewayError('method_failed') }
          : toAnswer(outcome, version >= FAILURE_RESULTS, ({ result }) =>
              version >= NEWEST_KINDS ? result : adaptContent(version, result),
            );
      if ('error' in answer) {
        questions.noteRequired(sessionId, answer.error);
      } else if (stream.isAccepted && stream.isStreamableRevision) {
        // §18.4. Not before an error: a stream would hide its HTTP status.
        const { missedLists } = call.catalog;
        const lists = missedLists?.sessions.has(sessionId) ? missedLists.take(sessionId) : [];
        for (const list of lists) {
          stream.send({ method: `notifications/${list}/list_changed`, params: {} });
        }
      }
      stream.end(answer);
    } catch (thrown) {
      running.list?.remove(running);
      stream.end(toErrorAnswer(thrown));
    }
  }
}

const isInitialize = (message: JsonRpcMessage): message is JsonRpcRequest =>
  message.kind === 'request' && message.method === 'initialize';

const WITHOUT_SESSION =
  'To start a new session with initialize, send it without the mcp-session-id header.';

/** The client of a call in its session: it can be asked, and resume the stream since 2025-03-26 (§15.1). */
class SessionClient implements CallClient, KeepStream {
  readonly call: Call;
  readonly session: SessionRecord;
  readonly services: SessionServices;

  constructor(call: Call, session: SessionRecord, services: SessionServices) {
    this.call = call;
    this.session = session;
    this.services = services;
  }

  get logLevel(): LogSeverity | undefined {
    return this.call.catalog.offers.logging ? readLogLevel(this.session.logLevel) : undefined;
  }

  capabilities(): ClientCapabilities {
    return readStoredCapabilities(this.session.clientCapabilities);
  }

  ask<const Requests extends ClientRequests>(
    requests: Requests,
    guards: QuestionGuards | undefined,
  ): Promise<Answers<Requests>> {
    return this.services.questions.ask(this.call, this.session, requests, guards);
  }

  createRelayedClient(relayed: RelayedThrough): RelayedSessionClient {
    return new RelayedClientInSession(this, relayed);
  }

  get canPrime(): boolean {
    return isPrimed(this.session.protocolVersion);
  }

  start(): EventChannel {
    const { call, session } = this;
    const { sessionId, protocolVersion } = session;
    return this.services.keptStreams.start({
      sessionId,
      user: call.user && nameOwner(call.user),
      protocolVersion,
      requestId: call.record.id,
      isOfSession: false,
      abandon: () => call.abort(),
    });
  }
}

type RelayedThrough = Parameters<CallClient['createRelayedClient']>[0];

class RelayedClientInSession implements RelayedSessionClient {
  readonly era = 'session';
  readonly signal: CancelSignal;
  readonly wantsProgress: boolean;
  readonly logLevel: LogSeverity | undefined;
  readonly meta: JsonObject | undefined;
  readonly questionGuards: QuestionGuards | undefined;
  private readonly client: SessionClient;

  constructor(
    client: SessionClient,
    { signal, wantsProgress, meta, questionGuards }: RelayedThrough,
  ) {
    this.signal = signal;
    this.wantsProgress = wantsProgress;
    this.logLevel = client.logLevel;
    this.meta = meta;
    this.questionGuards = questionGuards;
    this.client = client;
  }

  // Bound when they are read, like those of the context: authors' catalogues may destructure them.

  get ask(): RelayedSessionClient['ask'] {
    const { call, session, services } = this.client;
    return (request, cancelled) => services.questions.askRaw(call, session, request, cancelled);
  }

  get completeElicitation(): RelayedSessionClient['completeElicitation'] {
    const { call, session, services } = this.client;
    return (elicitationId) =>
      services.questions.completeElicitation(call, session.sessionId, elicitationId);
  }
}

/** The first revision where failures of tools and invalid arguments are results. Versions compare as text. */
const FAILURE_RESULTS = '2025-11-25';

// MCP "Cancellation": running calls by session and request id, cancelled from any replica.

interface RunningCall {
  readonly sessionId: string;
  readonly id: RequestId;
  readonly call: Call;
}

/**
 * Calls are partitioned by the last two digits of the session id, a UUID: a partition is small enough to be searched. A Map would
 * grow and shrink with each call (`LinkedList` in platform/bounded-map.ts).
 */
const PARTS = 256;

function createCancellations(replicas: McpReplicas) {
  const parts = Array.from({ length: PARTS }, () => new LinkedList<RunningCall>());
  const others = new LinkedList<RunningCall>();
  const findPart = (sessionId: string) => parts[Number.parseInt(sessionId.slice(-2), 16)] ?? others;

  function cancelHere(sessionId: string, id: RequestId) {
    let newest: RunningCall | undefined;
    // A client that uses an id twice at once cancels the later call. 1 and "1" are two ids (JSON-RPC).
    for (const running of findPart(sessionId)) {
      if (running.id === id && running.sessionId === sessionId) newest = running;
    }
    newest?.call.abort(new GatewayError('request_cancelled'));
    return newest !== undefined;
  }

  replicas.listen((message) => {
    if (message.about === 'cancelled') cancelHere(message.sessionId, message.id);
  });

  return {
    /** Until removed, its client can cancel it: the answer is `request_cancelled`, immediately. */
    add: (call: Call, sessionId: string, id: RequestId): Link<RunningCall> =>
      findPart(sessionId).add({ sessionId, id, call }),
    /** Cancels the call on any replica; one with a long id only here. Idempotent. */
    async cancel(sessionId: string, id: RequestId): Promise<void> {
      if (cancelHere(sessionId, id) || !isShortId(id)) return;
      await replicas.send({ about: 'cancelled', sessionId, id });
    },
  };
}
