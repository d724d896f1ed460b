// What is said to a server: in the era that it speaks, after the handshake that the era wants.
import type { HttpUpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';
import type { JsonObject } from '../../../core/json.ts';
import { hashSha256 } from '../../../core/sha256.ts';
import { buildUpstreamSubscriptionsChannelName } from '../../../core/store/keys.ts';
import { needsUser } from '../credentials/needs-user.ts';
import { createSessionRecords } from '../transport/session-records.ts';
import { createSubscriptionMemory, hashSession } from '../transport/subscription-memory.ts';
import {
  GATEWAY_CALLER,
  type UpstreamCaller,
  type UpstreamDescription,
  UpstreamError,
  type UpstreamRequest,
} from '../upstream.ts';
import { createEraMemory } from './era.ts';
import { isDownStatus, RefusalError } from './failures.ts';
import { type Audience, createListeners } from './listeners.ts';
import type { Protocol, ProtocolDeps } from './protocol-types.ts';
import { createSessionEra } from './session-era.ts';
import { createSessionStream } from './session-stream.ts';
import { createStatelessEra } from './stateless-era.ts';
import { createOpenSubscriptionStream } from './subscription-stream.ts';

const AN_HOUR_SECONDS = 3600;

export function createProtocol(config: HttpUpstreamConfig, deps: ProtocolDeps): Protocol {
  const { connection, availability, clock, store, sessionKeyPrefix } = deps;
  const isForUsers = needsUser(config);
  const { timeoutMs } = config;
  const identity = `${config.name} ${config.url}`;
  const recordDeps = {
    ...deps,
    keyPrefix: sessionKeyPrefix,
    ttlSeconds: deps.sessionTtlSeconds + AN_HOUR_SECONDS,
  };
  let description: UpstreamDescription | undefined;
  const describeLast = () => description;
  const onDescription = (told: UpstreamDescription) => {
    description = told;
  };

  const era = createEraMemory({ connection, clock, timeoutMs, onDescription });
  const listeners = createListeners({
    clock,
    open: openStream,
    extend,
    hashSession,
    describe: describeLast,
  });
  const shared = {
    connection,
    timeoutMs,
    onNotification: listeners.notify,
  };
  const subscriptions = createSubscriptionMemory({
    records: createSessionRecords(`${identity} subscriptions`, recordDeps),
    store,
    channel: buildUpstreamSubscriptionsChannelName(sessionKeyPrefix, hashSha256(identity)),
    onChange: listeners.refreshSession,
  });
  const sessionEra = createSessionEra({
    ...shared,
    records: createSessionRecords(identity, recordDeps),
    subscriptions,
    clock,
    onDescription,
    hasChangedEra: (caller) => era.hasChanged(caller, 'session'),
  });
  const statelessEra = createStatelessEra({
    ...shared,
    subscriptions,
    hasChangedEra: (caller) => era.hasChanged(caller, 'stateless'),
  });
  const sessionStream = createSessionStream({
    connection,
    sessions: sessionEra.sessions,
    isSessionActive: deps.isSessionActive,
    request: sessionEra.request,
  });
  const openSubscriptionStream = createOpenSubscriptionStream({
    connection,
    describe: describeLast,
    readSubscriptions: subscriptions.read,
  });
  availability.onChange((isUp, _reason, wasUp) => {
    if (isUp && wasUp === false) listeners.restart();
  });

  async function begin(caller: UpstreamCaller): Promise<void> {
    const found = era.current ?? (await era.detect(caller));
    if (found === 'session' && sessionEra.sessions.find(caller) === undefined) {
      await sessionEra.sessions.open(caller);
    }
  }

  /** What fails before the first request of a client could be sent concerns all of them. */
  async function shakeHands(caller: UpstreamCaller): Promise<void> {
    try {
      await begin(caller);
      availability.noteUp();
    } catch (error) {
      if (error instanceof UpstreamError && !isForUsers) availability.noteDown(error);
      throw error;
    }
  }

  const sendInEra = (caller: UpstreamCaller, request: UpstreamRequest) =>
    era.current === 'stateless'
      ? statelessEra.request(caller, request)
      : sessionEra.request(caller, request);

  async function openStream(audience: Audience, signal: AbortSignal, onOpen: () => void) {
    availability.check();
    if (era.current === undefined) await shakeHands(audience.caller);
    return era.current === 'stateless'
      ? openSubscriptionStream(audience, signal, onOpen)
      : sessionStream.open(audience, signal, onOpen);
  }

  function extend(audience: Audience): boolean {
    if (era.current === 'stateless') return true;
    void sessionStream.subscribe(audience).catch(() => {});
    return false;
  }

  return {
    get era() {
      return era.current;
    },

    async describe(caller) {
      if (description === undefined) await shakeHands(caller);
      // The session may be one that another replica began.
      if (description === undefined) await sessionEra.introduce(caller);
      if (description !== undefined) return description;
      throw new UpstreamError('unavailable', 'it does not say what it is');
    },

    async request(caller, request): Promise<JsonObject> {
      if (era.current === undefined) await shakeHands(caller);
      const result = (await sendInEra(caller, request)) ?? (await sendInEra(caller, request));
      if (result !== undefined) return result;
      throw new UpstreamError('unavailable', 'it changes its version of MCP with each answer');
    },

    listen: listeners.listen,

    /** With credentials of users the gateway itself has none: that they are missed shows that the server is there. */
    async probe() {
      try {
        const found = await era.detect(GATEWAY_CALLER);
        if (found === 'session' && !isForUsers) await sessionEra.introduce(GATEWAY_CALLER);
      } catch (error) {
        const isThere = error instanceof RefusalError && !isDownStatus(error.status);
        if (!(isForUsers && isThere)) throw error;
      }
    },

    async endSession(caller) {
      await sessionEra.sessions.end(caller);
      if (caller.sessionId !== undefined) await subscriptions.forget(caller.sessionId);
    },

    async close() {
      listeners.close();
      subscriptions.close();
      await sessionEra.sessions.close().catch(() => {});
    },
  };
}
