// REDIS_URL → a connection. Retries are ours (command-runner.ts), not ioredis's.
import { Cluster, Redis } from 'ioredis';
import { isSentinelUrl, requireSentinelUrl } from '../../config/sentinel-url.ts';
import {
  type Backoff,
  type ConnectOptions,
  endInOtherDatabase,
  FAIL_FAST,
  type RedisClient,
  type RedisConnection,
  SERVER_OPTIONS,
} from './connection.ts';
import { connectPrimary } from './sentinel-connection.ts';
import { CONNECT_MS, endWhenSilent } from './silence.ts';

/**
 * Starts to connect; does not wait for it. `?cluster=true` makes it a Redis Cluster, `redis+sentinel:`
 * the primary that the sentinels name.
 */
export function connect(redisUrl: string, options: ConnectOptions): RedisConnection {
  if (isSentinelUrl(redisUrl)) return connectPrimary(requireSentinelUrl(redisUrl), options);
  const { backoff } = options;
  const url = new URL(redisUrl);
  const isCluster = url.searchParams.get('cluster') === 'true';
  url.searchParams.delete('cluster');
  const client = isCluster ? connectCluster(url, backoff) : connectServer(url, backoff);
  return {
    client,
    isCluster,
    reconnect: () => startToConnect(client),
    close: () => client.disconnect(),
  };
}

function startToConnect(client: RedisClient): void {
  if (client.status === 'reconnecting' || client.status === 'end') client.connect().catch(() => {});
}

function connectServer(url: URL, backoff: Backoff): Redis {
  const client = new Redis(url.href, { ...SERVER_OPTIONS, retryStrategy: backoff });
  endWhenSilent(client);
  endInOtherDatabase(client);
  return client;
}

function connectCluster(url: URL, backoff: Backoff): Cluster {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const secure = url.protocol === 'rediss:';
  const cluster = new Cluster([{ host, port: Number(url.port || 6379) }], {
    enableOfflineQueue: false,
    clusterRetryStrategy: backoff,
    // With TLS, nodes are called by the names that their certificates carry.
    ...(secure && { dnsLookup: (address, callback) => callback(null, address) }),
    redisOptions: {
      ...FAIL_FAST,
      // Of connections that ioredis makes to ask for the nodes, too, which nobody else sees.
      connectTimeout: CONNECT_MS,
      ...(url.username && { username: decodeURIComponent(url.username) }),
      ...(url.password && { password: decodeURIComponent(url.password) }),
      ...(secure && { tls: {} }),
    },
  });
  cluster.on('+node', endWhenSilent);
  return cluster;
}
