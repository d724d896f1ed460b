// What is said to a server: in the era that it speaks, after the handshake that the era wants.

import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import {
  buildQuestionsChannelName,
  buildUpstreamSubscriptionsChannelName,
} from '../../store/keys.ts';
import type { HttpUpstreamConfig } from '../config/upstream-config.ts';
import { needsUser } from '../credentials/server-credentials.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import { createSessionRecords } from '../transport/session-records.ts';
import { createSubscriptionMemory } from '../transport/subscription-memory.ts';
import {
  GATEWAY_CALLER,
  nameOwnSession,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
  type UpstreamRuntime,
} from '../upstream.ts';
import { createDescriptions } from './descriptions.ts';
import { createEraMemory } from './era.ts';
import { type Audience, createServerListeners, type StreamAttempt } from './listeners.ts';
import type { HttpLink, Protocol } from './protocol-types.ts';
import { createQuestionReplicas } from './question-replicas.ts';
import { createQuestionStreams } from './question-streams.ts';
import { nameHttpServer, speakSessionEra } from './session-era.ts';
import type { SendAnew } from './session-sending.ts';
import { createSessionStream } from './session-stream.ts';
import { speakStatelessEra } from './stateless-era.ts';

export function createProtocol(
  runtime: UpstreamRuntime,
  config: HttpUpstreamConfig,
  share: ProcessShare,
  link: HttpLink,
): Protocol {
  const { keyPrefix } = runtime.config.mcp.sessions;
  const { connection, availability, judge } = link;
  const isForUsers = needsUser(config);
  const identity = nameHttpServer(config);
  const introductions = createSingleFlight<string, unknown>();
  const getReplicas = () => replicas;

  const descriptions = createDescriptions(config, availability);
  const era = createEraMemory(runtime.clock, config, connection, descriptions);
  const listeners = createServerListeners(runtime, {
    open: openStream,
    extend,
    describe: descriptions.find,
  });
  const subscriptions = createSubscriptionMemory(
    runtime.store,
    createSessionRecords(runtime, `${identity} subscriptions`),
    buildUpstreamSubscriptionsChannelName(keyPrefix, hashSha256(identity)),
    listeners.refreshSession,
  );
  const { name } = config;
  const { listen } = listeners;
  const questionStreams = createQuestionStreams(
    runtime,
    { name, listen },
    share.heldStreams,
    getReplicas,
  );
  const knowledge = { era, descriptions, listeners, subscriptions, questionStreams };
  const sessionEra = speakSessionEra(runtime, config, link, knowledge);
  const statelessEra = speakStatelessEra(config, connection, knowledge);
  const sessionStream = createSessionStream(connection, sessionEra, share, getReplicas);
  const replicas = share.hasReplicas
    ? createQuestionReplicas(runtime, buildQuestionsChannelName(keyPrefix, hashSha256(identity)), {
        findPlace: questionStreams.findPlace,
        answer: ({ caller, session }, question) =>
          void sessionStream.answer(caller, session, question),
        onRelease({ caller, session }) {
          if (session.standing === 0) listeners.retry(caller);
        },
      })
    : undefined;
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
    introductions.run(descriptions.nameAudience(caller), () =>
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

  async function openStream(audience: Audience, ...attempt: Parameters<StreamAttempt>) {
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

    listen,

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
