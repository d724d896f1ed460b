// MCP "Listening for Messages from the Server": the GET stream of a session.
import type { JsonObject } from '../../platform/json.ts';
import {
  readServerMessage,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import type { UpstreamCaller, UpstreamRequest } from '../upstream.ts';
import { createEventCursor } from './event-cursor.ts';
import type { ExchangeEnd } from './exchange.ts';
import type { HttpConnection } from './http-connection.ts';
import type { Attempt, AttemptEnd, Audience } from './listeners.ts';
import { MAX_OPEN_REQUESTS } from './server-call.ts';
import { routeToSession, type ServerSession } from './server-session.ts';
import type { ServerSessions } from './sessions.ts';

export interface SessionStreamDeps {
  readonly connection: HttpConnection;
  readonly sessions: ServerSessions;
  /** Whether a client's session goes on; never rejects. */
  isSessionActive(sessionId: string): Promise<boolean>;
  /** Sends a request of the gateway's own. */
  request(caller: UpstreamCaller, request: UpstreamRequest): Promise<unknown>;
}

export interface SessionStream {
  /** Resolves when the stream has ended: whether, and when, it is to be opened again. */
  open(audience: Audience, ...attempt: Parameters<Attempt>): Promise<AttemptEnd>;
  /** Subscribes to the resources of stateless clients, for which the session that they share has to ask. */
  subscribe(audience: Audience): Promise<void>;
}

export function createSessionStream(deps: SessionStreamDeps): SessionStream {
  const { connection, sessions } = deps;
  /** Sessions that had a stream. */
  const streamed = new WeakSet<ServerSession>();

  /** Many servers say 400, not 404, of a session that they have lost; others say so to every GET. */
  const isLost = (session: ServerSession, end: ExchangeEnd | undefined): boolean =>
    session.id !== undefined &&
    end?.kind === 'refused' &&
    (end.status === 404 || (end.status === 400 && streamed.has(session)));

  async function open(
    audience: Audience,
    signal: AbortSignal,
    onOpen: (isResumed: boolean) => void,
  ): Promise<AttemptEnd> {
    const { caller } = audience;
    const session = sessions.find(caller) ?? (await sessions.open(caller));
    if (signal.aborted) return 'never';
    session.streams += 1;
    try {
      const lastEventId = session.cursor?.lastId();
      let hasBegun = false;
      const end = await readStream(audience, session, lastEventId, signal, () => {
        hasBegun = true;
        streamed.add(session);
        onOpen(lastEventId !== undefined);
      });
      if (hasBegun) {
        const afterMs = session.cursor?.retryMs();
        return afterMs === undefined ? 'again' : { afterMs };
      }
      if (lastEventId !== undefined && isForgotten(end)) {
        // The session may still be there: without this event the next attempt shows it.
        session.cursor = undefined;
        return 'again';
      }
      if (isLost(session, end)) {
        // It may have been ended with the client's, at another replica: nobody needs one in its place.
        const { sessionId } = caller;
        if (sessionId !== undefined && !(await deps.isSessionActive(sessionId))) return 'never';
        await sessions.renew(caller, session);
        return 'again';
      }
      return end?.kind === 'refused' && isForGood(end.status) ? 'never' : 'again';
    } finally {
      session.streams -= 1;
    }
  }

  /** Undefined when it was ended from here. */
  function readStream(
    audience: Audience,
    session: ServerSession,
    lastEventId: string | undefined,
    signal: AbortSignal,
    onOpen: () => void,
  ): Promise<ExchangeEnd | undefined> {
    return new Promise((resolve, reject) => {
      let stop = () => {};
      let openRequests = 0;

      async function answer(message: ServerRequest): Promise<void> {
        if (openRequests >= MAX_OPEN_REQUESTS) return;
        openRequests += 1;
        await answerServer(message, audience, session);
        openRequests -= 1;
      }

      function notify(message: ServerNotification): void {
        if (message.method === 'notifications/message') log(message.params);
        else if (!routeProgress(message, session) && !routeToSession(message, session)) {
          audience.notify(message);
        }
      }

      /** Where it is of no call, it is the client's own only if both have sessions. */
      function log(params: JsonObject): void {
        const only = session.openRequests.findOnly();
        if (only?.onLog !== undefined) only.onLog(params);
        else if (session.id !== undefined && audience.caller.sessionId !== undefined) {
          audience.log(params);
        }
      }

      const stopOnAbort = () => {
        stop();
        resolve(undefined);
      };
      signal.addEventListener('abort', stopOnAbort);
      const listener = {
        onStart() {
          onOpen();
          if (lastEventId === undefined) void subscribe(audience).catch(() => {});
        },
        openCursor() {
          session.cursor ??= createEventCursor(NO_IDS);
          return session.cursor;
        },
        onMessage(value: unknown) {
          const message = readServerMessage(value);
          if (message?.kind === 'request') void answer(message);
          else if (message?.kind === 'notification') notify(message);
          return 1;
        },
        onEnd(end: ExchangeEnd) {
          signal.removeEventListener('abort', stopOnAbort);
          resolve(end);
        },
      };
      const headers =
        lastEventId === undefined
          ? session.headers
          : [...session.headers, 'last-event-id', lastEventId];
      connection.stream(audience.caller, headers, listener, session.cookies).then((started) => {
        stop = started;
        if (signal.aborted) started();
      }, reject);
    });
  }

  async function subscribe({ uris, caller }: Audience): Promise<void> {
    for (const uri of uris) await deps.request(caller, { ...SUBSCRIBE, params: { uri } });
  }

  /** Never rejects. */
  async function answerServer(
    message: ServerRequest,
    audience: Audience,
    session: ServerSession,
  ): Promise<void> {
    const asked = session.openRequests.findOnly();
    const response = await session.questions.answer(message, asked?.onRequest?.bind(asked));
    if (response === undefined) return;
    const { headers, cookies } = session;
    await connection.send(audience.caller, response, headers, cookies).catch(() => {});
  }

  return { open, subscribe };
}

const SUBSCRIBE = {
  method: 'resources/subscribe',
  signal: new AbortController().signal,
  trace: {},
  logLevel: undefined,
} as const;

/** Some servers number the events of each connection: what they say then is new, and what is told twice does no harm. */
const NO_IDS = 0;

/** The server no longer has the event, or cannot go on after one. */
const isForgotten = (end: ExchangeEnd | undefined): boolean =>
  end?.kind === 'refused' && [400, 404, 410].includes(end.status);

/** 409: another stream of the session still stands, maybe at a replica that is gone. */
const isForGood = (status: number): boolean => status < 500 && status !== 409 && status !== 429;

/** Some servers say on this stream what belongs to a request. */
function routeProgress({ method, params }: ServerNotification, session: ServerSession): boolean {
  if (method !== 'notifications/progress') return false;
  const { progressToken: token } = params;
  if (typeof token === 'number') session.openRequests.find(token)?.onProgress?.(params);
  return true;
}
