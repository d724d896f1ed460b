// §18.3: a server behind the gateway that is reached by streamable HTTP, of whichever era.

import { createWarnThrottle } from '../../platform/throttle.ts';
import type { HttpUpstreamConfig } from '../config/upstream-config.ts';
import type { GetHeaders, NoteRefusal } from '../credentials/credential-type.ts';
import { needsUser } from '../credentials/server-credentials.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import { createUsage } from '../transport/usage.ts';
import type { Upstream, UpstreamRuntime } from '../upstream.ts';
import { createAvailability, createAvailabilityJudge } from './availability.ts';
import { ConnectionError, isDownStatus, RefusalError } from './failures.ts';
import { createHttpConnection } from './http-connection.ts';
import { createProtocol } from './protocol.ts';
import type { Protocol } from './protocol-types.ts';
import { createOpenCookies, MAX_COOKIE_BYTES, MAX_COOKIES } from './session-cookies.ts';
import { createSseProtocol } from './sse-protocol.ts';

/** What tells the server who calls (§18.6), beside the headers of the configuration. */
export interface ServerAccess {
  readonly getHeaders: GetHeaders;
  /** Undefined where what the server says of a token changes nothing. */
  readonly noteRefusal: NoteRefusal | undefined;
}

export function createHttpUpstream(
  runtime: UpstreamRuntime,
  config: HttpUpstreamConfig,
  { getHeaders, noteRefusal }: ServerAccess,
  share: ProcessShare,
): Upstream<HttpUpstreamConfig> {
  const { clock, log } = runtime;
  const { name } = config;
  const isForUsers = needsUser(config);
  const usage = createUsage(clock);

  const availability = createAvailability(runtime, name, probe);
  const judge = createAvailabilityJudge(config, availability);
  const connection = createHttpConnection(runtime, config, share, {
    getHeaders: (caller) => (caller.user === undefined && isForUsers ? {} : getHeaders(caller)),
    noteRefusal,
    isTokenRefused: (caller) => protocol.isTokenRefused(caller),
    judge,
  });
  const onExcess = createWarnThrottle(clock, () =>
    log.warn(
      `The MCP server ${name} sets more cookies in a session than are kept (${MAX_COOKIES}, ${MAX_COOKIE_BYTES} bytes): the oldest are dropped. If its sessions get lost, let it, or the balancer in front of it, set fewer; if it needs none, set "cookies": false for it in the configuration file`,
      { server: name },
    ),
  );
  const create = config.transport === 'sse' ? createSseProtocol : createProtocol;
  const openCookies = createOpenCookies(config, clock, onExcess);
  const link = { connection, availability, judge, openCookies };
  const protocol: Protocol = create(runtime, config, share, link);

  /**
   * With credentials of users the gateway itself has none: that they are missed shows that the server is there. So does
   * 429 for all, as one user may have used up what the gateway may ask. What this machine lacks takes no server away.
   */
  async function probe(): Promise<void> {
    try {
      await protocol.probe();
    } catch (error) {
      if (error instanceof ConnectionError && error.isOwn && availability.isUp === true) return;
      const isThere = error instanceof RefusalError && !isDownStatus(error.status);
      if (!isThere || !(isForUsers || error.status === 429)) throw error;
    }
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
