// What is said to a server: in the era that it speaks, after the handshake that the era wants.

import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import {
  buildQuestionsChannelName,
  buildUpstreamSubscriptionsChannelName,
} from '../../store/keys.ts';
import type { HttpUpstreamConfig } from '../config/upstream-config.ts';
import { knowsUsers, needsUser } from '../credentials/server-credentials.ts';
import { createNameAudience } from '../transport/description-memory.ts';
import { createOptionalRecords, createSessionRecords } from '../transport/session-records.ts';
import { createSubscriptionMemory, hashSession } from '../transport/subscription-memory.ts';
import {
  GATEWAY_CALLER,
  nameOwnSession,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
} from '../upstream.ts';
import { createDescriptions } from './descriptions.ts';
import { createEraMemory } from './era.ts';
import { type Attempt, type Audience, createListeners } from './listeners.ts';
import type { Protocol, ProtocolDeps } from './protocol-types.ts';
import { createQuestionReplicas } from './question-replicas.ts';
import { createQuestionStreams } from './question-streams.ts';
import { createSessionEra } from './session-era.ts';
import type { SendAnew } from './session-sending.ts';
import { createSessionStream } from './session-stream.ts';
import { createStatelessEra } from './stateless-era.ts';

const AN_HOUR_SECONDS = 3600;

export function createProtocol(config: HttpUpstreamConfig, deps: ProtocolDeps): Protocol {
  const { connection, availability, judge, clock, store, sessionKeyPrefix } = deps;
  const isForUsers = needsUser(config);
  const { timeoutMs } = config;
  const identity = `${config.name} ${config.url}`;
  const recordDeps = {
    ...deps,
    keyPrefix: sessionKeyPrefix,
    ttlSeconds: deps.sessionTtlSeconds + AN_HOUR_SECONDS,
  };
  const nameAudience = createNameAudience(knowsUsers(config));
  const descriptions = createDescriptions(config, availability);
  const introductions = createSingleFlight<string, unknown>();
  const onDescription = descriptions.note;

  const era = createEraMemory({
    connection,
    clock,
    timeoutMs,
    nameAudience,
    demanded: config.era,
    onDescription,
  });
  const listeners = createListeners({
    clock,
    log: deps.log,
    open: openStream,
    extend,
    hashSession,
    describe: descriptions.find,
  });
  const questionStreams = createQuestionStreams({
    ...deps,
    name: config.name,
    listen: listeners.listen,
    getReplicas: () => replicas,
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
    records: createOptionalRecords(createSessionRecords(identity, recordDeps), deps.log),
    subscriptions,
    questionStreams,
    openCookies: deps.openCookies,
    clock,
    demanded: config.era,
    onDescription,
    hasChangedEra: (caller) => era.hasChanged(caller, 'session'),
    onReplaced: listeners.move,
  });
  const statelessEra = createStatelessEra({
    ...shared,
    subscriptions,
    describe: descriptions.find,
    hasChangedEra: (caller) => era.hasChanged(caller, 'stateless'),
  });
  const sessionStream = createSessionStream({
    connection,
    sessions: sessionEra.sessions,
    findSessionState: sessionEra.findSessionState,
    isSessionActive: deps.isSessionActive,
    getReplicas: () => replicas,
    // Of the other era nothing is asked for the stream of a session.
    request: (caller, request) => sessionEra.request(caller, request, async () => ({})),
  });
  const replicas =
    deps.metrics &&
    createQuestionReplicas({
      ...deps,
      metrics: deps.metrics,
      channel: buildQuestionsChannelName(sessionKeyPrefix, hashSha256(identity)),
      findPlace: questionStreams.findPlace,
      answer: ({ caller, session }, question) =>
        void sessionStream.answer(caller, session, question),
      onRelease({ caller, session }) {
        if (session.standing === 0) listeners.retry(caller);
      },
    });
  availability.onChange((isUp, _reason, wasUp) => {
    if (isUp && wasUp === false) listeners.restart();
  });

  async function begin(caller: UpstreamCaller): Promise<void> {
    const found = era.find(caller) ?? (await era.detect(caller));
    if (found === 'session' && sessionEra.sessions.find(caller) === undefined) {
      await sessionEra.sessions.open(caller);
    }
  }

  async function shakeHands(caller: UpstreamCaller): Promise<void> {
    try {
      await begin(caller);
      availability.noteUp();
    } catch (error) {
      judge.noteFailedHandshake(error);
      throw error;
    }
  }

  /** Hears again what the server says; once for all who are told the same, and ask at the same time. */
  const introduce = (caller: UpstreamCaller): Promise<unknown> =>
    introductions.run(nameAudience(caller), () =>
      era.find(caller) === 'stateless' ? era.detect(caller) : sessionEra.introduce(caller),
    );

  const sendInEra = (
    caller: UpstreamCaller,
    request: UpstreamRequest,
    sendAnew: SendAnew,
  ): Promise<JsonObject> =>
    era.find(caller) === 'stateless'
      ? statelessEra.request(caller, request, sendAnew)
      : sessionEra.request(caller, request, sendAnew);

  const sendOnceMore: SendAnew = (caller, request) => sendInEra(caller, request, failChanging);

  async function sendFirst(caller: UpstreamCaller, request: UpstreamRequest): Promise<JsonObject> {
    await shakeHands(caller);
    return sendInEra(caller, request, sendOnceMore);
  }

  async function openStream(audience: Audience, ...attempt: Parameters<Attempt>) {
    availability.check();
    if (era.find(audience.caller) === undefined) await shakeHands(audience.caller);
    return era.find(audience.caller) === 'stateless'
      ? statelessEra.openStream(audience, ...attempt)
      : sessionStream.open(audience, ...attempt);
  }

  function extend(audience: Audience): boolean {
    if (era.find(audience.caller) === 'stateless') return true;
    void sessionStream.subscribe(audience).catch(() => {});
    return false;
  }

  return {
    get era() {
      return era.last;
    },

    async describe(caller) {
      if (descriptions.findCurrent(caller) === undefined) await shakeHands(caller);
      // The session may be one that another replica began.
      if (descriptions.findCurrent(caller) === undefined) await introduce(caller);
      const description = descriptions.find(caller);
      if (description !== undefined) return description;
      throw new UpstreamError('unavailable', 'it does not say what it is');
    },
    peekDescription: descriptions.find,

    request: (caller, request) =>
      era.find(caller) === undefined
        ? sendFirst(caller, request)
        : sendInEra(caller, request, sendOnceMore),

    listen: listeners.listen,

    async probe() {
      const found = await era.detect(GATEWAY_CALLER);
      if (found === 'session' && !isForUsers) await sessionEra.introduce(GATEWAY_CALLER);
      // To find out the era nothing was sent.
      else if (config.era === 'session') await era.reach(GATEWAY_CALLER);
    },

    isTokenRefused({ user, connectionId }) {
      const caller = { ...GATEWAY_CALLER, user, connectionId };
      return era.find(caller) === 'stateless'
        ? era.isTokenRefused(caller)
        : sessionEra.isTokenRefused(caller);
    },

    async endSession(caller) {
      questionStreams.end(caller);
      await sessionEra.sessions.end(caller);
      const sessionId = nameOwnSession(caller);
      if (sessionId !== undefined) await subscriptions.forget(sessionId);
    },

    async close() {
      questionStreams.close();
      replicas?.close();
      listeners.close();
      subscriptions.close();
      await sessionEra.sessions.close().catch(() => {});
    },
  };
}

async function failChanging(): Promise<never> {
  throw new UpstreamError('unavailable', 'it changes its version of MCP with each answer');
}
