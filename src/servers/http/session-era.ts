// Servers of 2024-11-05 to 2025-11-25: requests within a session that begins with `initialize`.

import {
  NO_SESSIONS,
  readInitializeResult,
  toInitializeParams,
} from '../../mcp/upstream/envelope.ts';
import {
  nameOwnSession,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import type { JsonObject } from '../../platform/json.ts';
import { createSessionRecords } from '../transport/session-records.ts';
import {
  type CallOutcome,
  findError,
  getResult,
  isUnauthorized,
  type Sending,
  toOutcome,
} from './attempt.ts';
import type { HttpLink, ServerKnowledge } from './era.ts';
import { isUnauthorizedError } from './failures.ts';
import type { HttpUpstreamConfig } from './http-config.ts';
import { ServerSession } from './server-session.ts';
import { createSendInSession } from './session-sending.ts';
import { createFindSessionState, createServerSessions } from './sessions.ts';

export type SessionEra = ReturnType<typeof speakSessionEra>;

/** Tells records of its sessions from those of other servers. */
export const nameHttpServer = ({ name, url }: HttpUpstreamConfig): string => `${name} ${url}`;

const REFUSAL = 'it refuses to begin (initialize)';
/** Longer than a server should take to begin; a first call waits for it. */
const HANDSHAKE_MS = 15_000;
const PING_MS = 5000;
/** MCP "Session Management": visible ASCII; anything else could not be sent back. */
const USABLE_ID = /^[\x21-\x7E]{1,1024}$/;

export function speakSessionEra(
  runtime: UpstreamRuntime,
  config: HttpUpstreamConfig,
  { connection, openCookies }: HttpLink,
  knowledge: ServerKnowledge,
) {
  const { clock } = runtime;
  const { timeoutMs } = config;
  const { descriptions, listeners, subscriptions } = knowledge;
  const handshakeMs = Math.min(timeoutMs, HANDSHAKE_MS);
  const records = createSessionRecords(runtime, nameHttpServer(config), true);
  const sessions = createServerSessions(clock, records, openCookies, {
    initialize,
    terminate,
    restore,
  });
  const findSessionState = createFindSessionState(clock, ping, sessions);

  async function initialize(
    caller: UpstreamCaller,
    isTrial?: Sending<unknown>['isTrial'],
  ): Promise<ServerSession> {
    const cookies = openCookies();
    const outcome = await connection.call({
      caller,
      method: 'initialize',
      toParams: () => toInitializeParams(caller.capabilities),
      headers: [],
      cookies,
      timeoutMs: handshakeMs,
      isHandshake: true,
      ...(isTrial && { isTrial }),
      conclude: toOutcome,
    });
    if (findError(outcome) !== undefined) {
      const isDemanded = config.era === 'session';
      throw new UpstreamError('unavailable', isDemanded ? NO_SESSIONS : REFUSAL);
    }
    const description = readInitializeResult(getResult(outcome));
    if (description === undefined)
      throw new UpstreamError('unavailable', 'it speaks no version of MCP that is known here');
    const id = outcome.kind === 'result' ? outcome.headers['mcp-session-id'] : undefined;
    const session = new ServerSession(
      typeof id === 'string' && USABLE_ID.test(id) ? id : undefined,
      description.protocolVersion,
      clock.monotonic(),
      { cookies },
    );
    const initialized = { jsonrpc: '2.0', method: 'notifications/initialized', params: {} };
    await connection.send(caller, initialized, session);
    descriptions.note(caller, description);
    return session;
  }

  async function terminate(caller: UpstreamCaller, session: ServerSession): Promise<void> {
    if (session.id === undefined) return;
    // A server may refuse, or be gone: its sessions end by themselves then.
    await connection.send(caller, null, session).catch(() => {});
  }

  /** Repeats the client's subscriptions and log level of the session before. Resources that the server no longer has are skipped. */
  async function restore(
    caller: UpstreamCaller,
    session: ServerSession,
    lost: ServerSession,
  ): Promise<void> {
    listeners.move(caller, lost.standing > 0);
    // The replica that opened it has asked.
    if (session.isFromStore) return;
    if (lost.logLevel !== undefined) void setLogLevel(caller, session, lost.logLevel);
    const sessionId = nameOwnSession(caller);
    const uris = sessionId === undefined ? [] : await subscriptions.read(sessionId).catch(() => []);
    for (const uri of uris)
      await ask(caller, session, 'resources/subscribe', { uri }).catch(() => {});
  }

  async function setLogLevel(
    caller: UpstreamCaller,
    session: ServerSession,
    level: ServerSession['logLevel'],
  ): Promise<void> {
    session.logLevel = level;
    // A server without logging refuses it, or never answers: the request itself must not fail by that.
    await ask(caller, session, 'logging/setLevel', { level }).catch(() => {});
  }

  /** Sends a request of the gateway's own. */
  const ask = (
    caller: UpstreamCaller,
    { headers, cookies }: ServerSession,
    method: string,
    params: JsonObject,
    how: Pick<Sending<unknown>, 'timeoutMs' | 'isTrial'> = { timeoutMs: handshakeMs },
  ): Promise<CallOutcome> =>
    connection.call({
      caller,
      method,
      toParams: () => params,
      headers,
      cookies,
      conclude: toOutcome,
      ...how,
    });

  /** Nothing follows from how it ends. @throws UpstreamError */
  function ping(caller: UpstreamCaller, session: ServerSession): Promise<CallOutcome> {
    const how = { timeoutMs: Math.min(timeoutMs, PING_MS), isTrial: true } as const;
    return ask(caller, session, 'ping', {}, how);
  }

  return {
    sessions,
    findSessionState,
    request: createSendInSession(timeoutMs, connection, knowledge, {
      sessions,
      findSessionState,
      setLogLevel,
    }),
    /** Opens a session that is ended at once, only to hear what the server says. */
    introduce: async (caller: UpstreamCaller) => terminate(caller, await initialize(caller)),
    /** Uses a session that is ended at once. @throws UpstreamError */
    async isTokenRefused(caller: UpstreamCaller) {
      try {
        const session = await initialize(caller, true);
        // Some let anybody begin.
        const outcome = await ping(caller, session).finally(() => terminate(caller, session));
        return isUnauthorized(outcome);
      } catch (error) {
        if (isUnauthorizedError(error)) return true;
        throw error;
      }
    },
  };
}
