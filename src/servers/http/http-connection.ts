// The way to one server: each request with the headers of the configuration, the credentials and the era.
import type { IncomingHttpHeaders } from 'node:http';
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
import type { AnswerOwner, ProcessShare } from '../transport/process-share.ts';
import {
  Attempt,
  type CallSender,
  type Sending,
  type SessionHeaders,
  type Tried,
  toFirstTry,
} from './attempt.ts';
import {
  type ExchangeEnd,
  type ExchangeListener,
  type ExchangeRequest,
  type ExchangeServer,
  type Route,
  startExchange,
} from './exchange.ts';
import { isUnauthorizedError } from './failures.ts';
import type { HttpUpstreamConfig } from './http-config.ts';
import { runCall } from './server-call.ts';
import type { SessionCookies } from './session-cookies.ts';

export interface HttpConnection {
  /**
   * Sends a request of JSON-RPC, whose id is also its progress token, and resolves to what it is concluded to.
   *
   * @throws UpstreamError
   */
  call<Result>(caller: UpstreamCaller, sending: Sending<Result>): Promise<Result>;
  /** Sends what has no answer: a notification, a response of ours, DELETE; elsewhere at the server where a path is given. */
  send(
    caller: UpstreamCaller,
    message: object | null,
    session: SessionHeaders,
    path?: string,
  ): Promise<ExchangeEnd>;
  /** GET: a stream of messages, until the result is called. */
  stream(
    caller: UpstreamCaller,
    session: SessionHeaders,
    listener: ExchangeListener,
  ): Promise<() => void>;
  /**
   * Opens what a server answers by 401 where it refuses the token: once more by another token, where there is one.
   *
   * @throws CredentialError where nothing may be sent any more; and what `open` throws.
   */
  openByToken<Result>(caller: UpstreamCaller, open: () => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

/** Tells a server who calls, and the gateway how that went. */
export interface CallAccess extends ServerAccess, Pick<CallSender, 'judge' | 'isTokenRefused'> {}

/** Under the second within which a call of a server that is gone has its answer. */
const CONNECT_TIMEOUT_MS = 900;
/** Messages without an answer must not wait for long. */
const SEND_TIMEOUT_MS = 10_000;
/** The body of what was accepted, so that its connection can be used again. */
const REST_MS = 1000;
/** The gateway may be ending. */
const DELETE_TIMEOUT_MS = 2000;

export function createHttpConnection(
  { config: settings, clock, log }: Pick<UpstreamRuntime, 'config' | 'clock' | 'log'>,
  config: HttpUpstreamConfig,
  { answerMemory, messagePace }: ProcessShare,
  { judge, noteRefusal, isTokenRefused, getHeaders, sign }: CallAccess,
): HttpConnection {
  const { maxBytes } = settings.upstreams;
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
  const route: Route = { pool, runAtTurnEnd: createTurnEnd(), underWay: 0 };
  let isClosed = false;
  let lastId = 0;

  async function prepare(
    caller: UpstreamCaller,
    basis: RequestHeaders,
    headers: RequestHeaders,
  ): Promise<readonly RequestHeaders[]> {
    return joinHeaders(basis, await getHeaders(caller), headers);
  }

  /** Nothing is waited for if credentials are at hand, as for nearly all calls. */
  function tryCall<Result>(tried: Tried<Result>): Promise<Result> {
    const credentials = getHeaders(tried.caller);
    return credentials instanceof Promise
      ? credentials.then((given) => sendCall(tried, given))
      : sendCall(tried, credentials);
  }

  function sendCall<Result>(tried: Tried<Result>, credentials: CredentialHeaders): Promise<Result> {
    lastId += 1;
    const id = lastId;
    const { caller, sending } = tried;
    const headers = joinHeaders(posted, credentials, sending.headers);
    const exchange = toExchange(
      caller,
      'POST',
      headers,
      writeRequest(id, sending),
      sending.cookies,
    );
    if (sign !== undefined) return sendSigned(tried, { id, exchange, credentials }, sign);
    return runCall(route, clock, new Attempt(sender, tried, { id, exchange, credentials }));
  }

  async function sendSigned<Result>(
    tried: Tried<Result>,
    sent: ConstructorParameters<typeof Attempt>[2],
    signRequest: SignRequest,
  ): Promise<Result> {
    let exchange: ExchangeRequest;
    try {
      exchange = await signExchange(sent.exchange, signRequest);
    } catch (error) {
      tried.sending.onSettled?.();
      throw error;
    }
    return runCall(route, clock, new Attempt(sender, tried, { ...sent, exchange }));
  }

  const sender: CallSender = {
    judge,
    noteRefusal,
    isTokenRefused,
    onStray: warnOfStray,
    tryCall,
    reopen: (caller, session, listener) =>
      isClosed ? undefined : openStream(caller, session, listener),
  };

  async function openStream(
    caller: UpstreamCaller,
    { headers: given, cookies }: SessionHeaders,
    listener: ExchangeListener,
  ): Promise<() => void> {
    const accepted = [...configured, 'accept', 'text/event-stream'];
    const headers = await prepare(caller, accepted, given);
    const request = toExchange(caller, 'GET', headers, null, cookies);
    const signed = sign === undefined ? request : await signExchange(request, sign);
    const started = startExchange(route, signed, listener);
    return () => started.stop();
  }

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

  const server: ExchangeServer = {
    url: config.url,
    maxBytes,
    hasToken,
    countAnswer: (caller, onDrop) => answerMemory.open(findOwner(caller, config.name), onDrop),
    openPace: (caller) =>
      messagePace.open({ server: config.name, user: nameUser(caller), isShared: false }),
  };

  const toExchange = (
    caller: UpstreamCaller,
    method: ExchangeRequest['method'],
    headers: readonly RequestHeaders[],
    body: string | null,
    cookies: SessionCookies | undefined,
    to = path,
  ): ExchangeRequest => ({
    server,
    caller,
    path: to,
    method,
    headers: cookies === undefined ? headers : cookies.addTo(headers, to),
    body,
    cookies,
    isAnswered: true,
  });

  return {
    call: (caller, sending) => tryCall(toFirstTry(caller, sending)),

    async send(caller, message, { headers: given, cookies }, elsewhere) {
      const headers = await prepare(caller, message === null ? configured : posted, given);
      const body = message === null ? null : writeExactJson(message);
      const method = message === null ? 'DELETE' : 'POST';
      const unsigned = toExchange(caller, method, headers, body, cookies, elsewhere);
      const signed = sign === undefined ? unsigned : await signExchange(unsigned, sign);
      const exchange = { ...signed, isAnswered: false };
      return new Promise((resolve) => {
        const onMessage = () => 1;
        /** Servers written by hand forget its length: then it ends with the connection. */
        const onStart = (answered: IncomingHttpHeaders, status: number) => {
          resolve({ kind: 'complete', status, headers: answered });
          cancelTimer();
          cancelTimer = clock.after(REST_MS, () => started.stop());
        };
        const onEnd = (end: ExchangeEnd) => {
          cancelTimer();
          resolve(end);
        };
        let cancelTimer = () => {};
        const started = startExchange(route, exchange, { onStart, onMessage, onEnd });
        const timeoutMs = message === null ? DELETE_TIMEOUT_MS : SEND_TIMEOUT_MS;
        cancelTimer = clock.after(timeoutMs, () => {
          started.stop();
          resolve({ kind: 'failed', error: new UpstreamError('timeout', 'it did not answer') });
        });
      });
    },

    stream: openStream,
    openByToken: (caller, open) => openByToken(caller, open),

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
function writeRequest<Result>(id: number, sending: Sending<Result>): string {
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
const isTokenName = (name: string): boolean => /auth|token|key|secret/i.test(name);

const nameUser = ({ user }: UpstreamCaller) => user && nameOwner(user);

const findOwner = (caller: UpstreamCaller, server: string): AnswerOwner =>
  caller === GATEWAY_CALLER ? { server } : { user: nameUser(caller) };

function joinHeaders(
  basis: RequestHeaders,
  credentials: CredentialHeaders,
  headers: RequestHeaders,
): readonly RequestHeaders[] {
  const names = Object.keys(credentials);
  return names.length === 0
    ? [basis, headers]
    : [withoutNames(basis, names), toRequestHeaders(credentials), headers];
}

/** Credentials win over what the configuration says. */
function withoutNames(headers: RequestHeaders, names: readonly string[]): RequestHeaders {
  const replaced = names.map((name) => name.toLowerCase());
  return headers.filter((_, at) => !replaced.includes(headers[at - (at % 2)]?.toLowerCase() ?? ''));
}
