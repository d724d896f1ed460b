// The session era: its parts that stand for as long as the process does, and the methods that only sessions have.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { Link } from '../../platform/bounded-map.ts';
import { LinkedList } from '../../platform/bounded-map.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';

import type { Runtime } from '../../runtime/runtime.ts';
import { buildChannelName } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import type { SessionRecord } from '../../store/store.ts';
import type { Call, Callers } from '../calls/call.ts';
import { listCapabilities, readString } from '../calls/methods.ts';
import { type McpResponse, toErrorAnswer, toResultResponse } from '../calls/outcome.ts';
import type { Calls } from '../calls/run-call.ts';
import type { Arguments } from '../catalog/catalog.ts';
import { readCapabilities } from '../catalog/client-requests.ts';
import { type IdentifiedCaller, nameOwnPath } from '../catalog/served-catalog.ts';
import { isShortId, type RequestId, readParams } from '../protocol/json-rpc.ts';
import { isLogSeverity, LOG_SEVERITIES } from '../protocol/methods.ts';
import { negotiateVersion } from '../protocol/revisions.ts';
import type { NotificationStreams } from '../streaming/notification-streams.ts';
import { createKeptStreams } from './kept-streams.ts';
import { createSessionQuestions } from './questions.ts';
import { createResumptions } from './resumptions.ts';
import { createSessionStreams, type StreamOwner } from './session-streams.ts';
import {
  createSessions,
  isReplicaMessage,
  type McpReplicas,
  readStoredCapabilities,
} from './sessions.ts';
import { createStoredStreams } from './stored-streams.ts';

export type SessionServices = ReturnType<typeof openSessionServices>;

export function openSessionServices(
  runtime: Runtime,
  calls: Calls,
  notificationStreams: NotificationStreams,
  sealPerson: Callers['sealPerson'],
) {
  const { streams: hasStreams, sessions: settings } = runtime.config.mcp;
  const sessions = createSessions(runtime, sealPerson);
  const stopSweeping = sessions.startSweeping();
  const channel = buildChannelName(settings.keyPrefix);
  const replicas = createReplicas(runtime, channel, isReplicaMessage);
  const questions = createSessionQuestions(runtime, replicas);
  const stored = createStoredStreams(runtime);
  const keptStreams = createKeptStreams(runtime, stored, replicas);
  return {
    calls,
    sessions,
    replicas,
    questions,
    keptStreams,
    resumptions: createResumptions(runtime, keptStreams, stored, replicas),
    /** Undefined without `MCP_STREAMS`. */
    sessionStreams: hasStreams
      ? createSessionStreams(runtime, notificationStreams, replicas, {
          sessions,
          questions,
          keptStreams,
        })
      : undefined,
    findStreamOwner(
      { user, catalog }: Pick<Call, 'user' | 'catalog'>,
      session: SessionRecord,
    ): StreamOwner {
      const client = readStoredCapabilities(session.clientCapabilities);
      const clientId = calls.findClientId({ user });
      return {
        sessionId: session.sessionId,
        caller: { user, session, client, clientId, view: catalog.view },
        catalog,
      };
    },
    close(): void {
      stopSweeping();
      replicas.close();
    },
  };
}

// Methods that only sessions have, and cancellation. Where a method is not available (mcp/protocol/methods.ts), it is not asked for.

type SessionMethod = (params: Arguments, session: SessionRecord, call: Call) => Promise<void>;

/** Keyed by the method's name; all of them answer `{}`. */
export function createSessionMethods({
  calls,
  sessions,
  sessionStreams,
  findStreamOwner,
}: SessionServices): Readonly<Record<string, SessionMethod>> {
  /** A server is asked, and may take its time. */
  const count =
    (method: SessionMethod): SessionMethod =>
    async (params, session, call) => {
      const stopCounting = calls.count(call);
      try {
        await method(params, session, call);
      } finally {
        stopCounting();
      }
    };

  return {
    async ping() {},
    async 'logging/setLevel'({ level }, { sessionId }, { user }) {
      if (!isLogSeverity(level)) {
        fail('invalid_params', {
          details: `params.level must be one of ${LOG_SEVERITIES.join(', ')}`,
        });
      }
      await sessions.setLogLevel(sessionId, user, level);
    },
    'resources/subscribe': count(async (params, session, call) => {
      const uri = readString(params, 'uri');
      await sessionStreams?.subscribe(findStreamOwner(call, session), uri);
    }),
    'resources/unsubscribe': count(async (params, session, call) => {
      const uri = readString(params, 'uri');
      await sessionStreams?.unsubscribe(findStreamOwner(call, session), uri);
    }),
  };
}

// §4.4: initialize, which makes a session.

export function createInitialize(
  { calls, sessions, sessionStreams }: SessionServices,
  /** Closes what catalogues opened for a session, at whatever path it was. */
  closeSession: (caller: IdentifiedCaller) => void,
) {
  const { findClientId, service } = calls;
  const { name, version } = service;

  /** @throws GatewayError `invalid_params` naming the member. */
  return async function initialize(call: Call, params: unknown): Promise<McpResponse> {
    const { user, catalog } = call;
    const { client, ...session } = readInitialize(params);
    const clientId = findClientId({ user });
    const { view, title } = catalog;
    const caller = { user, client, clientId, view };
    const description = await catalog.describe({ ...caller, session: undefined });
    const server = nameOwnPath(catalog);
    const { session: created, endedIds } = await sessions.create(user, { ...session, server });
    const { sessionId } = created;
    // As after DELETE; nobody waits for it, and it never rejects.
    for (const endedId of endedIds) {
      const { protocolVersion } = session;
      closeSession({ ...caller, session: { sessionId: endedId, protocolVersion } });
      void sessionStreams?.end(endedId);
    }
    call.sessionInfo = { sessionId, expiresAt: sessions.getExpiry(created) };
    return toResultResponse({
      protocolVersion: session.protocolVersion,
      capabilities: listCapabilities(description, sessionStreams !== undefined, 'session'),
      serverInfo: { name, version, ...(title !== undefined && { title }) },
      ...(description.instructions !== undefined && { instructions: description.instructions }),
    });
  };
}

/** The session that the params ask for. */
function readInitialize(params: unknown) {
  const { protocolVersion, capabilities, clientInfo } = readParams(params);
  if (typeof protocolVersion !== 'string') {
    fail('invalid_params', { details: 'params.protocolVersion must be a string' });
  }
  if (!isObject(capabilities)) {
    fail('invalid_params', { details: 'params.capabilities must be an object' });
  }
  const client = readCapabilities(capabilities);
  return {
    client,
    protocolVersion: negotiateVersion(protocolVersion),
    clientCapabilities: JSON.stringify(client),
    ...(isObject(clientInfo) && { clientInfo: JSON.stringify(pickNameAndVersion(clientInfo)) }),
  };
}

// Only what §4.4 names, and short: a caller must not fill the store with what it likes.
const pickNameAndVersion = ({ name, version }: JsonObject) => ({
  ...(typeof name === 'string' && { name: name.slice(0, 200) }),
  ...(typeof version === 'string' && { version: version.slice(0, 200) }),
});

/** Answers with an empty result. */
export function runSessionMethod(
  method: SessionMethod,
  params: Arguments,
  session: SessionRecord,
  call: Call,
): Promise<McpResponse> {
  const { stream } = call;
  method(params, session, call).then(
    () => stream.end({ result: {} }),
    (thrown: unknown) => stream.end(toErrorAnswer(thrown)),
  );
  return stream.respond();
}

// MCP "Cancellation": calls that run, by session and request id, so that they can be cancelled from
// any replica.

interface RunningCall {
  readonly sessionId: string;
  readonly id: RequestId;
  readonly call: Call;
}

/**
 * Calls are looked for in one part of so many, chosen by the last two digits of the session's id, a UUID: so few share it that all
 * can be looked at. A Map would grow and shrink with each call (platform/bounded-map.ts).
 */
const PARTS = 256;

export function createCancellations(replicas: McpReplicas) {
  const parts = Array.from({ length: PARTS }, () => new LinkedList<RunningCall>());
  const others = new LinkedList<RunningCall>();
  const findPart = (sessionId: string) => parts[Number.parseInt(sessionId.slice(-2), 16)] ?? others;

  function cancelHere(sessionId: string, id: RequestId): boolean {
    const found = findNewest(findPart(sessionId), sessionId, id);
    found?.call.abort(new GatewayError('request_cancelled'));
    return found !== undefined;
  }

  replicas.listen((message) => {
    if (message.about === 'cancelled') cancelHere(message.sessionId, message.id);
  });

  return {
    /** Until it is removed, its client can cancel it: it is answered at once, with `request_cancelled`. */
    add: (call: Call, sessionId: string, id: RequestId): Link<RunningCall> =>
      findPart(sessionId).add({ sessionId, id, call }),
    /** Cancels the call wherever it runs; one that is over already, or never was, is no matter. */
    async cancel(sessionId: string, id: RequestId): Promise<void> {
      if (cancelHere(sessionId, id) || !isShortId(id)) return;
      await replicas.send({ about: 'cancelled', sessionId, id });
    },
  };
}

/** A client that uses an id twice at once cancels the later call. 1 and "1" are two ids (JSON-RPC). */
function findNewest(
  running: Iterable<RunningCall>,
  sessionId: string,
  id: RequestId,
): RunningCall | undefined {
  let newest: RunningCall | undefined;
  for (const one of running) if (one.id === id && one.sessionId === sessionId) newest = one;
  return newest;
}
