// The way to one server: each request with the headers of the configuration, the credentials and the era.

import type { Dispatcher } from 'undici';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Log } from '../../platform/log.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import { createTurnEnd } from '../../platform/turn-end.ts';
import { nameOwner } from '../../store/owner.ts';
import type { HttpUpstreamConfig } from '../config/upstream-config.ts';
import type {
  CredentialHeaders,
  GetHeaders,
  NoteRefusal,
  TokenRefusal,
} from '../credentials/credential-type.ts';
import { type HeaderList, toHeaderList } from '../messages/envelope.ts';
import type { ServerNotification, ServerRequest } from '../messages/server-message.ts';
import type { AnswerMemory, AnswerOwner } from '../transport/answer-memory.ts';
import type { MessagePace } from '../transport/message-pace.ts';
import { GATEWAY_CALLER, type UpstreamCaller, UpstreamError } from '../upstream.ts';
import type { Judge } from './availability.ts';
import {
  type ExchangeEnd,
  type ExchangeListener,
  type ExchangeRequest,
  type Route,
  startExchange,
} from './exchange.ts';
import { ConnectionError } from './failures.ts';
import { type CallOutcome, runCall } from './server-call.ts';

export interface HttpConnection {
  /**
   * Sends a request of JSON-RPC, whose id is also its progress token.
   *
   * @throws UpstreamError
   */
  call(caller: UpstreamCaller, sending: Sending): Promise<CallOutcome>;
  /** Sends what has no answer: a notification, a response of ours, DELETE; elsewhere at the server where a path is given. */
  send(
    caller: UpstreamCaller,
    message: JsonObject | null,
    headers: HeaderList,
    path?: string,
  ): Promise<ExchangeEnd>;
  /** GET: a stream of messages, until the result is called. */
  stream(
    caller: UpstreamCaller,
    headers: HeaderList,
    listener: ExchangeListener,
  ): Promise<() => void>;
  close(): Promise<void>;
}

export interface Sending {
  readonly method: string;
  toParams(id: number): JsonObject;
  readonly headers: HeaderList;
  /** Of the GET by which an answer is read on whose stream has ended; undefined where that cannot be. */
  readonly resumeHeaders?: HeaderList;
  readonly timeoutMs: number;
  readonly signal?: CancelSignal | undefined;
  /** Its answer alone does not show that the server can be used. */
  readonly isHandshake?: true;
  onRequest?(message: ServerRequest): Promise<void>;
  onNotification?(message: ServerNotification, id: number): void;
  onAbandon?(id: number, reason: string): void;
}

export interface HttpConnectionDeps {
  readonly openPool: () => Promise<Dispatcher>;
  /** What tells the server who calls. */
  readonly getHeaders: GetHeaders;
  /** Undefined where what the server says of a token changes nothing. */
  readonly noteRefusal: NoteRefusal | undefined;
  readonly maxBytes: number;
  readonly answerMemory: AnswerMemory;
  readonly messagePace: MessagePace;
  readonly clock: Clock;
  readonly log: Log;
  /** Told how each call went: whether the server can be reached is seen by that. */
  readonly judge: Pick<Judge, 'noteOutcome' | 'noteFailure'>;
}

/** What has no answer must not wait for long. */
const SEND_TIMEOUT_MS = 10_000;
/** The gateway may be ending. */
const DELETE_TIMEOUT_MS = 2000;

export function createHttpConnection(
  config: HttpUpstreamConfig,
  deps: HttpConnectionDeps,
): HttpConnection {
  const { clock, log, maxBytes, answerMemory, messagePace } = deps;
  const { origin, pathname, search } = new URL(config.url);
  const path = pathname + search;
  const configured = toHeaderList(config.headers);
  const hasToken = config.auth.type === 'none' && Object.keys(config.headers).some(isTokenName);
  const posted = [
    ...configured,
    ...['content-type', 'application/json', 'accept', 'application/json, text/event-stream'],
  ];
  const warnOfStray = createWarnThrottle(clock, (words: string) =>
    log.warn(`The MCP server ${config.name} is wrong: ${words}; that is dropped`, {
      server: config.name,
    }),
  );
  let opening: Promise<Route> | undefined;
  let opened: Route | undefined;
  let isClosed = false;
  let lastId = 0;

  /** What was begun before the end, such as a look at the lists, must not connect anew after it. */
  async function openRoute(): Promise<Route> {
    if (isClosed) throw new UpstreamError('unavailable', 'the gateway no longer uses it');
    opening ??= deps.openPool().then(createRoute);
    opened = await opening;
    return opened;
  }

  async function prepare(
    caller: UpstreamCaller,
    basis: HeaderList,
    headers: HeaderList,
  ): Promise<string[]> {
    return joinHeaders(basis, await deps.getHeaders(caller), headers);
  }

  /** Where credentials and connections are at hand, as for nearly all calls, nothing is waited for. */
  function callOnce(
    caller: UpstreamCaller,
    sending: Sending,
    onCredentials?: OnCredentials,
  ): Promise<CallOutcome> {
    const credentials = deps.getHeaders(caller);
    if (opened === undefined || credentials instanceof Promise)
      return callLater(caller, credentials, sending, onCredentials);
    onCredentials?.(credentials);
    return sendCall(caller, opened, joinHeaders(posted, credentials, sending.headers), sending);
  }

  async function callLater(
    caller: UpstreamCaller,
    given: CredentialHeaders | Promise<CredentialHeaders>,
    sending: Sending,
    onCredentials: OnCredentials | undefined,
  ): Promise<CallOutcome> {
    const credentials = await given;
    onCredentials?.(credentials);
    const headers = joinHeaders(posted, credentials, sending.headers);
    return sendCall(caller, opened ?? (await openRoute()), headers, sending);
  }

  function sendCall(
    caller: UpstreamCaller,
    route: Route,
    headers: string[],
    sending: Sending,
  ): Promise<CallOutcome> {
    lastId += 1;
    const id = lastId;
    const { method, signal, timeoutMs, resumeHeaders } = sending;
    const message = { jsonrpc: '2.0', id, method, params: sending.toParams(id) };
    return runCall(
      { route, clock },
      {
        exchange: toExchange(caller, 'POST', headers, JSON.stringify(message)),
        id,
        timeoutMs,
        signal,
        onRequest: async (request) => sending.onRequest?.(request),
        onNotification: (notification) => sending.onNotification?.(notification, id),
        onAbandon: (reason) => sending.onAbandon?.(id, reason),
        onStray: warnOfStray,
        reopen:
          resumeHeaders &&
          ((lastEventId, listener) =>
            isClosed
              ? undefined
              : openStream(caller, [...resumeHeaders, 'last-event-id', lastEventId], listener)),
      },
    );
  }

  async function openStream(
    caller: UpstreamCaller,
    given: HeaderList,
    listener: ExchangeListener,
  ): Promise<() => void> {
    const accepted = [...configured, 'accept', 'text/event-stream'];
    const headers = await prepare(caller, accepted, given);
    const route = opened ?? (await openRoute());
    return startExchange(route, toExchange(caller, 'GET', headers, null), listener);
  }

  function callOnceOrTwice(
    caller: UpstreamCaller,
    sending: Sending,
    onCredentials?: OnCredentials,
  ): Promise<CallOutcome> {
    const calling = callOnce(caller, sending, onCredentials);
    if (!mayRepeat(sending)) return calling;
    return calling.catch((failure: unknown) => {
      if (sending.signal?.aborted || !isBroken(failure)) throw failure;
      return callOnce(caller, sending, onCredentials);
    });
  }

  /**
   * §24.4: a request that was refused for its token was not carried out: it is sent once more where there is another token. What is
   * said of that one decides.
   */
  function callWithConnection(
    caller: UpstreamCaller,
    sending: Sending,
    noteRefusal: NoteRefusal,
  ): Promise<CallOutcome> {
    let used: CredentialHeaders = {};
    const send = () =>
      callOnceOrTwice(caller, sending, (credentials) => {
        used = credentials;
      });

    async function sendAgain(outcome: CallOutcome, refusal: TokenRefusal): Promise<CallOutcome> {
      if (!(await noteRefusal(caller, used, refusal))) return outcome;
      const second = await send();
      const refusedAgain = findTokenRefusal(second);
      if (refusedAgain !== undefined) await noteRefusal(caller, used, refusedAgain);
      return second;
    }

    return send().then((outcome) => {
      const refusal = findTokenRefusal(outcome);
      return refusal === undefined ? outcome : sendAgain(outcome, refusal);
    });
  }

  const toExchange = (
    caller: UpstreamCaller,
    method: ExchangeRequest['method'],
    headers: string[],
    body: string | null,
  ): ExchangeRequest => ({
    origin,
    path,
    method,
    headers,
    body,
    maxBytes,
    isAnswered: true,
    hasToken,
    countAnswer: (onDrop) => answerMemory.open(findOwner(caller, config.name), onDrop),
    openPace: () =>
      messagePace.open({ server: config.name, user: nameUser(caller), isShared: false }),
  });

  return {
    call(caller, sending) {
      const calling =
        deps.noteRefusal === undefined
          ? callOnceOrTwice(caller, sending)
          : callWithConnection(caller, sending, deps.noteRefusal);
      // Noted before whoever waits goes on, and beside it: each promise between a server and its caller costs both.
      calling.then(
        (outcome) => deps.judge.noteOutcome(outcome, sending.isHandshake === true),
        deps.judge.noteFailure,
      );
      return calling;
    },

    async send(caller, message, given, elsewhere = path) {
      const headers = await prepare(caller, message === null ? configured : posted, given);
      const route = opened ?? (await openRoute());
      const body = message === null ? null : JSON.stringify(message);
      const method = message === null ? 'DELETE' : 'POST';
      const exchange = {
        ...toExchange(caller, method, headers, body),
        path: elsewhere,
        isAnswered: false,
      };
      return new Promise((resolve) => {
        const onMessage = () => 1;
        const onEnd = (end: ExchangeEnd) => {
          cancelTimer();
          resolve(end);
        };
        let cancelTimer = () => {};
        const stop = startExchange(route, exchange, { onMessage, onEnd });
        const timeoutMs = message === null ? DELETE_TIMEOUT_MS : SEND_TIMEOUT_MS;
        cancelTimer = clock.after(timeoutMs, () => {
          stop();
          resolve({ kind: 'failed', error: new UpstreamError('timeout', 'it did not answer') });
        });
      });
    },

    stream: openStream,

    async close() {
      isClosed = true;
      const route = await opening?.catch(() => undefined);
      await route?.dispatcher.destroy();
    },
  };
}

/** Told what goes with a request, just before it is sent. */
type OnCredentials = (credentials: CredentialHeaders) => void;

/** RFC 6750 §3.1: the token is refused, or is good for less. Any other 403 concerns what was asked for. */
function findTokenRefusal(outcome: CallOutcome): TokenRefusal | undefined {
  if (outcome.kind !== 'refused') return undefined;
  const challenge = outcome.headers['www-authenticate'];
  if (outcome.status === 401) return { status: 401, challenge };
  return outcome.status === 403 && /\binsufficient_scope\b/.test(challenge ?? '')
    ? { status: 403, challenge }
    : undefined;
}

const createRoute = (dispatcher: Dispatcher): Route => ({
  dispatcher,
  runAtTurnEnd: createTurnEnd(),
  underWay: 0,
});

/** Of a header: services have names of their own beside Authorization, such as X-API-Key. */
const isTokenName = (name: string): boolean => /auth|token|key|secret/i.test(name);

const nameUser = ({ user }: UpstreamCaller) => user && nameOwner(user);

const findOwner = (caller: UpstreamCaller, server: string): AnswerOwner =>
  caller === GATEWAY_CALLER ? { server } : { user: nameUser(caller) };

/**
 * A server closes connections that were idle for long, maybe just when one is used again. What a tool did by then
 * nobody knows; everything else may be asked twice (RFC 9110 §9.2.2).
 */
const mayRepeat = ({ method }: Sending): boolean => method !== 'tools/call';

const isBroken = (failure: unknown): boolean =>
  failure instanceof ConnectionError && failure.isBroken;

function joinHeaders(
  basis: HeaderList,
  credentials: CredentialHeaders,
  headers: HeaderList,
): string[] {
  const names = Object.keys(credentials);
  return names.length === 0
    ? [...basis, ...headers]
    : [...withoutNames(basis, names), ...toHeaderList(credentials), ...headers];
}

/** Credentials win over what the configuration says. */
function withoutNames(headers: HeaderList, names: readonly string[]): HeaderList {
  const replaced = names.map((name) => name.toLowerCase());
  return headers.filter((_, at) => !replaced.includes(headers[at - (at % 2)]?.toLowerCase() ?? ''));
}
