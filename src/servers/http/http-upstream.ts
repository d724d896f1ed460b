// §18.3: a server behind the gateway that is reached by HTTP: opens it, and sends requests in the era that it speaks.

import {
  GATEWAY_CALLER,
  nameOwnSession,
  type Upstream,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { Usage } from '../../mcp/upstream/wrap-upstream.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import {
  buildQuestionsChannelName,
  buildUpstreamSubscriptionsChannelName,
} from '../../store/keys.ts';
import type { ServerAccess } from '../credentials/credential-type.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import { createSessionRecords, createSubscriptionMemory } from '../transport/session-records.ts';
import { defineTransport } from '../transport/transport.ts';
import { createAvailability, createAvailabilityJudge } from './availability.ts';
import type { HttpLink, Protocol } from './era.ts';
import { createDescriptions, createEraMemory, speakStatelessEra } from './era.ts';
import { ConnectionError, isDownStatus, RefusalError } from './failures.ts';
import {
  addressMembers,
  buildHttp,
  completeHttp,
  type HttpUpstreamConfig,
  httpMembers,
  readHttpFacts,
} from './http-config.ts';
import { createHttpConnection } from './http-connection.ts';
import { type Audience, createServerListeners, type StreamAttempt } from './listeners.ts';
import { createQuestionStreams } from './question-streams.ts';
import { createOpenCookies } from './session-cookies.ts';
import { nameHttpServer, speakSessionEra } from './session-era.ts';
import { createSessionStream } from './session-stream.ts';
import { createSseProtocol } from './sse-protocol.ts';

export const httpTransport = defineTransport<HttpUpstreamConfig>({
  kind: 'http',
  types: { all: ['http', 'streamableHttp', 'streamable-http', 'sse'], told: '"http" or "sse"' },
  addresses: addressMembers,
  members: Object.values(httpMembers),
  words: {
    address: 'the address of a server that runs',
    server: 'a server that runs',
    whyNoOthers: ': Postern does not start this one.',
  },
  verb: 'at',
  hasProcesses: false,
  build: buildHttp,
  complete: completeHttp,
  findFacts: readHttpFacts,
  describe({ url, auth }) {
    const { host, origin } = new URL(url);
    return {
      target: host,
      auth,
      program: undefined,
      advice: `check its url, its credentials and that it runs: ${origin}.`,
      asking: undefined,
    };
  },
  open: (runtime, config, { share, credentials }) =>
    createHttpUpstream(runtime, config, credentials.openAccess(config), share),
});

export function createHttpUpstream(
  runtime: UpstreamRuntime,
  config: HttpUpstreamConfig,
  { getHeaders, noteRefusal, sign }: ServerAccess,
  share: ProcessShare,
): Upstream {
  const facts = readHttpFacts(config);
  const usage = new Usage(runtime.clock);

  const availability = createAvailability(runtime, config.name, probe);
  const judge = createAvailabilityJudge(config, availability);
  const connection = createHttpConnection(runtime, config, share, {
    // A server that answers users only gets no credentials where the gateway itself asks.
    getHeaders: facts.needsUser
      ? (caller) => (caller.user === undefined ? {} : getHeaders(caller))
      : getHeaders,
    noteRefusal,
    sign:
      sign &&
      ((caller, request) =>
        caller.user === undefined && facts.needsUser ? {} : sign(caller, request)),
    isTokenRefused: (caller) => protocol.isTokenRefused(caller),
    judge,
  });
  const link = { connection, availability, judge, openCookies: createOpenCookies(runtime, config) };
  const protocol: Protocol = PROTOCOLS[config.transport](runtime, config, share, link);

  /**
   * Where users have credentials the gateway itself has none: a refusal for that shows that the server is up. So does 429 for all,
   * as one user may have used up the gateway's rate limit. A shortage of this machine does not make a server unavailable.
   */
  async function probe() {
    try {
      await protocol.probe();
    } catch (error) {
      if (error instanceof ConnectionError && error.isOwn && availability.isUp === true) return;
      const isThere = error instanceof RefusalError && !isDownStatus(error.status);
      if (!isThere || !(facts.needsUser || error.status === 429)) throw error;
    }
  }

  // The gateway is ready only once it answers, and there may be no calls until then.
  if (config.required) availability.suspect();

  return {
    config,
    facts,
    get isUp() {
      return availability.isUp;
    },
    get era() {
      return protocol.era;
    },
    describe: (caller) =>
      usage.run(() => {
        availability.check();
        return protocol.describe(caller);
      }),
    request: (caller, request) =>
      usage.run(() => {
        availability.check();
        return protocol.request(caller, request);
      }),
    peekDescription: protocol.peekDescription,
    listen: protocol.listen,
    onStateChange: availability.onChange,
    endSession: (caller) => protocol.endSession(caller).catch(() => {}),
    async close(graceMs) {
      await usage.end(graceMs);
      availability.close();
      await protocol.close();
      await connection.close();
    },
  };
}

const PROTOCOLS = { sse: createSseProtocol, 'streamable-http': createProtocol } as const;

// Streamable HTTP: sends messages in the era that the server speaks, after the handshake of that era.

function createProtocol(
  runtime: UpstreamRuntime,
  config: HttpUpstreamConfig,
  share: ProcessShare,
  link: HttpLink,
): Protocol {
  const { keyPrefix } = runtime.config.mcp.sessions;
  const { connection, availability, judge } = link;
  const isForUsers = readHttpFacts(config).needsUser;
  const identity = nameHttpServer(config);
  const introductions = createSingleFlight<string, unknown>();

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
  const questionStreams = createQuestionStreams(
    runtime,
    { name: config.name, channel: buildQuestionsChannelName(keyPrefix, hashSha256(identity)) },
    share,
    {
      listen: listeners.listen,
      retry: listeners.retry,
      answer: (...question) => sessionStream.answer(...question),
    },
  );
  const knowledge = { era, descriptions, listeners, subscriptions, questionStreams };
  const sessionEra = speakSessionEra(runtime, config, link, knowledge);
  const statelessEra = speakStatelessEra(config, connection, knowledge);
  const sessionStream = createSessionStream(connection, sessionEra, share, questionStreams);
  availability.onChange((isUp, _reason, wasUp) => {
    if (isUp && wasUp === false) listeners.restart();
  });

  async function shakeHands(caller: UpstreamCaller) {
    try {
      const found = era.find(caller) ?? (await era.detect(caller));
      const { sessions } = sessionEra;
      if (found === 'session' && sessions.find(caller) === undefined) await sessions.open(caller);
      availability.noteUp();
    } catch (error) {
      judge.noteFailedHandshake(error);
      throw error;
    }
  }

  /** Asks the server again for its description. Single flight for callers of one audience. */
  const introduce = (caller: UpstreamCaller) =>
    introductions.run(descriptions.nameAudience(caller), () =>
      era.find(caller) === 'stateless' ? era.detect(caller) : sessionEra.introduce(caller),
    );

  const findEra = (caller: UpstreamCaller) =>
    era.find(caller) === 'stateless' ? statelessEra : sessionEra;

  const sendOnceMore: Upstream['request'] = (caller, request) =>
    findEra(caller).request(caller, request, async () => {
      throw new UpstreamError('unavailable', 'it changes its version of MCP with each answer');
    });

  async function sendFirst(caller: UpstreamCaller, request: UpstreamRequest) {
    await shakeHands(caller);
    return findEra(caller).request(caller, request, sendOnceMore);
  }

  async function openStream(audience: Audience, ...attempt: Parameters<StreamAttempt>) {
    availability.check();
    if (era.find(audience.caller) === undefined) await shakeHands(audience.caller);
    return era.find(audience.caller) === 'stateless'
      ? statelessEra.openStream(audience, ...attempt)
      : sessionStream.open(audience, ...attempt);
  }

  function extend(audience: Audience) {
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
      // Another replica may have opened the session.
      if (descriptions.findCurrent(caller) === undefined) await introduce(caller);
      const description = descriptions.find(caller);
      if (description !== undefined) return description;
      throw new UpstreamError('unavailable', 'it does not say what it is');
    },
    peekDescription: descriptions.find,

    request(caller, request) {
      const found = era.find(caller);
      if (found === undefined) return sendFirst(caller, request);
      const spoken = found === 'stateless' ? statelessEra : sessionEra;
      return spoken.request(caller, request, sendOnceMore);
    },

    listen: listeners.listen,

    async probe() {
      const found = await era.detect(GATEWAY_CALLER);
      if (found === 'session' && !isForUsers) await sessionEra.introduce(GATEWAY_CALLER);
      // The era was configured: to detect it nothing was sent.
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
      listeners.close();
      subscriptions.close();
      await sessionEra.sessions.close().catch(() => {});
    },
  };
}
