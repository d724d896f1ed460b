// The session era, 2024-11-05 to 2025-11-25 (§4.4): sessions that begin with `initialize`,
// notifications, and requests to the client.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { noteMembers } from '../../platform/noted-json.ts';
import { nameOwner } from '../../store/owner.ts';
import type { SessionRecord } from '../../store/store.ts';
import { type Call, type EraHandler, readSessionHeader } from '../calls/call.ts';
import type { CallClient } from '../calls/context.ts';
import type { QuestionGuards } from '../calls/guards.ts';
import { failUnknownMethod } from '../calls/methods.ts';
import {
  ACCEPTED,
  type Answer,
  type McpResponse,
  type Outcome,
  toAnswer,
  toErrorAnswer,
} from '../calls/outcome.ts';
import type { SessionRelay } from '../catalog/catalog.ts';
import type { Answers, ClientCapabilities, ClientRequests } from '../catalog/client-requests.ts';
import { adaptContent, NEWEST_KINDS } from '../catalog/content.ts';
import type { IdentifiedCaller } from '../catalog/served-catalog.ts';
import {
  isRequestId,
  type JsonRpcMessage,
  type JsonRpcRequest,
  readParams,
} from '../protocol/json-rpc.ts';
import type { LogSeverity } from '../protocol/methods.ts';
import { checkVersionHeader, hasSessionVersion } from '../protocol/revisions.ts';
import type { EventChannel, KeepStream } from '../streaming/response-stream.ts';
import { isPrimed, isResumable } from './resumable-events.ts';
import { beginSession, SESSION_METHODS, type SessionServices } from './session-services.ts';
import { readLogLevel, readStoredCapabilities } from './sessions.ts';

export function createSessionEraHandler(
  services: SessionServices,
  closeSession: (caller: IdentifiedCaller) => void,
): EraHandler {
  const { sessions, questions, cancellations } = services;

  return {
    // A message of an unknown protocol version is of no era, and does not slide its session.
    accessSession: (request, user) =>
      sessions.createAccess(
        readSessionHeader(request),
        user,
        hasSessionVersion(request) ? 'slide' : 'read',
      ),
    handle(call, message) {
      const { sessionId } = call;
      if (sessionId === undefined)
        return isInitialize(message)
          ? beginSession(call, message.params, services, closeSession)
          : fail('missing_session_id');
      const session = sessions.read(sessionId, call);
      return session instanceof Promise
        ? session.then((found) => respond(call, found, message))
        : respond(call, session, message);
    },
  };

  function respond(
    call: Call,
    found: SessionRecord | undefined,
    message: JsonRpcMessage,
  ): Promise<McpResponse> {
    if (found === undefined) {
      fail('session_not_found', {
        // A client that sends `initialize` with the id of a session that is over does what it was told, and must hear more.
        ...(isInitialize(message) && {
          details: `The session does not exist or has expired. ${WITHOUT_SESSION}`,
        }),
      });
    }
    checkVersionHeader(call.request);
    // From here on every response says it, errors too.
    call.sessionInfo = { expiresAt: sessions.getExpiry(found) };
    const { sessionId } = found;
    switch (message.kind) {
      case 'request':
        return respondToRequest(call, found, message);
      case 'notification': {
        const { requestId }: JsonObject = isObject(message.params) ? message.params : {};
        return message.method === 'notifications/cancelled' && isRequestId(requestId)
          ? cancellations.cancel(sessionId, requestId).then(() => ACCEPTED)
          : Promise.resolve(ACCEPTED);
      }
      case 'response':
        noteMembers(message, call.sentText ?? '', []);
        return questions.receiveAnswer(sessionId, message).then(() => ACCEPTED);
    }
  }

  /** Answers a request in a session: of a method that only sessions have, or that both eras have. */
  function respondToRequest(
    call: Call,
    session: SessionRecord,
    request: JsonRpcRequest,
  ): Promise<McpResponse> {
    if (request.method === 'initialize')
      fail('invalid_request', {
        details: `The session is already initialized. ${WITHOUT_SESSION}`,
      });
    if (call.record.method === undefined) failUnknownMethod('method_not_found', request.method);
    const { stream } = call;
    stream.mayBegin = isResumable(session.protocolVersion);
    const runMethod = SESSION_METHODS[request.method];
    if (runMethod === undefined) return answerCall(call, session, request);
    runMethod(readParams(request.params), session, call, services).then(
      () => stream.end({ result: {} }),
      (thrown: unknown) => stream.end(toErrorAnswer(thrown)),
    );
    return stream.respond();
  }

  function answerCall(
    call: Call,
    session: SessionRecord,
    { id, params }: JsonRpcRequest,
  ): Promise<McpResponse> {
    const { stream } = call;
    const { protocolVersion } = session;
    const client = new SessionClient(call, session, services);
    if (stream.mayBegin) stream.keep(client);
    const working = services.calls.run(call, client, params);
    const running = cancellations.add(call, session.sessionId, id);
    // One reaction for all that is left to do: each further promise would cost every call as much again.
    working.then(
      (outcome) => {
        running.remove();
        const answer = answerInVersion(protocolVersion, outcome);
        if ('error' in answer) {
          questions.noteRequired(session.sessionId, answer.error);
        } else if (stream.isAccepted && stream.mayBegin) {
          // §18.4. Not before an error, whose status says more than an event of a stream could.
          for (const list of call.catalog.takeMissedLists?.(session.sessionId) ?? []) {
            stream.send({ method: `notifications/${list}/list_changed`, params: {} });
          }
        }
        stream.end(answer);
      },
      (thrown: unknown) => {
        running.remove();
        stream.end(toErrorAnswer(thrown));
      },
    );
    return stream.respond();
  }
}

const isInitialize = (message: JsonRpcMessage): message is JsonRpcRequest =>
  message.kind === 'request' && message.method === 'initialize';

const WITHOUT_SESSION =
  'To start a new session with initialize, send it without the mcp-session-id header.';

/** The client of a call in its session: it can be asked, and, with newer revisions, come back for the answer (§15.1). */
class SessionClient implements CallClient, KeepStream {
  readonly logLevel: LogSeverity | undefined;
  readonly call: Call;
  readonly session: SessionRecord;
  readonly services: SessionServices;

  constructor(call: Call, session: SessionRecord, services: SessionServices) {
    const { offers } = call.catalog;
    this.logLevel = offers.logging ? readLogLevel(session.logLevel) : undefined;
    this.call = call;
    this.session = session;
    this.services = services;
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

  createRelay(relayed: RelayedThrough): SessionRelay {
    return new RelayInSession(this, relayed);
  }

  /** Sessions are asked while a call goes on: none of their calls ends with a question. */
  isAsking(): boolean {
    return false;
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

type RelayedThrough = Parameters<CallClient['createRelay']>[0];

class RelayInSession implements SessionRelay {
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

  // Functions made when they are looked at, as those of the context: authors' catalogues may take them off.

  get ask(): SessionRelay['ask'] {
    const { call, session, services } = this.client;
    return (request, cancelled) => services.questions.askRaw(call, session, request, cancelled);
  }

  get completeElicitation(): SessionRelay['completeElicitation'] {
    const { call, session, services } = this.client;
    return (elicitationId) =>
      services.questions.completeElicitation(call, session.sessionId, elicitationId);
  }
}

function answerInVersion(version: string, outcome: Outcome): Answer {
  if (outcome.kind === 'asked') return { error: new GatewayError('method_failed') };
  return toAnswer(outcome, version >= FAILURE_RESULTS, ({ result }) =>
    version >= NEWEST_KINDS ? result : adaptContent(version, result),
  );
}

/** The revision that asks for results where a tool's arguments do not fit or it fails. Versions compare as text. */
const FAILURE_RESULTS = '2025-11-25';
