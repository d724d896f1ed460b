// The session era, 2024-11-05 to 2025-11-25 (§4.4): sessions that begin with `initialize`,
// notifications, and requests to the client.
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { isObject } from '../../platform/json.ts';
import {
  isRequestId,
  isShortId,
  type JsonRpcMessage,
  type JsonRpcNotification,
  type JsonRpcRequest,
  type RequestId,
  readParams,
} from '../../protocol/json-rpc.ts';
import { checkVersionHeader, hasSessionVersion } from '../../protocol/revisions.ts';
import { nameOwner } from '../../store/owner.ts';
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
} from '../calls/outcome.ts';
import type { FindClientId, RunCall } from '../calls/run-call.ts';
import type { ServiceInfo } from '../catalog/catalog.ts';
import { adaptContent, NEWEST_KINDS } from '../catalog/content.ts';
import type { IdentifiedCaller } from '../catalog/served-catalog.ts';
import type { KeptStreams } from './kept-streams.ts';
import type { Questions } from './questions.ts';
import type { McpReplicas } from './replica-message.ts';
import { isPrimed, isResumable } from './resumable-events.ts';
import {
  createInitialize,
  createSessionMethods,
  runSessionMethod,
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
  readonly keptStreams: Pick<KeptStreams, 'start' | 'endSession'>;
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
      const expiresAt = sessions.getExpiry(session);
      return addExpiry(expiresAt, respond(call, session, message).catch(toErrorResponse));
    },
  };

  /** Apart from the message, so that a call that waits does not keep it. */
  async function addExpiry(expiresAt: string, pending: Promise<McpResponse>): Promise<McpResponse> {
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
  const { sessionMethods, runCall, questions, cancellations, keptStreams } = deps;

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
    if (isResumable(protocolVersion)) keepStream(call, protocolVersion, sessionId);
    const outcome = runCall(call, toClient(call, session), params);
    const answer = answerInVersion(protocolVersion, outcome);
    return call.stream.respond(cancellations.raceCancellation(call, sessionId, id, answer));
  }

  /** §15.1. */
  function keepStream(call: Call, protocolVersion: string, sessionId: string): void {
    call.stream.keep({
      canBegin: isPrimed(protocolVersion),
      start: () =>
        keptStreams.start({
          sessionId,
          user: call.user && nameOwner(call.user),
          protocolVersion,
          requestId: call.record.id,
          isOfSession: false,
          abandon: call.abort,
        }),
    });
  }

  function toClient(call: Call, session: SessionRecord): CallClient {
    const { offers } = call.catalog;
    const logLevel = offers.logging ? readLogLevel(session.logLevel) : undefined;
    return {
      capabilities: () => readStoredCapabilities(session.clientCapabilities),
      logLevel,
      ask: (requests, guards) => questions.ask(call, session, requests, guards),
      createRelay: ({ wantsProgress, signal, meta, questionGuards }) => ({
        era: 'session',
        signal,
        wantsProgress,
        meta,
        questionGuards,
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
            version >= NEWEST_KINDS ? result : adaptContent(version, result),
          ),
    toErrorAnswer,
  );

/** The revision that asks for results where a tool's arguments do not fit or it fails. Versions compare as text. */
const FAILURE_RESULTS = '2025-11-25';

// MCP "Cancellation": calls that run, by session and request id, so that they can be cancelled from
// any replica.

type Cancellations = ReturnType<typeof createCancellations>;

/**
 * `cancel` is unset when the call is over. A Map that grows and shrinks leaves old tables behind, which
 * survive several garbage collections, and would keep all that the call held.
 */
interface RunningCall {
  cancel: (() => void) | undefined;
}

function createCancellations(replicas: McpReplicas) {
  const running = new Map<string, RunningCall>();

  function cancelHere(sessionId: string, id: RequestId): boolean {
    const runningCall = running.get(buildCallKey(sessionId, id));
    runningCall?.cancel?.();
    return runningCall !== undefined;
  }

  replicas.listen((message) => {
    if (message.about === 'cancelled') cancelHere(message.sessionId, message.id);
  });

  return {
    /** Resolves to the answer, or to `request_cancelled` as soon as the client cancels the request. */
    raceCancellation(
      call: Call,
      sessionId: string,
      id: RequestId,
      answer: Promise<Answer>,
    ): Promise<Answer> {
      const key = buildCallKey(sessionId, id);
      return new Promise((resolve) => {
        const runningCall: RunningCall = {
          cancel() {
            call.abort();
            resolve({ error: new GatewayError('request_cancelled') });
          },
        };
        running.set(key, runningCall);
        answer.then((value) => {
          runningCall.cancel = undefined;
          // A client that uses an id twice at once can cancel the later call only.
          if (running.get(key) === runningCall) running.delete(key);
          resolve(value);
        });
      });
    },
    /** Cancels the call wherever it runs; one that is over already, or never was, is no matter. */
    async cancel(sessionId: string, id: RequestId): Promise<void> {
      if (cancelHere(sessionId, id) || !isShortId(id)) return;
      await replicas.send({ about: 'cancelled', sessionId, id });
    },
  };
}

/** 1 and "1" are two ids (JSON-RPC). */
const buildCallKey = (sessionId: string, id: RequestId): string =>
  typeof id === 'string' ? `${sessionId}"${id}` : `${sessionId}#${id}`;
