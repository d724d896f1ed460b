// What all connections to Redis have in common, however their server is found.
import type { Cluster, Redis } from 'ioredis';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';

export type RedisClient = Redis | Cluster;

/** Milliseconds until the n-th attempt to connect. */
export type Backoff = (attempt: number) => number;

/** §8.5: grows by 100 ms per attempt, up to 30 s. */
export const idleBackoff: Backoff = (attempt) => Math.min(attempt * 100, 30_000);

export interface ConnectOptions {
  /** Of attempts to connect that nobody asked for. */
  readonly backoff: Backoff;
  readonly clock: Clock;
  readonly log: Log;
}

export interface RedisConnection {
  readonly client: RedisClient;
  readonly isCluster: boolean;
  /** While there is no connection: tries at once, in place of after the pause. */
  reconnect(): void;
  /** For good. */
  close(): void;
}

/** Fail at once instead of queueing, and never send a command twice. Time-outs are in silence.ts. */
export const FAIL_FAST = {
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableReadyCheck: false,
  connectTimeout: 0,
  // After a fail-over the old primary is read-only: go and find the new one. (Before Redis 7 the
  // word stands inside the message when a script met it.)
  reconnectOnError: (error: Error) => error.message.includes('READONLY'),
};

/** Of a client that sends its commands to one server. */
export const SERVER_OPTIONS = {
  ...FAIL_FAST,
  enableOfflineQueue: false,
};

/** Where the server has no database of the number in `REDIS_URL`, ioredis would go on in database 0. */
export function endInOtherDatabase(client: Redis): void {
  client.on('error', (error: Error) => {
    if (error.message.includes('DB index is out of range')) client.stream?.destroy(error);
  });
}
