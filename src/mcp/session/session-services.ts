// The session era: its long-lived parts, `initialize`, and methods that only sessions have.

import { failParams } from '../../errors/gateway-error.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildChannelName } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import type { SessionRecord } from '../../store/store.ts';
import type { Call, Callers } from '../calls/call.ts';
import { listCapabilities } from '../calls/methods.ts';
import type { Calls } from '../calls/run-call.ts';
import type { Arguments } from '../catalog/catalog.ts';
import { readCapabilities } from '../catalog/client-requests.ts';
import type { IdentifiedCaller } from '../catalog/served-catalog.ts';
import { readParams, readString } from '../protocol/json-rpc.ts';
import { isLogSeverity, LOG_SEVERITIES } from '../protocol/methods.ts';
import { negotiateVersion } from '../protocol/revisions.ts';
import type { NotificationStreams } from '../streaming/notification-streams.ts';
import type { McpResponse } from '../streaming/response-stream.ts';
import { createKeptStreams } from './kept-streams.ts';
import { createSessionQuestions } from './questions.ts';
import { createResumptions } from './resumptions.ts';
import { createSessionStreams, type StreamOwner } from './session-streams.ts';
import { createSessions, isReplicaMessage, readStoredCapabilities } from './sessions.ts';
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
  const stored = createStoredStreams(runtime, replicas);
  const keptStreams = createKeptStreams(runtime, stored, replicas);
  return {
    calls,
    sessions,
    questions,
    replicas,
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

// Methods that only sessions have. Called only if available (mcp/protocol/methods.ts).

type SessionMethod = (
  params: Arguments,
  session: SessionRecord,
  call: Call,
  services: SessionServices,
) => Promise<void>;

/** By method; the result is always `{}`. */
export const SESSION_METHODS: Readonly<Record<string, SessionMethod>> = {
  async ping() {},
  async 'logging/setLevel'({ level }, { sessionId }, { user }, { sessions }) {
    if (!isLogSeverity(level))
      failParams(`params.level must be one of ${LOG_SEVERITIES.join(', ')}`);
    await sessions.setLogLevel(sessionId, user, level);
  },
  'resources/subscribe': changeSubscription('subscribe'),
  'resources/unsubscribe': changeSubscription('unsubscribe'),
};

/** Counts as a running call: servers may be slow. */
function changeSubscription(change: 'subscribe' | 'unsubscribe'): SessionMethod {
  return async (params, session, call, { calls, sessionStreams, findStreamOwner }) => {
    const stopCounting = calls.count(call);
    try {
      const uri = readString(params, 'uri');
      await sessionStreams?.[change](findStreamOwner(call, session), uri);
    } finally {
      stopCounting();
    }
  };
}

// §4.4: `initialize` creates a session.

/**
 * `closeSession` closes what catalogues opened for a session, on any path.
 *
 * @throws GatewayError `invalid_params`, naming the member.
 */
export async function beginSession(
  call: Call,
  { calls, sessions, sessionStreams }: SessionServices,
  closeSession: (caller: IdentifiedCaller) => void,
): Promise<McpResponse> {
  const { protocolVersion: asked, capabilities, clientInfo } = readParams(call.message.params);
  if (typeof asked !== 'string') failParams('params.protocolVersion must be a string');
  if (!isObject(capabilities)) failParams('params.capabilities must be an object');
  const protocolVersion = negotiateVersion(asked);
  const client = readCapabilities(capabilities);
  const { user, catalog } = call;
  const { view, title } = catalog;
  const caller = { user, client, clientId: calls.findClientId({ user }), view };
  const description = await catalog.describe({ ...caller, session: undefined });
  const { session, endedIds } = await sessions.create(user, {
    protocolVersion,
    clientCapabilities: JSON.stringify(client),
    ...(isObject(clientInfo) && { clientInfo: JSON.stringify(pickNameAndVersion(clientInfo)) }),
    server: catalog.name,
  });
  // As after DELETE, in the background; never rejects.
  for (const endedId of endedIds) {
    closeSession({ ...caller, session: { sessionId: endedId, protocolVersion } });
    void sessionStreams?.end(endedId);
  }
  call.sessionInfo = { sessionId: session.sessionId, expiresAt: sessions.getExpiry(session) };
  const { name, version } = calls.services.service;
  const { instructions } = description;
  const result = {
    protocolVersion,
    capabilities: listCapabilities(description, sessionStreams !== undefined, 'session'),
    serverInfo: { name, version, ...(title !== undefined && { title }) },
    ...(instructions !== undefined && { instructions }),
  };
  return { kind: 'json', answer: { result } };
}

// Only what §4.4 names, truncated: a bound on what a caller can store.
const pickNameAndVersion = ({ name, version }: JsonObject) => ({
  ...(typeof name === 'string' && { name: name.slice(0, 200) }),
  ...(typeof version === 'string' && { version: version.slice(0, 200) }),
});
