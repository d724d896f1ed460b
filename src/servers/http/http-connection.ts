// The way to one server: each request with the headers of the configuration, the credentials and the era.
import type { CredentialHeaders } from '../../mcp/upstream/connection-ports.ts';
import { type RequestHeaders, toRequestHeaders } from '../../mcp/upstream/envelope.ts';
import {
  GATEWAY_CALLER,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { createTurnEnd } from '../../platform/clock.ts';
import { writeExactJson, writeMembers } from '../../platform/exact-json.ts';
import { openServerPool } from '../../platform/outbound/outbound-network.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import { nameOwner } from '../../store/owner.ts';
import type { ServerAccess, SignRequest } from '../credentials/credential-type.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import type { Attempt, CallSender, Sending, SessionHeaders } from './attempt.ts';
import {
  type ExchangeEnd,
  type ExchangeListener,
  type ExchangeRequest,
  type ExchangeServer,
  startExchange,
} from './exchange.ts';
import { isUnauthorizedError } from './failures.ts';
import type { HttpUpstreamConfig } from './http-config.ts';
import { runCall } from './server-call.ts';

export type HttpConnection = ReturnType<typeof createHttpConnection>;

/** Under the second within which a call of a server that is gone has its answer. */
const CONNECT_TIMEOUT_MS = 900;
/** Messages without an answer must not wait for long. */
const SEND_TIMEOUT_MS = 10_000;
/** The body of what was accepted, so that its connection can be used again. */
const REST_MS = 1000;
/** The gateway may be ending. */
const DELETE_TIMEOUT_MS = 2000;

/** `judge` is told how calls went; `isTokenRefused` asks the server itself. */
export function createHttpConnection(
  { config: settings, clock, log }: UpstreamRuntime,
  config: HttpUpstreamConfig,
  { answerMemory, messagePace }: ProcessShare,
  {
    judge,
    noteRefusal,
    isTokenRefused,
    getHeaders,
    sign,
  }: ServerAccess & Pick<CallSender, 'judge' | 'isTokenRefused'>,
) {
  const url = new URL(config.url);
  const path = url.pathname + url.search;
  const pool = openServerPool(url, {
    ca: config.ca,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    outbound: settings.outbound,
    clock,
  });
  // To decode what nobody reads twice would cost more than it saves.
  const configured = [...toRequestHeaders(config.headers), 'accept-encoding', 'identity'];
  const posted = [
    ...configured,
    ...['content-type', 'application/json', 'accept', 'application/json, text/event-stream'],
  ];
  const server: ExchangeServer = {
    pool,
    runAtTurnEnd: createTurnEnd(),
    underWay: 0,
    url: config.url,
    maxBytes: settings.upstreams.maxBytes,
    hasToken:
      config.auth.type === 'none' &&
      Object.keys(config.headers).some((name) => TOKEN_NAME.test(name)),
    countAnswer: (caller, onDrop) =>
      answerMemory.open(
        caller === GATEWAY_CALLER ? { server: config.name } : { user: nameUser(caller) },
        onDrop,
      ),
    openPace: (caller) =>
      messagePace.open({ server: config.name, user: nameUser(caller), isShared: false }),
  };
  let isClosed = false;
  let lastId = 0;
  const sender: CallSender = {
    clock,
    judge,
    noteRefusal,
    isTokenRefused,
    onStray: createWarnThrottle(clock, (words: string) =>
      log.warn(`The MCP server ${config.name} is wrong: ${words}; that is dropped`, {
        server: config.name,
      }),
    ),
    call,
    reopen: ({ caller, resumeHeaders = [], cookies }, lastEventId, listener) =>
      isClosed
        ? undefined
        : stream(
            caller,
            { headers: [...resumeHeaders, 'last-event-id', lastEventId], cookies },
            listener,
          ),
  };

  /**
   * Sends a request of JSON-RPC, whose id is also its progress token, and resolves to what it is concluded to. Nothing is waited
   * for if credentials are at hand, as for nearly all calls.
   *
   * A server closes connections that were idle for long, maybe just when one is used again. What a tool did by then
   * nobody knows; everything else may be asked twice (RFC 9110 §9.2.2).
   *
   * @throws UpstreamError
   */
  function call<Result>(
    sending: Sending<Result>,
    mayBeRefused = true,
    mayBreak = sending.method !== 'tools/call',
  ) {
    const credentials = getHeaders(sending.caller);
    return credentials instanceof Promise
      ? credentials.then((given) => sendCall(sending, given, mayBeRefused, mayBreak))
      : sendCall(sending, credentials, mayBeRefused, mayBreak);
  }

  function sendCall<Result>(
    sending: Sending<Result>,
    credentials: CredentialHeaders,
    mayBeRefused: boolean,
    mayBreak: boolean,
  ): Promise<Result> {
    lastId += 1;
    const id = lastId;
    const exchange: ExchangeRequest = {
      server,
      caller: sending.caller,
      path,
      method: 'POST',
      headers: joinHeaders(posted, credentials, sending, path),
      body: writeRequest(id, sending),
      cookies: sending.cookies,
      isAnswered: true,
    };
    const attempt = { sending, id, exchange, credentials, mayBeRefused, mayBreak };
    return sign === undefined ? runCall(sender, attempt) : signCall(attempt, sign);
  }

  const signCall = <Result>(attempt: Attempt<Result>, signRequest: SignRequest) =>
    signExchange(attempt.exchange, signRequest).then(
      (exchange) => runCall(sender, { ...attempt, exchange }),
      (error: unknown) => {
        attempt.sending.onSettled?.();
        throw error;
      },
    );

  /** GET: a stream of messages, until the result is called. */
  async function stream(
    caller: UpstreamCaller,
    session: SessionHeaders,
    listener: ExchangeListener,
  ): Promise<() => void> {
    const accepted = [...configured, 'accept', 'text/event-stream'];
    const request: ExchangeRequest = {
      server,
      caller,
      path,
      method: 'GET',
      headers: joinHeaders(accepted, await getHeaders(caller), session, path),
      body: null,
      cookies: session.cookies,
      isAnswered: true,
    };
    const signed = sign === undefined ? request : await signExchange(request, sign);
    const started = startExchange(signed, listener);
    return () => started.stop();
  }

  /**
   * Opens what a server answers by 401 where it refuses the token: once more by another token, where there is one.
   *
   * @throws CredentialError where nothing may be sent any more; and what `open` throws.
   */
  async function openByToken<Result>(
    caller: UpstreamCaller,
    open: () => Promise<Result>,
    mayBeRefused = true,
  ): Promise<Result> {
    const credentials = await getHeaders(caller);
    try {
      return await open();
    } catch (error) {
      if (!isUnauthorizedError(error) || noteRefusal === undefined) throw error;
      const refusal = { status: 401, challenge: undefined } as const;
      const hasOther = await noteRefusal(caller, credentials, refusal, () =>
        isTokenRefused(caller),
      );
      if (!hasOther || !mayBeRefused) throw error;
      return openByToken(caller, open, false);
    }
  }

  return {
    call,
    stream,
    openByToken,
    /** Sends what has no answer: a notification, a response of ours, DELETE; elsewhere at the server where a path is given. */
    async send(
      caller: UpstreamCaller,
      message: object | null,
      session: SessionHeaders,
      elsewhere = path,
    ) {
      const basis = message === null ? configured : posted;
      const request: ExchangeRequest = {
        server,
        caller,
        path: elsewhere,
        method: message === null ? 'DELETE' : 'POST',
        headers: joinHeaders(basis, await getHeaders(caller), session, elsewhere),
        body: message === null ? null : writeExactJson(message),
        cookies: session.cookies,
        isAnswered: false,
      };
      const signed = sign === undefined ? request : await signExchange(request, sign);
      return new Promise<ExchangeEnd>((resolve) => {
        let cancelTimer = () => {};
        const started = startExchange(signed, {
          /** Servers written by hand forget its length: then it ends with the connection. */
          onStart(headers, status) {
            resolve({ kind: 'complete', status, headers });
            cancelTimer();
            cancelTimer = clock.after(REST_MS, () => started.stop());
          },
          onMessage: () => 1,
          onEnd(end) {
            cancelTimer();
            resolve(end);
          },
        });
        const timeoutMs = message === null ? DELETE_TIMEOUT_MS : SEND_TIMEOUT_MS;
        cancelTimer = clock.after(timeoutMs, () => {
          started.stop();
          resolve({ kind: 'failed', error: new UpstreamError('timeout', 'it did not answer') });
        });
      });
    },
    async close() {
      isClosed = true;
      pool.close();
    },
  };
}

/** `sign` sees the request as it is sent. */
async function signExchange(request: ExchangeRequest, sign: SignRequest): Promise<ExchangeRequest> {
  const { server, caller, method, path, headers, body } = request;
  const { href } = new URL(path, server.url);
  const given = { method, url: href, headers: headers.flat(), body: Buffer.from(body ?? '') };
  const added = toRequestHeaders(await sign(caller, given));
  return { ...request, headers: [...headers, added] };
}

/** A module that guards calls may have put in what JSON has no word for: then nothing is sent, and nothing stays open for it. */
function writeRequest<Result>(id: number, sending: Sending<Result>) {
  const params = sending.toParams(id);
  const { method } = sending;
  try {
    return `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${writeMembers(params)}}`;
  } catch (thrown) {
    sending.onSettled?.();
    throw thrown;
  }
}

/** Names of headers: services have names of their own beside Authorization, such as X-API-Key. */
const TOKEN_NAME = /auth|token|key|secret/i;

const nameUser = ({ user }: UpstreamCaller) => user && nameOwner(user);

function joinHeaders(
  basis: RequestHeaders,
  credentials: CredentialHeaders,
  { headers, cookies }: SessionHeaders,
  path: string,
): readonly RequestHeaders[] {
  const names = Object.keys(credentials);
  const joined =
    names.length === 0
      ? [basis, headers]
      : [withoutNames(basis, names), toRequestHeaders(credentials), headers];
  return cookies === undefined ? joined : cookies.addTo(joined, path);
}

/** Credentials win over what the configuration says. */
function withoutNames(headers: RequestHeaders, names: readonly string[]): RequestHeaders {
  const replaced = names.map((name) => name.toLowerCase());
  return headers.filter((_, at) => !replaced.includes(headers[at - (at % 2)]?.toLowerCase() ?? ''));
}
