// §18.3: a server behind the gateway that is reached over HTTP: opens it, detects its era, and sends requests in that era.

import type { Era } from '../../mcp/protocol/revisions.ts';
import { NOT_STATELESS, readDiscoverResult } from '../../mcp/upstream/envelope.ts';
import {
  GATEWAY_CALLER,
  isUnanswered,
  nameOwnSession,
  throwAsUnsent,
  type Upstream,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { InFlight } from '../../mcp/upstream/wrap-upstream.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
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
import { createAvailability } from './availability.ts';
import { ConnectionError, isDownStatus, RefusalError, toRefusal } from './failures.ts';
import {
  addressMembers,
  buildHttp,
  completeHttp,
  type HttpUpstreamConfig,
  httpMembers,
  readHttpFacts,
} from './http-config.ts';
import { createHttpConnection } from './http-connection.ts';
import { createServerListeners, type StreamAttempt, type StreamConsumer } from './listeners.ts';
import { createQuestionStreams } from './question-streams.ts';
import type { CallOutcome } from './server-call.ts';
import { createOpenCookies } from './session-cookies.ts';
import { nameHttpServer, speakSessionEra } from './session-protocol.ts';
import { createSessionStream } from './session-stream.ts';
import { createSseProtocol } from './sse-protocol.ts';
import {
  createDescriptions,
  type HttpLink,
  type Protocol,
  speakStatelessEra,
} from './stateless-protocol.ts';

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
  { getHeaders, replaceRefusedToken, sign }: ServerAccess,
  share: ProcessShare,
): Upstream {
  const facts = readHttpFacts(config);
  const inFlight = new InFlight(runtime.clock);
  const availability = createAvailability(runtime, config, probe);
  const { state } = availability;
  /** A server that only responds to users receives no credentials with the gateway's own requests. */
  const hasNone = (caller: UpstreamCaller) => facts.needsUser && caller.user === undefined;
  const connection = createHttpConnection(runtime, config, share, {
    getHeaders: getHeaders && ((caller) => (hasNone(caller) ? {} : getHeaders(caller))),
    replaceRefusedToken,
    sign: sign && ((caller, request) => (hasNone(caller) ? {} : sign(caller, request))),
    isTokenRefused: (caller) => protocol.isTokenRefused(caller),
    availability,
  });
  const createProtocol = config.transport === 'sse' ? createSseProtocol : createStreamableHttp;
  const openCookies = createOpenCookies(runtime, config);
  const protocol = createProtocol(runtime, config, share, {
    connection,
    availability,
    openCookies,
  });

  /**
   * If users have credentials, the gateway itself has none: a refusal for that reason shows that the server is up. So does any 429,
   * since one user may have used up the gateway's rate limit. If this machine runs short of resources, that does not make the
   * server unavailable.
   */
  async function probe() {
    try {
      await protocol.probe();
    } catch (error) {
      if (error instanceof ConnectionError && error.isOwn && state.isUp === true) return;
      const isThere = error instanceof RefusalError && !isDownStatus(error.status);
      if (!isThere || !(facts.needsUser || error.status === 429)) throw error;
    }
  }

  // The gateway is ready only once the server responds, and there may be no calls until then.
  if (config.required) availability.suspect();

  return {
    config,
    facts,
    get isUp() {
      return state.isUp;
    },
    get era() {
      return protocol.era;
    },
    describe: (caller) =>
      inFlight.run(() => {
        if (state.isUp === false) throw availability.createDownError();
        return protocol.describe(caller);
      }),
    async request(caller, request) {
      inFlight.enter();
      try {
        if (state.isUp === false) throw availability.createDownError();
        return await protocol.request(caller, request);
      } finally {
        inFlight.leave();
      }
    },
    peekDescription: protocol.peekDescription,
    listen: protocol.listen,
    onStateChange: availability.onChange,
    endSession: (caller) => protocol.endSession(caller).catch(() => {}),
    async close(graceMs) {
      await inFlight.end(graceMs);
      availability.close();
      await protocol.close();
      connection.close();
    },
  };
}

// Streamable HTTP: sends messages in the server's era, after the handshake of that era. `server/discover` is tried once for each
// audience, and the answer is remembered.

interface AudienceEra {
  current: Era | undefined;
  askedAt: number;
}

const ASK_AGAIN_MS = 10_000;

function createStreamableHttp(
  runtime: UpstreamRuntime,
  config: HttpUpstreamConfig,
  share: ProcessShare,
  link: HttpLink,
): Protocol {
  const { clock } = runtime;
  const { keyPrefix } = runtime.config.mcp.sessions;
  const { connection, availability } = link;
  const isForUsers = readHttpFacts(config).needsUser;
  const identity = nameHttpServer(config);
  const descriptions = createDescriptions(config, availability);
  const { nameAudience } = descriptions;
  const known = createBoundedMap<string, AudienceEra>('audiences');
  const detections = createSingleFlight<string, Era>();
  const introductions = createSingleFlight<string, unknown>();
  /** The era of the server's most recent response, to any caller. */
  let last: Era | undefined;

  const listeners = createServerListeners(runtime, {
    open: openStream,
    extend: (consumer) => eras[findEra(consumer.caller) ?? 'session'].extend(consumer),
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
  const knowledge = { hasChangedEra, descriptions, listeners, subscriptions, questionStreams };
  const sessionEra = speakSessionEra(runtime, config, link, knowledge);
  const sessionStream = createSessionStream(connection, sessionEra, share, questionStreams);
  const statelessEra = speakStatelessEra(config, connection, knowledge);
  const eras = {
    session: { ...sessionEra, ...sessionStream },
    stateless: { ...statelessEra, introduce: detectEra },
  };
  availability.onChange((isUp, _reason, wasUp) => {
    if (isUp && wasUp === false) listeners.restart();
  });

  // The era of the server.

  /** The era of its responses to this caller; undefined before the first. */
  const findEra = (caller: UpstreamCaller) => known.get(nameAudience(caller))?.current;

  function findOrAdd(audience: string): AudienceEra {
    const era = known.get(audience) ?? { current: undefined, askedAt: 0 };
    known.set(audience, era);
    return era;
  }

  /** Queries the server. Single flight for callers of one audience. @throws UpstreamError */
  function detectEra(caller: UpstreamCaller) {
    const audience = nameAudience(caller);
    return detections.run(audience, async () => {
      const era = findOrAdd(audience);
      const found = config.era === 'session' ? 'session' : await askEra(caller, era);
      era.current = found;
      last = found;
      return found;
    });
  }

  async function askEra(caller: UpstreamCaller, era: AudienceEra): Promise<Era> {
    const outcome = await discover(caller);
    era.askedAt = clock.monotonic();
    const description = outcome?.kind === 'result' && readDiscoverResult(outcome.result);
    if (description) {
      descriptions.note(caller, description);
      return 'stateless';
    }
    if (config.era === 'stateless') throw new UpstreamError('unavailable', NOT_STATELESS);
    return 'session';
  }

  /** Undefined if the answer is unusable: an older server may send anything. */
  async function discover(caller: UpstreamCaller): Promise<CallOutcome | undefined> {
    try {
      const outcome = await statelessEra.discover(caller);
      if (outcome.kind === 'refused' && isFinal(outcome.status)) throw toRefusal(outcome);
      return outcome;
    } catch (error) {
      if (isUnanswered(error)) throw error;
      return undefined;
    }
  }

  /** Queries the server again, unless it was queried just now. */
  async function hasChangedEra(caller: UpstreamCaller, before: Era) {
    const { current, askedAt } = findOrAdd(nameAudience(caller));
    // Another request that was refused at the same time may already have queried the server.
    if (current !== before) return true;
    if (clock.monotonic() - askedAt < ASK_AGAIN_MS) return false;
    return (await detectEra(caller)) !== before;
  }

  async function shakeHands(caller: UpstreamCaller): Promise<Era> {
    try {
      const found = findEra(caller) ?? (await detectEra(caller));
      const { sessions } = sessionEra;
      if (found === 'session' && sessions.find(caller) === undefined) await sessions.open(caller);
      availability.noteUp();
      return found;
    } catch (error) {
      availability.noteFailedHandshake(error);
      throw error;
    }
  }

  async function openStream(consumer: StreamConsumer, ...attempt: Parameters<StreamAttempt>) {
    if (availability.state.isUp === false) throw availability.createDownError();
    const { caller } = consumer;
    return eras[findEra(caller) ?? (await shakeHands(caller))].openStream(consumer, ...attempt);
  }

  const sendOnceMore: Upstream['request'] = (caller, request) =>
    eras[findEra(caller) ?? 'session'].request(caller, request, async () => {
      throw new UpstreamError('unavailable', 'it changes its version of MCP with each answer');
    });

  return {
    get era() {
      return last;
    },

    async describe(caller) {
      if (descriptions.findCurrent(caller) === undefined) await shakeHands(caller);
      // Another replica may have opened the session: the server is queried again, once for callers of one audience.
      if (descriptions.findCurrent(caller) === undefined)
        await introductions.run(nameAudience(caller), () =>
          eras[findEra(caller) ?? 'session'].introduce(caller),
        );
      const description = descriptions.find(caller);
      if (description !== undefined) return description;
      throw new UpstreamError('unavailable', 'it does not describe itself');
    },
    peekDescription: descriptions.find,

    request(caller, request) {
      const found = findEra(caller);
      return found === undefined
        ? shakeHands(caller)
            .catch(throwAsUnsent)
            .then((era) => eras[era].request(caller, request, sendOnceMore))
        : eras[found].request(caller, request, sendOnceMore);
    },

    listen: listeners.listen,

    async probe() {
      const found = await detectEra(GATEWAY_CALLER);
      if (found === 'session' && !isForUsers) await sessionEra.introduce(GATEWAY_CALLER);
      // The era was configured, so nothing was sent to detect it. Any response shows that the server is up.
      else if (config.era === 'session') await discover(GATEWAY_CALLER);
    },

    isTokenRefused({ user, connectionId }) {
      const caller = { ...GATEWAY_CALLER, user, connectionId };
      return eras[findEra(caller) ?? 'session'].isTokenRefused(caller);
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

/** True if `initialize` would also be refused. */
const isFinal = (status: number) => [401, 403, 429].includes(status) || isDownStatus(status);
