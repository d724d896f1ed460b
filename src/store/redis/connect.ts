// REDIS_URL → a connection. Retries are ours (command-runner.ts), not ioredis's.
import { Cluster, Redis } from 'ioredis';
import { isClusterUrl } from '../../config/groups/store.ts';
import {
  formatAddress,
  isSentinelUrl,
  requireSentinelUrl,
  type SentinelUrl,
} from '../../config/sentinel-url.ts';
import {
  type Backoff,
  CONNECT_MS,
  endInOtherDatabase,
  endWhenSilent,
  FAIL_FAST,
  type RedisClient,
  type RedisConnection,
  type RedisConnectOptions,
  SERVER_OPTIONS,
} from './connection.ts';
import { askSentinels, type PrimaryAddress } from './sentinels.ts';

/**
 * Starts to connect; does not wait for it. `?cluster=true` makes it a Redis Cluster, `redis+sentinel:`
 * the primary that the sentinels name.
 */
export function connectToRedis(redisUrl: string, options: RedisConnectOptions): RedisConnection {
  if (isSentinelUrl(redisUrl)) return connectPrimary(requireSentinelUrl(redisUrl), options);
  const { backoff } = options;
  const url = new URL(redisUrl);
  const isCluster = isClusterUrl(redisUrl);
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

// A connection to the primary that the sentinels name. When they name another one it moves there, even
// from a server that still answers: cut off from the others, it would take writes that are lost later.

/** How long a server that is left, and may be frozen, has to close its end. */
const DISCONNECT_MS = 100;

function connectPrimary(
  url: SentinelUrl,
  { backoff, clock, log }: RedisConnectOptions,
): RedisConnection {
  const client = new Redis({
    ...SERVER_OPTIONS,
    lazyConnect: true,
    // ioredis would try the same server again.
    retryStrategy: () => null,
    disconnectTimeout: DISCONNECT_MS,
    db: url.db,
    ...(url.username !== undefined && { username: url.username }),
    ...(url.password !== undefined && { password: url.password }),
    ...(url.isTls && { tls: {} }),
  });
  endWhenSilent(client);
  endInOtherDatabase(client);
  let primary: PrimaryAddress | undefined;
  let attempts = 0;
  let isClosed = false;
  let areSentinelsSilent = false;
  let cancelRetry = () => {};

  client.on('ready', () => {
    attempts = 0;
  });
  client.on('end', () => {
    if (isClosed) return;
    attempts += 1;
    cancelRetry = clock.after(isAtPrimary() ? backoff(attempts) : 0, connectToPrimary);
  });

  const stopAsking = askSentinels(url, {
    clock,
    onPrimary(named) {
      if (areSentinelsSilent) log.info('The sentinels of Redis answer again.');
      areSentinelsSilent = false;
      const isKnown = named.host === primary?.host && named.port === primary.port;
      if (isKnown) return;
      if (primary !== undefined)
        log.info('Redis has another primary.', { primary: formatAddress(named) });
      primary = named;
      if (isUnconnected()) connectToPrimary();
      else client.disconnect(true);
    },
    onUnknown(cause) {
      if (primary === undefined) {
        // As ioredis tells of an attempt to connect that failed.
        client.emit('error', cause);
        client.emit('close');
      } else if (!areSentinelsSilent) {
        areSentinelsSilent = true;
        log.warn(
          'No sentinel of Redis answers: if the primary fails, the new one cannot be found. Check that the sentinels run and that REDIS_URL is right.',
          { cause },
        );
      }
    },
  });

  const isUnconnected = () => client.status === 'wait' || client.status === 'end';

  const isAtPrimary = () =>
    client.options.host === primary?.host && client.options.port === primary?.port;

  function connectToPrimary(): void {
    cancelRetry();
    if (isClosed || primary === undefined || !isUnconnected()) return;
    client.options.host = primary.host;
    client.options.port = primary.port;
    client.connect().catch(() => {});
  }

  return {
    client,
    isCluster: false,
    reconnect: connectToPrimary,
    close() {
      isClosed = true;
      cancelRetry();
      stopAsking();
      client.disconnect();
    },
  };
}
