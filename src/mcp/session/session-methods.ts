// Methods that only sessions have, and cancellation. Where a method is not available (mcp/protocol/methods.ts), it is not asked for.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { type Link, LinkedList } from '../../platform/bounded-map.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { SessionRecord } from '../../store/store.ts';
import type { Call } from '../calls/call.ts';
import { listCapabilities, readString } from '../calls/methods.ts';
import { type McpResponse, toErrorAnswer, toResultResponse } from '../calls/outcome.ts';
import type { Arguments } from '../catalog/catalog.ts';
import { readCapabilities } from '../catalog/client-requests.ts';
import { type IdentifiedCaller, nameOwnPath } from '../catalog/served-catalog.ts';
import { isShortId, type RequestId, readParams } from '../protocol/json-rpc.ts';
import { isLogSeverity, LOG_SEVERITIES } from '../protocol/methods.ts';
import { negotiateVersion } from '../protocol/revisions.ts';
import type { McpReplicas } from './replica-message.ts';
import type { SessionServices } from './session-services.ts';

type SessionMethod = (params: Arguments, session: SessionRecord, call: Call) => Promise<void>;

/** Keyed by the method's name; all of them answer `{}`. */
type SessionMethods = Readonly<Record<string, SessionMethod>>;

export function createSessionMethods({
  calls,
  sessions,
  sessionStreams,
  findStreamOwner,
}: SessionServices): SessionMethods {
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
      await sessionStreams?.subscribe(await findStreamOwner(call, session), uri);
    }),
    'resources/unsubscribe': count(async (params, session, call) => {
      const uri = readString(params, 'uri');
      await sessionStreams?.unsubscribe(await findStreamOwner(call, session), uri);
    }),
  };
}

// §4.4: initialize, which makes a session.

/** @throws GatewayError `invalid_params` naming the member. */
type Initialize = (call: Call, params: unknown) => Promise<McpResponse>;

/** Closes what catalogues opened for a session, at whatever path it was. */
type CloseSession = (caller: IdentifiedCaller) => void;

export function createInitialize(
  { calls, sessions, sessionStreams }: SessionServices,
  closeSession: CloseSession,
): Initialize {
  const { findClientId, service } = calls;
  const { name, version } = service;

  return async function initialize(call, params) {
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

export type Cancellations = ReturnType<typeof createCancellations>;

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
