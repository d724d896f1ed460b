// §18.3: a server behind the gateway that is reached by streamable HTTP, of whichever era.
import type { HttpUpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';
import { openServerPool } from '../../../core/outbound/server-pool.ts';
import { needsUser } from '../credentials/needs-user.ts';
import { createUsage } from '../transport/usage.ts';
import { type Upstream, UpstreamError } from '../upstream.ts';
import { createAvailability } from './availability.ts';
import type { CallOutcome } from './call.ts';
import { createConnection } from './connection.ts';
import { isBrokenConnection, isDownStatus, toRefusal } from './failures.ts';
import type { HttpUpstreamDeps } from './http-upstream-deps.ts';
import { createProtocol } from './protocol.ts';
import type { Protocol } from './protocol-types.ts';
import { createSseProtocol } from './sse-protocol.ts';

/** Under the second within which a call of a server that is gone has its answer. */
const CONNECT_TIMEOUT_MS = 900;

export function createHttpUpstream(
  config: HttpUpstreamConfig,
  deps: HttpUpstreamDeps,
): Upstream<HttpUpstreamConfig> {
  const { clock, log, maxBytes, outbound } = deps;
  const { name } = config;
  const url = new URL(config.url);
  const isForUsers = needsUser(config);
  const usage = createUsage(clock);

  const availability = createAvailability({ name, probe: () => protocol.probe(), clock, log });
  const connection = createConnection(config, {
    openPool: () =>
      openServerPool(url, { ca: config.ca, connectTimeoutMs: CONNECT_TIMEOUT_MS, outbound }),
    getHeaders: (caller) =>
      caller.user === undefined && isForUsers ? {} : deps.getHeaders(caller),
    maxBytes,
    answerMemory: deps.answerMemory,
    messagePace: deps.messagePace,
    clock,
    log,
    onOutcome: judgeOutcome,
    onFailure: judgeFailure,
  });
  const create = config.transport === 'sse' ? createSseProtocol : createProtocol;
  const protocol: Protocol = create(config, {
    ...deps,
    connection,
    availability,
  });

  function judgeOutcome(outcome: CallOutcome, isHandshake: boolean): void {
    const refusal = findDownRefusal(outcome);
    if (refusal !== undefined) availability.noteDown(refusal);
    // Of 401 and 403 nobody knows whom they concern.
    else if (!isHandshake && !(outcome.kind === 'refused' && [401, 403].includes(outcome.status))) {
      availability.noteUp();
    }
  }

  /** What concerns every caller: without credentials of users a 401 does. */
  function findDownRefusal(outcome: CallOutcome): UpstreamError | undefined {
    if (outcome.kind !== 'refused') return undefined;
    const { status, headers } = outcome;
    const isDown = isDownStatus(status) || (status === 401 && !isForUsers);
    return isDown ? toRefusal(status, headers) : undefined;
  }

  function judgeFailure(failure: unknown): void {
    if (!(failure instanceof UpstreamError) || failure.failure !== 'unavailable') return;
    if (isBrokenConnection(failure)) availability.suspect();
    else availability.noteDown(failure);
  }

  // The gateway is ready only once it answers, and until then maybe nobody calls it.
  if (config.required) availability.suspect();

  return {
    config,
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
