// §18.3: one process of a server, from its start over the first messages to its end.
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
  type UpstreamCaller,
  type UpstreamDescription,
  UpstreamError,
  type UpstreamFailure,
} from '../../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import type { JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { nameOwner } from '../../store/owner.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import { type EndReason, startChild } from './child.ts';
import type { FirstRequest, Program } from './program.ts';
import { createRpcConnection, type RpcConnection } from './rpc-connection.ts';
import type { StdioUpstreamConfig } from './stdio-config.ts';

/** A process that requests can be sent to. */
export interface RunningServer {
  readonly description: UpstreamDescription;
  readonly connection: RpcConnection;
}

interface RunHandlers {
  onReady(running: RunningServer): void;
  /** Also where it could not be started; called once. */
  onEnd(end: {
    readonly reason: EndReason;
    /** Milliseconds that requests could be sent to it; undefined where it did not come to that. */
    readonly readyMs: number | undefined;
    /** False where there was no process. */
    readonly isStarted: boolean;
  }): void;
  onNotification(message: ServerNotification): void;
}

/**
 * `key` says whose process it is, `capabilities` what the clients behind it can be asked. The result closes its input, and ends
 * it; it resolves when it and all that it started have ended.
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
  /** Of its error output, copied. */
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
        if (!isMessage) output.writeStrayLine(line);
        return count;
      },
      onErrorLine(line) {
        if (line.length > 0) lastLines.push(Buffer.from(line));
        if (lastLines.length > MAX_LINES) lastLines.shift();
        output.writeErrorLine(line);
      },
      // One line of each server is no more than its bound.
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

/** §18.3: for whom there is a process of its own. */
export interface ProcessKey {
  /** The same for all callers that share a process. */
  readonly id: string;
  /** The owner of the process (`nameOwner`); undefined where all share it, and without authentication. */
  readonly user: string | undefined;
  /** The client's session that it ends with, not by being idle. */
  readonly sessionId: string | undefined;
}

/** For the gateway itself, and for all where the process is shared. */
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
  // A client of the stateless era has none: it shares one with itself.
  return sessionId === undefined
    ? { ...owner, id: toId('client', name, clientId) }
    : { ...owner, id: toId('session', sessionId), sessionId };
}

/** Users choose their names: none can be taken for another, or for another kind. */
const toId = (...parts: readonly (string | undefined)[]) =>
  JSON.stringify(parts.map((part) => part ?? null));

/** The owner of subscriptions. */
export const findOwner = ({ user, clientId, sessionId }: UpstreamCaller): string =>
  sessionId ?? toId('client', user && nameOwner(user), clientId);

/** Values that are passed on as they were written may have line ends, which mean nothing in JSON. */
const toLine = (message: JsonObject) => `${writeExactJson(message).replace(/[\r\n]/g, ' ')}\n`;

// §18.3: handshake with a process: detects its era, and reads its description.

/** Milliseconds for `server/discover`: a server that does not know it may leave it unanswered. */
const DISCOVER_MS = 10_000;
/** Milliseconds for `initialize`: a first `npx` downloads the server. */
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
    // A newer version of the server may have come, which has no sessions any more.
    const description = await discover(connection);
    if (description === undefined) throw error;
    return description;
  }
}

/** Undefined where the server does not speak 2026-07-28. @throws UpstreamError when it has ended. */
async function discover(connection: RpcConnection): Promise<UpstreamDescription | undefined> {
  const request = { params: {}, trace: {} };
  const params = toStatelessParams(request, 0, GATEWAY_CALLER.capabilities);
  let result: JsonObject;
  try {
    result = await connection.ask('server/discover', params, DISCOVER_MS);
  } catch (error) {
    if (error instanceof UpstreamError && error.failure === 'unavailable') throw error;
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
