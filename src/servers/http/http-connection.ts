// The connection to one server: sends each request with the headers that the configuration, the credentials and the era require.
import type { CredentialHeaders } from '../../mcp/upstream/connection-ports.ts';
import type { TokenRefusal } from '../../mcp/upstream/connections.ts';
import { type RequestHeaders, toRequestHeaders } from '../../mcp/upstream/envelope.ts';
import {
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { createTurnEnd } from '../../platform/clock.ts';
import { writeExactJson, writeMembers } from '../../platform/exact-json.ts';
import type { HttpRequest } from '../../platform/http-client/http-pool.ts';
import { openServerPool } from '../../platform/outbound/outbound-network.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { ServerAccess, SignRequest } from '../credentials/credential-type.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import type { Availability } from './availability.ts';
import { Exchange, type ExchangeEnd, type ExchangeListener } from './exchange.ts';
import { ConnectionError, isUnauthorizedError, type RefusedAnswer } from './failures.ts';
import type { HttpUpstreamConfig } from './http-config.ts';
import type { CallOutcome, ServerCall } from './server-call.ts';
import type { SessionCookies } from './session-cookies.ts';

export type HttpConnection = ReturnType<typeof createHttpConnection>;

/** Less than the second within which a call to a stopped server must fail. */
const CONNECT_TIMEOUT_MS = 900;
/** A message that has no answer must not wait for long. */
const SEND_TIMEOUT_MS = 10_000;
/** Time for the rest of the body after a message was accepted, so that its connection can be reused. */
const REST_MS = 1000;
/** Kept short, since the gateway may be shutting down. */
const DELETE_TIMEOUT_MS = 2000;

interface ConnectionPorts extends ServerAccess {
  /** Records the outcome of each call, which shows whether the server can be reached. */
  readonly availability: Pick<Availability, 'state' | 'noteOutcome' | 'noteFailure'>;
  /** Queries the server itself. @throws UpstreamError */
  isTokenRefused(caller: UpstreamCaller): Promise<boolean>;
}

export function createHttpConnection(
  { config: settings, clock, log }: UpstreamRuntime,
  config: HttpUpstreamConfig,
  share: ProcessShare,
  { availability, replaceRefusedToken, isTokenRefused, getHeaders, sign }: ConnectionPorts,
) {
  const url = new URL(config.url);
  const path = url.pathname + url.search;
  const pool = openServerPool(url, {
    ca: config.ca,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    outbound: settings.outbound,
    clock,
  });
  // Decoding an answer would cost more than its compression saves.
  const configured = [...toRequestHeaders(config.headers), 'accept-encoding', 'identity'];
  const posted = [
    ...configured,
    ...['content-type', 'application/json', 'accept', 'application/json, text/event-stream'],
  ];
  const server: ConstructorParameters<typeof Exchange>[0] = {
    name: config.name,
    url: config.url,
    pool,
    share,
    sendAtTurnEnd: createTurnEnd((exchange: Exchange) => exchange.send()),
    inFlight: 0,
    maxBytes: settings.upstreams.maxBytes,
    hasToken:
      config.auth.type === 'none' &&
      Object.keys(config.headers).some((name) => TOKEN_NAME.test(name)),
  };
  let isClosed = false;
  let lastId = 0;
  const calls = {
    clock,
    onStray: createWarnThrottle(clock, (words: string) =>
      log.warn(`The MCP server ${config.name} is wrong: ${words}; that is dropped`, {
        server: config.name,
      }),
    ),
    reopen: (listener: ExchangeListener, headers: RequestHeaders) =>
      isClosed ? undefined : stream(listener, headers),
  };

  /**
   * Sends a JSON-RPC request, nearly always once, and resolves to its outcome. Sends it again if its connection broke: a server
   * closes idle connections, perhaps just when one is reused, and anything except a tool call, whose effects are unknown, may be
   * sent twice (RFC 9110 §9.2.2). Also sends it again if the server refused the token (§24.4), so that the request was not carried
   * out, and another token is available.
   *
   * @throws UpstreamError
   */
  async function call(one: ServerCall): Promise<CallOutcome> {
    const { caller } = one;
    const { method } = one.request;
    let mayBreak = method !== 'tools/call';
    let mayBeRefused = true;
    for (;;) {
      const credentials = getHeaders === undefined ? NO_HEADERS : await getHeaders(caller);
      lastId += 1;
      one.id = lastId;
      const body = `{"jsonrpc":"2.0","id":${lastId},"method":${JSON.stringify(method)},"params":${writeMembers(one.toParams())}}`;
      const joined = joinHeaders(posted, credentials, one, path);
      const headers =
        sign === undefined
          ? joined
          : await addSignature(sign, caller, { method: 'POST', path, headers: joined, body });
      let outcome: CallOutcome;
      try {
        outcome = await one.send(calls, new Exchange(server, one, path), headers, body);
      } catch (error) {
        const isBroken = error instanceof ConnectionError && error.isBroken;
        if (mayBreak && isBroken && !one.request.signal.aborted) {
          mayBreak = false;
          continue;
        }
        if (!one.isTrial) availability.noteFailure(error);
        throw error;
      }
      const refusal = outcome.kind === 'refused' ? findTokenRefusal(outcome) : undefined;
      if (refusal !== undefined && replaceRefusedToken !== undefined && !one.isTrial) {
        const isSessionReplaced = refusal.status === 401 && (await one.replaceSessionIfLost());
        // A service behind the server may have refused the token: the server itself is queried before a login is required.
        const hasOther =
          !isSessionReplaced &&
          (await replaceRefusedToken(caller, credentials, refusal, () => isTokenRefused(caller)));
        if (hasOther && mayBeRefused) {
          mayBeRefused = false;
          mayBreak = method !== 'tools/call';
          continue;
        }
      }
      // There is nearly always nothing to record.
      const isNews = outcome.kind !== 'result' || availability.state.isUp !== true;
      if (isNews && !one.isTrial) availability.noteOutcome(outcome, one.isHandshake);
      return outcome;
    }
  }

  /** The signature covers the request as it is sent. */
  async function addSignature(
    signRequest: SignRequest,
    caller: UpstreamCaller,
    { method, path: target, headers, body }: HttpRequest,
  ): Promise<HttpRequest['headers']> {
    const { href } = new URL(target, url);
    const given = { method, url: href, headers: headers.flat(), body: Buffer.from(body ?? '') };
    return [...headers, toRequestHeaders(await signRequest(caller, given))];
  }

  /** Opens a stream of messages with GET; it stays open until the returned function is called. */
  async function stream(
    listener: ExchangeListener,
    sessionHeaders: RequestHeaders,
  ): Promise<() => void> {
    const { caller, cookies } = listener;
    const accepted = [...configured, 'accept', 'text/event-stream'];
    const session = { headers: sessionHeaders, cookies };
    const headers = joinHeaders(accepted, await getHeaders?.(caller), session, path);
    const message = { method: 'GET', path, headers, body: null } as const;
    const signed = sign === undefined ? headers : await addSignature(sign, caller, message);
    const exchange = new Exchange(server, listener, path);
    exchange.start('GET', signed, null);
    return () => exchange.stop();
  }

  /**
   * Opens a stream; the server answers 401 if it refuses the token. Retries once with another token, if there is one.
   *
   * @throws CredentialError if nothing may be sent any more; and the errors of `open`.
   */
  async function openByToken<Result>(
    caller: UpstreamCaller,
    open: () => Promise<Result>,
    mayBeRefused = true,
  ): Promise<Result> {
    const credentials = (await getHeaders?.(caller)) ?? NO_HEADERS;
    try {
      return await open();
    } catch (error) {
      if (!isUnauthorizedError(error) || replaceRefusedToken === undefined) throw error;
      const refusal = { status: 401, challenge: undefined } as const;
      const hasOther = await replaceRefusedToken(caller, credentials, refusal, () =>
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
    /**
     * Sends a message that has no answer: a notification, a response of the gateway, or DELETE (`null`). `path` replaces the path
     * of the server's URL.
     */
    async send(
      caller: UpstreamCaller,
      message: object | null,
      session: SessionHeaders,
      elsewhere = path,
    ) {
      const method = message === null ? 'DELETE' : 'POST';
      const basis = message === null ? configured : posted;
      const headers = joinHeaders(basis, await getHeaders?.(caller), session, elsewhere);
      const body = message === null ? null : writeExactJson(message);
      const written = { method, path: elsewhere, headers, body } as const;
      const signed = sign === undefined ? headers : await addSignature(sign, caller, written);
      return new Promise<ExchangeEnd>((resolve) => {
        const listener: ExchangeListener = {
          caller,
          cookies: session.cookies,
          /** Some servers omit the length of the body, which then ends with the connection. */
          onStart(answered, status) {
            resolve({ kind: 'complete', status, headers: answered });
            cancelTimer();
            cancelTimer = clock.after(REST_MS, () => exchange.stop());
          },
          onEnd(end) {
            cancelTimer();
            resolve(end);
          },
        };
        const exchange = new Exchange(server, listener, elsewhere);
        const timeoutMs = message === null ? DELETE_TIMEOUT_MS : SEND_TIMEOUT_MS;
        let cancelTimer = clock.after(timeoutMs, () => {
          exchange.stop();
          resolve({ kind: 'failed', error: new UpstreamError('timeout', 'it did not answer') });
        });
        exchange.start(method, signed, body);
      });
    },
    close() {
      isClosed = true;
      pool.close();
    },
  };
}

/**
 * The headers with which a request names its session at the server, and the session's cookies; undefined if cookies are not kept.
 */
interface SessionHeaders {
  readonly headers: RequestHeaders;
  readonly cookies?: SessionCookies | undefined;
}

/** RFC 6750 §3.1: the token is refused, or its scopes are insufficient. Any other 403 concerns the request itself. */
function findTokenRefusal({ status, headers }: RefusedAnswer): TokenRefusal | undefined {
  const challenge = headers['www-authenticate'];
  if (status === 401) return { status, challenge };
  return status === 403 && /\binsufficient_scope\b/.test(challenge ?? '')
    ? { status, challenge }
    : undefined;
}

/** Header names that suggest credentials: besides Authorization, services use their own, such as X-API-Key. */
const TOKEN_NAME = /auth|token|key|secret/i;

function joinHeaders(
  basis: RequestHeaders,
  credentials: CredentialHeaders | undefined,
  { headers, cookies }: SessionHeaders,
  path: string,
): readonly RequestHeaders[] {
  const joined =
    credentials === undefined || credentials === NO_HEADERS
      ? [basis, headers]
      : [withoutNames(basis, Object.keys(credentials)), toRequestHeaders(credentials), headers];
  return cookies === undefined || cookies.kept.size === 0 ? joined : cookies.addTo(joined, path);
}

const NO_HEADERS: CredentialHeaders = {};

/** Credentials take precedence over headers of the same name in the configuration. */
function withoutNames(headers: RequestHeaders, names: readonly string[]): RequestHeaders {
  const replaced = names.map((name) => name.toLowerCase());
  return headers.filter((_, at) => !replaced.includes(headers[at - (at % 2)]?.toLowerCase() ?? ''));
}
