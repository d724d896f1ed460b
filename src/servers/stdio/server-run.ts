// §18.3: one run of a server's process: start, handshake, messages and end.
import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import {
  NO_SESSIONS,
  NOT_STATELESS,
  readDiscoverResult,
  readInitializeResult,
  toInitializeParams,
  toStatelessParams,
} from '../../mcp/upstream/envelope.ts';
import {
  GATEWAY_CALLER,
  isUnanswered,
  type UpstreamCaller,
  type UpstreamDescription,
  UpstreamError,
  type UpstreamFailure,
} from '../../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import type { JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { nameOwner } from '../../store/keys.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import { type EndReason, startChild } from './child.ts';
import type { FirstRequest, Program } from './program.ts';
import { createRpcConnection, type RpcConnection } from './rpc-connection.ts';
import type { StdioUpstreamConfig } from './stdio-config.ts';

/** A process that accepts requests. */
export interface RunningServer {
  readonly description: UpstreamDescription;
  readonly connection: RpcConnection;
}

interface RunHandlers {
  onReady(running: RunningServer): void;
  /** Called once, also if the process could not be started. */
  onEnd(end: {
    readonly reason: EndReason;
    /** Milliseconds for which the process accepted requests; undefined if it never did. */
    readonly readyMs: number | undefined;
    /** False if there was no process. */
    readonly isStarted: boolean;
  }): void;
  onNotification(message: ServerNotification): void;
}

/**
 * `key` identifies the users of the process; `capabilities` are those of its clients. The returned function closes the process's
 * input and ends it; the promise resolves when the process and its child processes have ended.
 */
export function startRun(
  program: Program,
  key: ProcessKey,
  capabilities: ClientCapabilities,
  handlers: RunHandlers,
): () => Promise<void> {
  const { config, clock, output, share } = program;
  const { user } = key;
  const isShared = key === GATEWAY_KEY;
  let readyAt: number | undefined;
  let hasEnded = false;
  /** The last lines of stderr, copied. */
  const lastLines: Buffer[] = [];

  const canAttribute = config.isolation !== 'shared';
  const connection = createRpcConnection(clock, config.timeoutMs, canAttribute, {
    write: (message) => child.write(toLine(message)),
    onNotification: handlers.onNotification,
    onStrayAnswer: program.onStrayAnswer,
    onUnattributed: program.onUnattributed,
  });

  const child = startChild(
    program,
    {
      onLine(line) {
        const { isMessage, count } = connection.receive(line);
        if (!isMessage) output.writeStrayLine(Buffer.concat(line));
        return count;
      },
      onErrorLine(line) {
        if (line.length > 0) lastLines.push(Buffer.from(line));
        if (lastLines.length > MAX_LINES) lastLines.shift();
        output.writeErrorLine(line);
      },
      // For a shared process, the maximum line length of each server bounds the memory.
      countAnswer: (onDrop) => (isShared ? undefined : share.answerMemory.open({ user }, onDrop)),
      onEnd(reason) {
        hasEnded = true;
        program.countProcess(-1);
        connection.fail(new UpstreamError(reason.failure ?? 'unavailable', reason.what));
        const readyMs = readyAt === undefined ? undefined : clock.monotonic() - readyAt;
        handlers.onEnd({
          reason: { ...reason, lastWords: lastLines.map(output.toText) },
          readyMs,
          isStarted: child.isStarted,
        });
      },
    },
    { server: config.name, user, isShared },
  );

  async function connect() {
    try {
      const description = await shakeHands(connection, program.first, capabilities, config.era);
      if (hasEnded) return;
      readyAt = clock.monotonic();
      handlers.onReady({ description, connection });
    } catch (error) {
      child.kill(explainHandshake(error));
    }
  }

  program.countProcess(1);
  void connect();
  return child.end;
}

function explainHandshake(error: unknown): EndReason {
  if (!(error instanceof UpstreamError)) return { what: 'it could not be connected to' };
  const { failure, message } = error;
  return {
    what: EXPLANATIONS[failure] ?? message,
    ...(failure === 'error' && { advice: `The server said: ${quote(message)}` }),
  };
}

const EXPLANATIONS: Readonly<Partial<Record<UpstreamFailure, string>>> = {
  unavailable: 'it does not read what is sent to it',
  timeout: 'it did not answer initialize in time',
  aborted: 'it was ended',
  overloaded: 'its answers take too much memory',
  error: 'it refused initialize',
};

const MAX_LINES = 10;

/** §18.3: identifies a process by its users. */
export interface ProcessKey {
  /** The same for all callers that share a process. */
  readonly id: string;
  /** The owner of the process (`nameOwner`); undefined if all users share it, and without authentication. */
  readonly user: string | undefined;
  /** The client's session; the process ends with it, not when idle. */
  readonly sessionId: string | undefined;
}

/** For the gateway itself, and for all callers of a shared process. */
export const GATEWAY_KEY: ProcessKey = { id: 'gateway', user: undefined, sessionId: undefined };

export function findProcessKey(
  isolation: StdioUpstreamConfig['isolation'],
  { user, clientId, sessionId }: UpstreamCaller,
): ProcessKey {
  const isGateway = user === undefined && clientId === undefined && sessionId === undefined;
  if (isolation === 'shared' || isGateway) return GATEWAY_KEY;
  const name = user && nameOwner(user);
  const owner = { user: name, sessionId: undefined };
  if (isolation === 'user') return { ...owner, id: toId('user', name) };
  // A client of the stateless era has no session: all of its calls share a process.
  return sessionId === undefined
    ? { ...owner, id: toId('client', name, clientId) }
    : { ...owner, id: toId('session', sessionId), sessionId };
}

/** Users choose their names, so the parts are encoded: no name can collide with another one, or with another kind of key. */
const toId = (...parts: readonly (string | undefined)[]) =>
  JSON.stringify(parts.map((part) => part ?? null));

/** The owner of subscriptions. */
export const findOwner = ({ user, clientId, sessionId }: UpstreamCaller): string =>
  sessionId ?? toId('client', user && nameOwner(user), clientId);

/** Values that are forwarded as written may contain line breaks, which have no meaning in JSON. */
const toLine = (message: JsonObject) => `${writeExactJson(message).replace(/[\r\n]/g, ' ')}\n`;

// §18.3: the handshake with a process: detects its era, and reads its description.

/** Timeout for `server/discover`, in milliseconds: a server that does not support it may never respond. */
const DISCOVER_MS = 10_000;
/** Timeout for `initialize`, in milliseconds: the first `npx` run downloads the server. */
const INITIALIZE_MS = 120_000;

/** @throws UpstreamError */
async function shakeHands(
  connection: RpcConnection,
  first: FirstRequest,
  capabilities: ClientCapabilities,
  demanded: UpstreamConfig['era'],
): Promise<UpstreamDescription> {
  if (demanded === 'stateless' || (demanded === 'auto' && first === 'server/discover')) {
    const description = await discover(connection);
    if (description !== undefined) return description;
    if (demanded === 'stateless') throw new UpstreamError('invalid', NOT_STATELESS);
    return initialize(connection, capabilities);
  }
  try {
    return await initialize(connection, capabilities);
  } catch (error) {
    if (!(error instanceof UpstreamError) || error.failure !== 'error') throw error;
    if (demanded === 'session') throw new UpstreamError('invalid', NO_SESSIONS);
    // The server may have been upgraded to a version without sessions.
    const description = await discover(connection);
    if (description === undefined) throw error;
    return description;
  }
}

/** Undefined if the server does not support 2026-07-28. @throws UpstreamError if it has ended. */
async function discover(connection: RpcConnection): Promise<UpstreamDescription | undefined> {
  const request = { params: {}, trace: {} };
  const params = toStatelessParams(request, 0, GATEWAY_CALLER.capabilities);
  let result: JsonObject;
  try {
    result = await connection.ask('server/discover', params, DISCOVER_MS);
  } catch (error) {
    if (isUnanswered(error)) throw error;
    return undefined;
  }
  return readDiscoverResult(result);
}

async function initialize(
  connection: RpcConnection,
  capabilities: ClientCapabilities,
): Promise<UpstreamDescription> {
  const params = toInitializeParams(capabilities);
  const result = await connection.ask('initialize', params, INITIALIZE_MS);
  const description = readInitializeResult(result);
  if (description === undefined)
    throw new UpstreamError('invalid', 'it speaks no revision of MCP that the gateway knows');
  connection.notify('notifications/initialized', {});
  return description;
}
