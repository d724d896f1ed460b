// REDIS_URL → an ioredis client. Retries are ours (link.ts), not ioredis's.
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { Client } from './link.ts';

/** Milliseconds until the n-th attempt to connect. */
export type Backoff = (attempt: number) => number;

/** Spec §8.5: grows by 100 ms per attempt, up to 30 s. */
export const idleBackoff: Backoff = (attempt) => Math.min(attempt * 100, 30_000);

const CONNECT_TIMEOUT_MS = 2000;

export interface Connection {
  readonly client: Client;
  readonly isCluster: boolean;
}

/** Starts to connect; does not wait for it. `?cluster=true` makes it a Redis Cluster. */
export function connect(redisUrl: string, backoff: Backoff): Connection {
  const url = new URL(redisUrl);
  const isCluster = url.searchParams.get('cluster') === 'true';
  url.searchParams.delete('cluster');
  const options: RedisOptions = {
    // Fail at once instead of queueing, and never send a command twice.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableReadyCheck: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: backoff,
    // After a fail-over the old primary is read-only: go and find the new one.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
  if (!isCluster) return { client: new Redis(url.href, options), isCluster };
  return { client: cluster(url, options, backoff), isCluster };
}

function cluster(url: URL, options: RedisOptions, backoff: Backoff): Cluster {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const secure = url.protocol === 'rediss:';
  return new Cluster([{ host, port: Number(url.port || 6379) }], {
    enableOfflineQueue: false,
    clusterRetryStrategy: backoff,
    // With TLS nodes must be called by the names that their certificates carry.
    ...(secure && { dnsLookup: (address, callback) => callback(null, address) }),
    redisOptions: {
      ...options,
      ...(url.username && { username: decodeURIComponent(url.username) }),
      ...(url.password && { password: decodeURIComponent(url.password) }),
      ...(secure && { tls: {} }),
    },
  });
}
