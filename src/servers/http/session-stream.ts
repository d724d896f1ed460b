// MCP "Listening for Messages from the Server": the GET stream of a session.
import type { UpstreamCaller } from '../../mcp/upstream/upstream.ts';
import type { JsonObject } from '../../platform/json.ts';
import {
  readEchoedNumber,
  readServerMessage,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import { isQuestion } from '../transport/server-questions.ts';
import { createEventCursor } from './event-stream.ts';
import { type ExchangeEnd, isEventStream } from './exchange.ts';
import { RefusalError } from './failures.ts';
import type { HttpConnection } from './http-connection.ts';
import type { AttemptEnd, StreamConsumer } from './listeners.ts';
import { isSessionLost, mayBeLost } from './lost-sessions.ts';
import type { QuestionStreams } from './question-streams.ts';
import { type CallOutcome, MAX_OPEN_REQUESTS } from './server-call.ts';
import type { SessionEra } from './session-protocol.ts';
import { listAskable, routeToSession, type ServerSession } from './sessions.ts';

/** Refused by its status, or by a JSON-RPC error instead of a stream. */
type StreamRefusal = Exclude<CallOutcome, { kind: 'result' }>;

export function createSessionStream(
  connection: HttpConnection,
  era: SessionEra,
  { isSessionActive }: ProcessShare,
  { replicas }: QuestionStreams,
) {
  const { sessions } = era;
  /** Sessions that had a stream. */
  const streamed = new WeakSet<ServerSession>();

  /** Resolves when the stream has ended, to whether and when to reopen it. */
  async function openStream(
    consumer: StreamConsumer,
    signal: AbortSignal,
    onOpen: (isResumed: boolean) => void,
  ): Promise<AttemptEnd> {
    const { caller } = consumer;
    const session = sessions.find(caller) ?? (await sessions.open(caller));
    if (signal.aborted) return 'never';
    session.streams += 1;
    let hasBegun = false;
    try {
      const lastEventId = session.cursor?.lastId();
      const end = await readStream(consumer, session, signal, () => {
        hasBegun = true;
        streamed.add(session);
        session.openStreams += 1;
        session.held?.noteAttempt();
        onOpen(lastEventId !== undefined);
      });
      if (hasBegun) {
        const afterMs = session.cursor?.retryMs();
        return afterMs === undefined ? 'again' : { afterMs };
      }
      if (lastEventId !== undefined && isForgotten(end)) {
        // The session may still exist: the next attempt, without the event id, will show it.
        session.cursor = undefined;
        return 'again';
      }
      return end?.kind === 'refused' || end?.kind === 'error'
        ? await followRefusal(consumer, session, end)
        : 'again';
    } finally {
      session.streams -= 1;
      if (hasBegun) session.openStreams -= 1;
      session.held?.noteAttempt();
    }
  }

  async function followRefusal(
    { caller, isHeard }: StreamConsumer,
    session: ServerSession,
    refusal: StreamRefusal,
  ): Promise<AttemptEnd> {
    const status = refusal.kind === 'refused' ? refusal.status : undefined;
    const next = isForGood(status) ? 'never' : 'again';
    if (status === NOT_ALLOWED) session.refusesStream = true;
    if (OF_STREAM.has(status) || !mayBeLost(session, refusal)) return next;
    if (!isHeard) {
      if (!isSessionLost(session, refusal)) return next;
      // A server without GET streams may give this answer for a session that is alive: the next call finds out.
      session.refusesStream = !streamed.has(session);
      return 'never';
    }
    // If the session was ended on another replica, together with the client's session, it needs no replacement.
    const { sessionId } = caller;
    if (sessionId !== undefined && !(await isSessionActive(sessionId))) return 'never';
    // A server without GET streams answers each of them with 404.
    if (status === 404 && streamed.has(session)) {
      await sessions.replace(caller, session);
      return 'again';
    }
    const state = await era.replaceIfLost(caller, session);
    if (state.kind === 'kept') return next;
    // Refused credentials do not become valid on their own, but a server that is down may come back.
    const error = state.kind === 'refused' ? state.error : undefined;
    return error instanceof RefusalError && isForGood(error.status) ? 'never' : 'again';
  }

  /** Resolves to undefined if the gateway itself ended the stream. */
  function readStream(
    consumer: StreamConsumer,
    session: ServerSession,
    signal: AbortSignal,
    onOpen: () => void,
  ): Promise<ExchangeEnd | StreamRefusal | undefined> {
    return new Promise((resolve, reject) => {
      let stop = () => {};
      let openRequests = 0;
      let refusal: StreamRefusal | undefined;

      async function answer(message: ServerRequest) {
        if (openRequests >= MAX_OPEN_REQUESTS) return;
        openRequests += 1;
        const caller = findCaller(consumer, session);
        // The question cannot belong to any call in flight on this replica.
        const isForOthers = isQuestion(message) && listAskable(caller, session).length === 0;
        const isPassed = isForOthers && (await replicas?.pass(caller, session, message));
        if (isPassed !== true) await answerServer(caller, session, message);
        openRequests -= 1;
      }

      function notify(message: ServerNotification) {
        const { method, params } = message;
        if (method === 'notifications/cancelled' && !session.questions.has(params.requestId))
          replicas?.cancel(consumer.caller, session, params.requestId);
        else if (method === 'notifications/message') log(params);
        else if (method === 'notifications/progress') {
          // Some servers send the progress of a request on the GET stream.
          const token = readEchoedNumber(params.progressToken);
          const asked =
            token === undefined ? undefined : session.openRequests.find(({ id }) => id === token);
          asked?.deadline?.renew();
          asked?.request.onProgress?.(params);
        } else if (!routeToSession(message, session)) consumer.notify(message);
      }

      /** A log message that does not belong to a call is for this client only if both client and server have sessions. */
      function log(params: JsonObject) {
        const [first, second] = session.openRequests;
        // If there is only one request, the message belongs to it.
        const only = second === undefined ? first?.request : undefined;
        if (only?.onLog !== undefined) only.onLog(params);
        else if (session.id !== undefined && consumer.caller.sessionId !== undefined) {
          consumer.log(params);
        }
      }

      const stopOnAbort = () => {
        stop();
        resolve(undefined);
      };
      signal.addEventListener('abort', stopOnAbort);
      const lastEventId = session.cursor?.lastId();
      const headers =
        lastEventId === undefined
          ? session.headers
          : [...session.headers, 'last-event-id', lastEventId];
      const opening = connection.stream(
        {
          caller: findCaller(consumer, session),
          cookies: session.cookies,
          onStart(answered) {
            if (!isEventStream(answered)) return;
            onOpen();
            if (lastEventId === undefined) void subscribe(consumer).catch(() => {});
          },
          openCursor() {
            session.cursor ??= createEventCursor(NO_IDS);
            return session.cursor;
          },
          onMessage(value, answered) {
            const message = readServerMessage(value);
            if (message?.kind === 'error' && !isEventStream(answered)) refusal = message;
            if (message?.kind === 'request') void answer(message);
            else if (message?.kind === 'notification') notify(message);
            return 1;
          },
          onEnd(end) {
            signal.removeEventListener('abort', stopOnAbort);
            resolve(refusal ?? end);
          },
        },
        headers,
      );
      opening.then((started) => {
        stop = started;
        if (signal.aborted) started();
      }, reject);
    });
  }

  /** Subscribes to the resources of stateless clients, on whose behalf their shared session has to subscribe. */
  async function subscribe({ uris, caller }: StreamConsumer) {
    // The stream of a session needs nothing from the stateless era.
    for (const uri of uris)
      await era.request(caller, { ...SUBSCRIBE, params: { uri } }, async () => ({}));
  }

  /** Answers a question on the stream of the session, here or on another replica. Never rejects. */
  async function answerServer(
    caller: UpstreamCaller,
    session: ServerSession,
    message: ServerRequest,
  ) {
    const response = await session.questions.answerForOneOf(message, () =>
      listAskable(caller, session),
    );
    if (response === undefined) return;
    await connection.send(caller, response, session).catch(() => {});
  }

  return {
    openStream,
    /** The stream stays the same: the session subscribes to the additional resources. */
    extend(consumer: StreamConsumer) {
      void subscribe(consumer).catch(() => {});
      return false;
    },
    answer: answerServer,
  };
}

/** The listener with the newest credentials. */
const findCaller = ({ caller }: StreamConsumer, { held }: ServerSession) => held?.caller ?? caller;

const SUBSCRIBE = {
  method: 'resources/subscribe',
  signal: new AbortController().signal,
  trace: {},
} as const;

/**
 * Some servers number the events of each connection, so an id may recur with a new event; a repeated notification does no harm.
 */
const NO_IDS = 0;

/** The server no longer has the event, or cannot resume. */
const isForgotten = (end: ExchangeEnd | StreamRefusal | undefined) =>
  end?.kind === 'refused' && [400, 404, 410].includes(end.status);

/** MCP "Listening for Messages from the Server": the status of a server that has no GET streams. */
const NOT_ALLOWED = 405;

/** Statuses about the stream alone: the server has no such streams, or one is already open (409). */
const OF_STREAM: ReadonlySet<number | undefined> = new Set([NOT_ALLOWED, 409]);

/** Not 409, since another stream of the session is still open, perhaps on a replica that is gone. */
const isForGood = (status: number | undefined) =>
  status !== undefined && status < 500 && status !== 409 && status !== 429;
