// Connects to REDIS_URL: a single server, a cluster, or a primary found by sentinels. Retries are up to command-runner.ts, not
// ioredis.
import { Cluster, Redis } from 'ioredis';
import { isClusterUrl } from '../../config/groups/store.ts';
import {
  formatAddress,
  isSentinelUrl,
  requireSentinelUrl,
  type SentinelAddress,
  type SentinelUrl,
} from '../../config/sentinel-url.ts';
import { type Clock, createAttempts } from '../../platform/clock.ts';
import { type ClockAndLog, describeCause } from '../../platform/log.ts';
import {
  type Backoff,
  CONNECT_MS,
  endInOtherDatabase,
  endWhenSilent,
  FAIL_FAST,
  type RedisConnection,
  SERVER_OPTIONS,
} from './connection.ts';

/**
 * Starts to connect, without waiting for the connection. `?cluster=true` selects Redis Cluster, `redis+sentinel:` the primary
 * that the sentinels name. `backoff` is for reconnection attempts that no request triggers.
 */
export function connectToRedis(
  redisUrl: string,
  backoff: Backoff,
  watch: ClockAndLog,
): RedisConnection {
  if (isSentinelUrl(redisUrl)) return connectPrimary(requireSentinelUrl(redisUrl), backoff, watch);
  const url = new URL(redisUrl);
  const isCluster = isClusterUrl(redisUrl);
  url.searchParams.delete('cluster');
  const client = isCluster ? connectCluster(url, backoff) : connectServer(url, backoff);
  return {
    client,
    isCluster,
    reconnect() {
      const { status } = client;
      if (status === 'reconnecting' || status === 'end') client.connect().catch(() => {});
    },
    close: () => client.disconnect(),
  };
}

function connectServer(url: URL, backoff: Backoff) {
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
    // With TLS, nodes are addressed by the names in their certificates.
    ...(secure && { dnsLookup: (address, callback) => callback(null, address) }),
    redisOptions: {
      ...FAIL_FAST,
      // Also for the connections that ioredis opens internally to discover nodes.
      connectTimeout: CONNECT_MS,
      ...(url.username && { username: decodeURIComponent(url.username) }),
      ...(url.password && { password: decodeURIComponent(url.password) }),
      ...(secure && { tls: {} }),
    },
  });
  cluster.on('+node', endWhenSilent);
  return cluster;
}

// A connection to the primary that the sentinels name. When they name another one, the connection moves there, even if the old
// server still responds: in a network partition, it would accept writes that are lost later.

/** Milliseconds that an abandoned, possibly frozen server has to close its end. */
const DISCONNECT_MS = 100;

function connectPrimary(
  url: SentinelUrl,
  backoff: Backoff,
  { clock, log }: ClockAndLog,
): RedisConnection {
  const client = new Redis({
    ...SERVER_OPTIONS,
    lazyConnect: true,
    // ioredis would retry the same server.
    retryStrategy: () => null,
    disconnectTimeout: DISCONNECT_MS,
    db: url.db,
    ...(url.username !== undefined && { username: url.username }),
    ...(url.password !== undefined && { password: url.password }),
    ...(url.isTls && { tls: {} }),
  });
  endWhenSilent(client);
  endInOtherDatabase(client);
  let primary: Primary | undefined;
  const attempts = createAttempts(clock, (failures) => (isAtPrimary() ? backoff(failures) : 0));
  let isClosed = false;
  let areSentinelsSilent = false;

  client.on('ready', attempts.noteSuccess);
  client.on('end', () => {
    if (!isClosed) attempts.again(connectToPrimary);
  });

  // All sentinels are queried, over separate connections: one that is down or frozen delays nothing.
  const outcomes = new Map<SentinelAddress, Outcome>();
  const closers = url.sentinels.map((sentinel) =>
    askSentinel(sentinel, url, clock, (outcome) => {
      outcomes.set(sentinel, outcome);
      if (isClosed) return;
      const answers = [...outcomes.values()].flatMap((one) => ('answer' in one ? one.answer : []));
      const [latest] = answers.sort((one, other) => other.epoch - one.epoch);
      if (latest !== undefined) follow(latest);
      else if (outcomes.size === url.sentinels.length) noteSilence(describeFailures(url, outcomes));
    }),
  );

  /** Called with every answer; most name the current primary. */
  function follow(named: Primary) {
    if (areSentinelsSilent) log.info('The sentinels of Redis answer again.');
    areSentinelsSilent = false;
    const isKnown = named.host === primary?.host && named.port === primary.port;
    if (isKnown) return;
    if (primary !== undefined)
      log.info('Redis has another primary.', { primary: formatAddress(named) });
    primary = named;
    if (isUnconnected()) connectToPrimary();
    else client.disconnect(true);
  }

  /** Called on each failure while no sentinel names a primary. */
  function noteSilence(cause: Error) {
    if (primary === undefined) {
      // Reports it as ioredis reports a failed connection attempt.
      client.emit('error', cause);
      client.emit('close');
    } else if (!areSentinelsSilent) {
      areSentinelsSilent = true;
      log.warn(
        'No sentinel of Redis answers: if the primary fails, the new one cannot be found. Check that the sentinels run and that REDIS_URL is right.',
        { cause },
      );
    }
  }

  const isUnconnected = () => client.status === 'wait' || client.status === 'end';

  const isAtPrimary = () =>
    client.options.host === primary?.host && client.options.port === primary?.port;

  function connectToPrimary() {
    attempts.stop();
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
      attempts.stop();
      for (const stopAsking of closers) stopAsking();
      client.disconnect();
    },
  };
}

// Queries a sentinel for the current primary.

/** The primary, as named by a sentinel. */
interface Primary {
  readonly host: string;
  readonly port: number;
  /** Increases with each failover, so that a sentinel that missed the last one is outvoted. */
  readonly epoch: number;
}

/** Milliseconds between two requests to each sentinel: the maximum delay until a failover is noticed. */
const ASK_EVERY_MS = 1000;

/** A sentinel's last answer, or the reason why there is none; undefined before either. */
type Outcome = { readonly answer: Primary } | { readonly failure: unknown };

/** Polls until the returned function is called. */
function askSentinel(
  { host, port }: SentinelAddress,
  { primaryName, sentinelPassword, isTls }: SentinelUrl,
  clock: Clock,
  onOutcome: (outcome: Outcome) => void,
): () => void {
  const client = new Redis({
    ...FAIL_FAST,
    host,
    port,
    enableOfflineQueue: false,
    retryStrategy: () => ASK_EVERY_MS,
    ...(sentinelPassword !== undefined && { password: sentinelPassword }),
    ...(isTls && { tls: {} }),
  });
  endWhenSilent(client);
  let isAsking = false;
  let cancelNext = () => {};

  async function ask() {
    if (isAsking || client.status !== 'ready') return;
    isAsking = true;
    const outcome = await client
      .call('SENTINEL', 'MASTER', primaryName)
      .then(readAnswer)
      .catch((failure: unknown) => ({ failure }));
    isAsking = false;
    onOutcome(outcome);
  }

  function askRegularly() {
    cancelNext = clock.after(ASK_EVERY_MS, () => {
      void ask();
      askRegularly();
    });
  }

  client.on('ready', () => void ask());
  client.on('error', (failure) => onOutcome({ failure }));
  askRegularly();

  return () => {
    cancelNext();
    client.disconnect();
  };
}

/** The reply alternates names and values. @throws Error for any other reply. */
function readAnswer(reply: unknown): Outcome {
  const list = Array.isArray(reply) ? reply.map(String) : [];
  // A value may equal another member's name: a primary may be called "ip".
  const read = (name: string) => list.find((_, at) => at % 2 === 1 && list[at - 1] === name) ?? '';
  const [host, port, epoch] = [read('ip'), Number(read('port')), Number(read('config-epoch'))];
  if (host === '' || !(port > 0 && port < 65_536) || !Number.isInteger(port + epoch))
    throw new Error('SENTINEL MASTER was answered in an unknown form');
  return { answer: { host, port, epoch } };
}

function describeFailures(
  { sentinels, primaryName }: SentinelUrl,
  outcomes: ReadonlyMap<SentinelAddress, Outcome>,
) {
  const failures = sentinels.map((sentinel) => {
    const outcome = outcomes.get(sentinel);
    const failure = outcome && 'failure' in outcome ? describeCause(outcome.failure) : '';
    return `${formatAddress(sentinel)}: ${failure}`;
  });
  return new Error(
    `No sentinel names a primary ${JSON.stringify(primaryName)} (${failures.join('; ')})`,
  );
}
