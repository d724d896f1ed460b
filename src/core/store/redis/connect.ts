// REDIS_URL → an ioredis client. Retries are ours (command-runner.ts), not ioredis's.
import { Cluster, Redis } from 'ioredis';

export type RedisClient = Redis | Cluster;

/** Milliseconds until the n-th attempt to connect. */
export type Backoff = (attempt: number) => number;

/** §8.5: grows by 100 ms per attempt, up to 30 s. */
export const idleBackoff: Backoff = (attempt) => Math.min(attempt * 100, 30_000);

/** Long enough for the second SYN, which follows the first after a second. */
const CONNECT_TIMEOUT_MS = 1500;
/** A connection that owes an answer for so long is given up: its host may be gone for good. */
const SILENCE_MS = 2000;

export interface RedisConnection {
  readonly client: RedisClient;
  readonly isCluster: boolean;
}

/** Fail at once instead of queueing, and never send a command twice. */
const FAIL_FAST = {
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableReadyCheck: false,
  connectTimeout: CONNECT_TIMEOUT_MS,
  socketTimeout: SILENCE_MS,
  // After a fail-over the old primary is read-only: go and find the new one. (Before Redis 7 the
  // word stands inside the message when a script met it.)
  reconnectOnError: (error: Error) => error.message.includes('READONLY'),
};

/** Starts to connect; does not wait for it. `?cluster=true` makes it a Redis Cluster. */
export function connect(redisUrl: string, backoff: Backoff): RedisConnection {
  const url = new URL(redisUrl);
  const isCluster = url.searchParams.get('cluster') === 'true';
  url.searchParams.delete('cluster');
  const client = isCluster ? connectCluster(url, backoff) : connectServer(url, backoff);
  return { client, isCluster };
}

const connectServer = (url: URL, backoff: Backoff): Redis =>
  new Redis(url.href, {
    ...FAIL_FAST,
    enableOfflineQueue: false,
    // What one turn of the event loop asks for leaves in one write: the system call costs most.
    enableAutoPipelining: true,
    retryStrategy: backoff,
  });

function connectCluster(url: URL, backoff: Backoff): Cluster {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const secure = url.protocol === 'rediss:';
  return new Cluster([{ host, port: Number(url.port || 6379) }], {
    enableOfflineQueue: false,
    clusterRetryStrategy: backoff,
    // With TLS, nodes are called by the names that their certificates carry.
    ...(secure && { dnsLookup: (address, callback) => callback(null, address) }),
    redisOptions: {
      ...FAIL_FAST,
      ...(url.username && { username: decodeURIComponent(url.username) }),
      ...(url.password && { password: decodeURIComponent(url.password) }),
      ...(secure && { tls: {} }),
    },
  });
}
