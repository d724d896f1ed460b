// §18.3: a server behind the gateway that is reached by streamable HTTP, of whichever era.
import type { Clock } from '../../../core/clock.ts';
import type { OutboundConfig } from '../../../core/config/groups/outbound.ts';
import type { HttpUpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { Log } from '../../../core/log.ts';
import { openServerPool } from '../../../core/outbound/server-pool.ts';
import type { Seal } from '../../../core/seal/seal.ts';
import type { Store } from '../../../core/store/store.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  type UpstreamDescription,
  UpstreamError,
  type UpstreamRequest,
} from '../upstream.ts';
import { createAvailability } from './availability.ts';
import type { CallOutcome } from './call.ts';
import { createConnection } from './connection.ts';
import { createEraMemory } from './era.ts';
import { isBrokenConnection, isDownStatus, toRefusal } from './failures.ts';
import { createSessionEra } from './session-era.ts';
import { createSessionRecords } from './session-records.ts';
import { createStatelessEra } from './stateless-era.ts';

export interface HttpUpstreamDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Store;
  readonly getSeal: () => Promise<Seal>;
  /** What tells the server who calls (§18.6), beside the headers of the configuration. */
  readonly getHeaders: (caller: UpstreamCaller) => Promise<Readonly<Record<string, string>>>;
  /** Bytes of an answer, or of an event of a stream. */
  readonly maxBytes: number;
  readonly outbound: OutboundConfig;
  /** `MCP_SESSION_KEY_PREFIX`. */
  readonly sessionKeyPrefix: string;
  /** `MCP_SESSION_TTL_SECONDS`. */
  readonly sessionTtlSeconds: number;
}

/** Under the second within which a call of a server that is gone has its answer. */
const CONNECT_TIMEOUT_MS = 900;
const AN_HOUR_SECONDS = 3600;

export function createHttpUpstream(
  config: HttpUpstreamConfig,
  deps: HttpUpstreamDeps,
): Upstream<HttpUpstreamConfig> {
  const { clock, log, maxBytes, outbound } = deps;
  const { name, timeoutMs } = config;
  const url = new URL(config.url);
  const dependsOnUser = config.auth.type === 'token-exchange' || config.auth.type === 'forward';
  let description: UpstreamDescription | undefined;
  let isClosed = false;
  let underWay = 0;
  let onIdle = () => {};

  const availability = createAvailability({ name, probe, clock, log });
  const connection = createConnection(config, {
    openPool: () =>
      openServerPool(url, { ca: config.ca, connectTimeoutMs: CONNECT_TIMEOUT_MS, outbound }),
    getHeaders: async (caller) =>
      caller.user === undefined && dependsOnUser ? {} : deps.getHeaders(caller),
    maxBytes,
    clock,
    log,
    onOutcome: judgeOutcome,
    onFailure: judgeFailure,
  });
  const era = createEraMemory({ connection, clock, timeoutMs, onDescription });
  const sessionEra = createSessionEra({
    connection,
    records: createSessionRecords(`${name} ${config.url}`, {
      ...deps,
      keyPrefix: deps.sessionKeyPrefix,
      ttlSeconds: deps.sessionTtlSeconds + AN_HOUR_SECONDS,
    }),
    clock,
    timeoutMs,
    onDescription,
    hasChangedEra: era.hasChanged,
  });
  const statelessEra = createStatelessEra({
    connection,
    timeoutMs,
    hasChangedEra: era.hasChanged,
  });

  function onDescription(told: UpstreamDescription): void {
    description = told;
  }

  function judgeOutcome(outcome: CallOutcome): void {
    const refusal = findDownRefusal(outcome);
    if (refusal !== undefined) availability.noteDown(refusal);
    // Of 401 and 403 nobody knows whom they concern.
    else if (outcome.kind !== 'refused' || ![401, 403].includes(outcome.status)) {
      availability.noteUp();
    }
  }

  /** What concerns every caller: without credentials of users a 401 does. */
  function findDownRefusal(outcome: CallOutcome): UpstreamError | undefined {
    if (outcome.kind !== 'refused') return undefined;
    const { status, headers } = outcome;
    const isDown = isDownStatus(status) || (status === 401 && !dependsOnUser);
    return isDown ? toRefusal(status, headers) : undefined;
  }

  function judgeFailure(failure: unknown): void {
    if (!(failure instanceof UpstreamError) || failure.failure !== 'unavailable') return;
    if (isBrokenConnection(failure)) availability.suspect();
    else availability.noteDown(failure);
  }

  /** With credentials of users the gateway itself has none: any answer shows that the server is there. */
  async function probe(): Promise<void> {
    try {
      const found = await era.detect(GATEWAY_CALLER);
      if (found === 'session' && !dependsOnUser) await sessionEra.introduce(GATEWAY_CALLER);
    } catch (error) {
      const isReached = error instanceof UpstreamError && error.cause === undefined;
      if (!(dependsOnUser && isReached)) throw error;
    }
  }

  async function begin(caller: UpstreamCaller): Promise<void> {
    const found = era.current ?? (await era.detect(caller));
    if (found === 'session' && sessionEra.sessions.find(caller) === undefined) {
      await sessionEra.sessions.open(caller);
    }
  }

  /** What fails before the first request of the client's could be sent concerns all of them. */
  async function shakeHands(caller: UpstreamCaller): Promise<void> {
    try {
      await begin(caller);
    } catch (error) {
      if (error instanceof UpstreamError && !dependsOnUser) availability.noteDown(error);
      throw error;
    }
  }

  const sendInEra = (caller: UpstreamCaller, request: UpstreamRequest) =>
    era.current === 'stateless'
      ? statelessEra.request(caller, request)
      : sessionEra.request(caller, request);

  async function sendRequest(
    caller: UpstreamCaller,
    request: UpstreamRequest,
  ): Promise<JsonObject> {
    if (era.current === undefined) await shakeHands(caller);
    const result = (await sendInEra(caller, request)) ?? (await sendInEra(caller, request));
    if (result !== undefined) return result;
    throw new UpstreamError('unavailable', 'it changes its version of MCP with each answer');
  }

  /** Counts what is under way, so that it can end before the upstream does. */
  async function run<Value>(work: () => Promise<Value>): Promise<Value> {
    if (isClosed) throw new UpstreamError('unavailable', 'it is no longer served');
    availability.check();
    underWay += 1;
    try {
      return await work();
    } finally {
      underWay -= 1;
      if (underWay === 0) onIdle();
    }
  }

  return {
    config,
    get isUp() {
      return availability.isUp;
    },
    describe: (caller) =>
      run(async () => {
        if (description === undefined) await shakeHands(caller);
        // The session may be one that another replica began.
        if (description === undefined) await sessionEra.introduce(caller);
        if (description !== undefined) return description;
        throw new UpstreamError('unavailable', 'it does not say what it is');
      }),
    request: (caller, request) => run(() => sendRequest(caller, request)),
    listen: () => () => {},
    onStateChange: availability.onChange,
    endSession: (caller) => sessionEra.sessions.end(caller).catch(() => {}),
    async close(graceMs) {
      isClosed = true;
      if (underWay > 0) {
        await new Promise<void>((resolve) => {
          onIdle = resolve;
          clock.after(graceMs, resolve);
        });
      }
      availability.close();
      await sessionEra.sessions.close().catch(() => {});
      await connection.close();
    },
  };
}
