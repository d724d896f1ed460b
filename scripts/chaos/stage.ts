// The surroundings of a fault. Everything that is started on a stage ends with it, the last one first.
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Env,
  type LaunchOptions,
  type RunningPostern,
  startPostern,
} from '../../test/support/gateway/process.ts';
import { AUDIENCE, type Issuer, startIssuer } from '../../test/support/oauth/issuer.ts';
import { createKnowingClient, type KnowingClient } from './client/knowing-client.ts';
import { type Load, startLoad } from './client/load.ts';
import { createRequester } from './client/requester.ts';
import { createTally, type Tally } from './client/tally.ts';
import { createUsers, type Users } from './client/users.ts';
import { type Counting, createCountingEnv, ENDS_HOLD_AFTER_MS } from './counting.ts';

/** A figure as the whole form needs it, and as the short one does. */
export interface Extent {
  readonly full: number;
  readonly short: number;
}

export interface Stage {
  readonly isShort: boolean;
  readonly counting: Counting;
  /** True if a gateway was started whose behaviour depends on the way of counting. */
  readonly hasCounting: boolean;
  /** Milliseconds until the other replicas refuse what one replica has ended. */
  readonly endsHoldAfterMs: number;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
  /** How much of something: seconds, rounds, inputs. */
  choose(extent: Extent): number;
  /** Rejects when the run is interrupted. */
  pause(ms: number): Promise<void>;
  closeAtEnd<Started extends { close(): unknown }>(started: Started): Started;
  /** The built gateway, with limits that nobody reaches. */
  startGateway(issuer: Issuer, env: Env, how?: LaunchOptions): Promise<RunningPostern>;
  startIssuer(): Promise<Issuer>;
  /** A client of a gateway, with sessions opened. */
  startClient(url: string, issuer: Issuer, options?: ClientOptions): Promise<KnowingClient>;
  startLoad(ratePerSecond: number, call: () => Promise<unknown>): Load;
  close(): Promise<void>;
}

export interface ClientOptions {
  readonly sessions?: number;
  readonly connections?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Shared by several clients. */
  readonly tally?: Tally;
  /** Where a fault changes their tokens. */
  readonly users?: Users;
  /** Where the gateway is several replicas. */
  readonly endsHoldAfterMs?: number;
}

const LIMITS: Env = {
  MCP_RATE_LIMIT_MAX: '1000000000',
  MCP_GLOBAL_RATE_LIMIT_MAX: '1000000000',
  MCP_USER_SESSIONS_MAX: '0',
  TRUST_PROXY: 'none',
};

export function createStage(options: {
  readonly isShort: boolean;
  /** The share of the full form: 1 for all of it. */
  readonly scale: number;
  readonly counting: Counting;
  readonly signal: AbortSignal;
}): Stage {
  const { isShort, scale, counting, signal } = options;
  let hasCounting = false;
  const closings: (() => unknown)[] = [];

  function closeAtEnd<Started extends { close(): unknown }>(started: Started): Started {
    closings.push(() => started.close());
    return started;
  }

  return {
    isShort,
    counting,
    get hasCounting() {
      return hasCounting;
    },
    endsHoldAfterMs: ENDS_HOLD_AFTER_MS[counting],
    signal,
    choose: ({ full, short }) => (isShort ? short : Math.max(short, Math.round(full * scale))),
    pause: (ms) => pause(ms, undefined, { signal }),
    closeAtEnd,
    startIssuer: async () => closeAtEnd(await startIssuer()),
    async startGateway(issuer, env, how) {
      const redisUrl = env.REDIS_URL;
      if (redisUrl !== undefined) hasCounting = true;
      const own = {
        OIDC_ISSUER: issuer.url,
        OIDC_AUDIENCE: AUDIENCE,
        ...(redisUrl !== undefined && createCountingEnv(counting, redisUrl)),
      };
      const gateway = await startPostern({ ...own, ...LIMITS, ...env }, how);
      closings.push(async () => {
        gateway.kill('SIGCONT');
        gateway.kill('SIGKILL');
        await gateway.ended;
      });
      return gateway;
    },
    async startClient(
      url,
      issuer,
      { sessions = 20, connections = 64, tally, users, headers = {}, endsHoldAfterMs = 0 } = {},
    ) {
      const requester = closeAtEnd(createRequester(url, { connections, headers }));
      const client = createKnowingClient(
        requester,
        users ?? (await createUsers(issuer)),
        tally ?? createTally(),
        endsHoldAfterMs,
      );
      await client.openSessions(sessions);
      return client;
    },
    startLoad: (ratePerSecond, call) => closeAtEnd(startLoad(ratePerSecond, call)),
    async close() {
      for (const end of closings.splice(0).reverse()) await end();
    },
  };
}
