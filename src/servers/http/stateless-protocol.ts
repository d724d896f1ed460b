// §18.3: servers of 2026-07-28, where each request carries everything that it needs. Also the state that servers of both eras have.

import { isDeepStrictEqual } from 'node:util';
import {
  describeInHeaders,
  toListenParams,
  toStatelessParams,
  traceInHeaders,
} from '../../mcp/upstream/envelope.ts';
import {
  GATEWAY_CALLER,
  METHOD_NOT_FOUND,
  nameOwnSession,
  type Upstream,
  type UpstreamCaller,
  type UpstreamDescription,
  type UpstreamRequest,
} from '../../mcp/upstream/upstream.ts';
import { createNameAudience } from '../../mcp/upstream/wrap-upstream.ts';
import { Cancellation } from '../../platform/cancellation.ts';
import type { JsonObject } from '../../platform/json.ts';
import { routeToRequest, type ServerNotification } from '../messages/server-message.ts';
import { createDescriptionMemory } from '../transport/description-memory.ts';
import { readSubscriptionChange, type SubscriptionMemory } from '../transport/session-records.ts';
import type { Availability } from './availability.ts';
import { type HttpUpstreamConfig, readHttpFacts } from './http-config.ts';
import type { HttpConnection } from './http-connection.ts';
import type { ServerListeners, StreamConsumer } from './listeners.ts';
import type { QuestionStreams } from './question-streams.ts';
import {
  type CallOutcome,
  findError,
  getResult,
  isUnauthorized,
  ServerCall,
} from './server-call.ts';
import type { OpenCookies } from './session-cookies.ts';

/** The protocol of a server: streamable HTTP, or HTTP with SSE. */
export interface Protocol
  extends Pick<
    Upstream,
    'era' | 'describe' | 'peekDescription' | 'request' | 'listen' | 'endSession'
  > {
  /** @throws UpstreamError while the server is unavailable. */
  probe(): Promise<void>;
  /**
   * True if the server itself refuses the token of the caller. Checks with one of the gateway's own requests, outside clients'
   * sessions.
   *
   * @throws UpstreamError if the server does not say.
   */
  isTokenRefused(caller: UpstreamCaller): Promise<boolean>;
  close(): Promise<void>;
}

/** A connection to a server, and its state. */
export interface HttpLink {
  readonly connection: HttpConnection;
  readonly availability: Availability;
  readonly openCookies: OpenCookies;
}

/** State of a server that both eras share. */
export interface ServerKnowledge {
  /** True if the era has changed since a request was sent. */
  hasChangedEra(caller: UpstreamCaller, before: 'session' | 'stateless'): Promise<boolean>;
  readonly descriptions: ReturnType<typeof createDescriptions>;
  readonly listeners: ServerListeners;
  readonly subscriptions: SubscriptionMemory;
  readonly questionStreams: QuestionStreams;
}

// §18.4: an HTTP server's descriptions of itself: one per user if the server learns who is calling, otherwise one for all users.

export function createDescriptions(
  config: HttpUpstreamConfig,
  availability: Pick<Availability, 'onChange'>,
) {
  const memory = createDescriptionMemory();
  const isPersonal = readHttpFacts(config).personalBy !== undefined;
  const nameAudience = createNameAudience(isPersonal);
  // The probe that found the server up again has just read the common description.
  availability.onChange((isUp, _reason, wasUp) => {
    if (isPersonal && isUp && wasUp === false) memory.expireAll();
  });

  return {
    nameAudience,
    find: (caller: UpstreamCaller) => memory.find(nameAudience(caller)),
    /** Undefined if the server has been down since its last description. */
    findCurrent(caller: UpstreamCaller) {
      const audience = nameAudience(caller);
      return memory.isExpired(audience) ? undefined : memory.find(audience);
    },
    /** Records the description that the server gave to this caller. */
    note(caller: UpstreamCaller, description: UpstreamDescription) {
      const audience = nameAudience(caller);
      const known = memory.find(audience);
      if (isPersonal || caller === GATEWAY_CALLER || known === undefined) {
        memory.note(audience, description);
      } else if (known.era !== description.era) {
        // A different server has replaced this one: the gateway queries it itself.
        memory.forget(audience);
      } else if (!isDeepStrictEqual(known, description)) {
        // The server may describe itself this way to this client only. Until the gateway has checked, the common description is
        // used.
        memory.expire(audience);
      }
    },
  };
}

// The protocol of the stateless era.

/** The maximum delay of timers, since a stream has no timeout. */
const NO_TIMEOUT_MS = 2_147_483_647;
/** Some servers never answer unknown methods. */
const DISCOVER_MS = 5000;

export function speakStatelessEra(
  { timeoutMs }: HttpUpstreamConfig,
  connection: HttpConnection,
  { hasChangedEra, descriptions, listeners, subscriptions }: ServerKnowledge,
) {
  async function send(
    caller: UpstreamCaller,
    request: UpstreamRequest,
    sendAnew: Upstream['request'],
  ): Promise<JsonObject> {
    const call = new StatelessCall(caller, request, timeoutMs);
    call.notify = listeners.notify;
    const outcome = await connection.call(call);
    // The server may have been replaced by an older one.
    if (isForeign(outcome) && (await hasChangedEra(caller, 'stateless')))
      return sendAnew(caller, request);
    return getResult(outcome);
  }

  function discover(caller: UpstreamCaller, purpose: { isHandshake: true } | { isTrial: true }) {
    const call = new StatelessCall(caller, DISCOVER, Math.min(timeoutMs, DISCOVER_MS));
    return connection.call(Object.assign(call, purpose));
  }

  return {
    /** Requests the server's description of itself. @throws UpstreamError */
    discover: (caller: UpstreamCaller) => discover(caller, { isHandshake: true }),
    /** @throws UpstreamError */
    isTokenRefused: async (caller: UpstreamCaller) =>
      isUnauthorized(await discover(caller, { isTrial: true })),
    /** `sendAnew` resends a request that was not carried out because the server is no longer stateless. */
    request(caller: UpstreamCaller, request: UpstreamRequest, sendAnew: Upstream['request']) {
      const change = readSubscriptionChange(caller, request);
      if (change === undefined) return send(caller, request, sendAnew);
      const { sessionId, uri, isWanted } = change;
      // This era has no such requests: the stream of the client's session subscribes to the resource instead.
      return subscriptions.change(sessionId, uri, isWanted).then(() => ({}));
    },
    /** MCP "Subscriptions": calls `onOpen` when the stream is open. Resolves when it has ended, to whether to reopen it. */
    async openStream(consumer: StreamConsumer, signal: AbortSignal, onOpen: () => void) {
      const { caller } = consumer;
      const sessionId = nameOwnSession(caller);
      const subscribed = sessionId === undefined ? [] : await subscriptions.read(sessionId);
      const uris = [...new Set([...consumer.uris, ...subscribed])];
      const params = toListenParams(descriptions.find(caller), uris);
      if (params === undefined || signal.aborted) return 'never';
      const request = { method: 'subscriptions/listen', trace: {}, params, signal };
      const call = new StatelessCall(caller, request, NO_TIMEOUT_MS);
      call.notify = (_caller, message) => {
        if (message.method === 'notifications/subscriptions/acknowledged') onOpen();
        else consumer.notify(message);
      };
      const outcome = await connection.call(call);
      return isRefusal(outcome) ? 'never' : 'again';
    },
    /** Subscribing to more resources requires a new stream. */
    extend: () => true,
  };
}

const DISCOVER = {
  method: 'server/discover',
  params: {},
  signal: new Cancellation(),
  trace: {},
} as const;

class StatelessCall extends ServerCall {
  /** Receives a notification that does not belong to the request. */
  notify: ServerListeners['notify'] | undefined = undefined;

  constructor(caller: UpstreamCaller, request: UpstreamRequest, timeoutMs: number) {
    const headers = describeInHeaders(request).concat(traceInHeaders(request));
    super(caller, request, headers, timeoutMs);
  }

  override toParams(): JsonObject {
    return toStatelessParams(this.request, this.id, this.caller.capabilities);
  }

  protected override onNotification(message: ServerNotification): void {
    if (!routeToRequest(message, this.id, this.request)) this.notify?.(this.caller, message);
  }
}

/** Errors that 2026-07-28 sends with a 4xx status, and those of JSON-RPC that concern the request. */
const KNOWN_CODES: readonly unknown[] = [-32020, -32021, -32601, -32602, -32603];

const isForeign = (outcome: CallOutcome) =>
  outcome.kind === 'refused' &&
  [400, 404, 405].includes(outcome.status) &&
  !KNOWN_CODES.includes(findError(outcome)?.code);

const isRefusal = (outcome: CallOutcome) =>
  findError(outcome)?.code === METHOD_NOT_FOUND ||
  (outcome.kind === 'refused' && outcome.status < 500);
