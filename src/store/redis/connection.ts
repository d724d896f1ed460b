// The common part of all connections to Redis, however their server is found: options, timeouts and ticks.
import type { Cluster, Redis } from 'ioredis';

export type RedisClient = Redis | Cluster;

/** Milliseconds before the n-th reconnection attempt. */
export type Backoff = (attempt: number) => number;

/** §8.5: grows by 100 ms per attempt, up to 30 s. */
export const idleBackoff: Backoff = (attempt) => Math.min(attempt * 100, 30_000);

/**
 * Disables reconnection by ioredis: a new connection has no subscribed channels, and gets no invalidations for reads of another
 * one.
 */
export const NEVER_RECONNECTING = {
  lazyConnect: false,
  enableOfflineQueue: false,
  autoResubscribe: false,
  retryStrategy: () => null,
};

export interface RedisConnection {
  readonly client: RedisClient;
  readonly isCluster: boolean;
  /** Tries immediately if there is no connection, without waiting for the backoff. */
  reconnect(): void;
  /** Permanently. */
  close(): void;
}

/** Before Redis 7, an error from within a script contains the word in its message. */
export const isReadOnly = (cause: unknown): boolean =>
  cause instanceof Error && cause.message.includes('READONLY');

/** Commands fail immediately instead of queueing, and are never sent twice. `endWhenSilent` handles timeouts. */
export const FAIL_FAST = {
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableReadyCheck: false,
  connectTimeout: 0,
  // After a failover, the old primary is read-only: reconnects to find the new one.
  reconnectOnError: isReadOnly,
};

/** Options of a client that sends its commands to one server. */
export const SERVER_OPTIONS = { ...FAIL_FAST, enableOfflineQueue: false };

/** If the database number in `REDIS_URL` does not exist, ioredis would continue in database 0. */
export function endInOtherDatabase(client: Redis): void {
  client.on('error', (error: Error) => {
    if (error.message.includes('DB index is out of range')) client.stream?.destroy(error);
  });
}

// Closes a connection that is silent although a response is due: its host may be gone for good. The timeouts of ioredis would
// also close connections whose responses this process had no time to read.

/** Timeout for connecting: long enough for the second SYN, which is sent one second after the first. */
export const CONNECT_MS = 1500;
/** Timeout for the next byte of a response. */
const SILENCE_MS = 2000;
const TICK_MS = 250;

/** Watches a client from each connection attempt until the connection ends. */
export function endWhenSilent(client: Redis): void {
  let stop: (() => void) | undefined;
  let bytesBefore = 0;
  let silentMs = 0;

  function check() {
    const { status, stream, commandQueue } = client;
    const isConnecting = status === 'connecting';
    const bytes = stream?.bytesRead ?? 0;
    const isSilent = (isConnecting || commandQueue.length > 0) && bytes === bytesBefore;
    bytesBefore = bytes;
    silentMs = isSilent ? silentMs + TICK_MS : 0;
    const limit = isConnecting ? CONNECT_MS : SILENCE_MS;
    if (silentMs < limit) return;
    silentMs = 0;
    const owed = isConnecting ? 'connection' : 'answer';
    stream?.destroy(new Error(`no ${owed} within ${limit} ms`));
  }

  client.on('connecting', () => {
    silentMs = 0;
    stop ??= startTicking(TICK_MS, check);
  });
  client.on('end', () => {
    stop?.();
    stop = undefined;
  });
}

// Measures the time during which this process could run. During a stall (a slow tool, a starved or suspended container) timers
// become due although no socket was read, and the responses of Redis may be waiting there.

/**
 * Runs `task` about every `ms`, but only after a turn of the event loop that read the sockets: a stall counts as one tick,
 * however long it is. Returns a function that stops it.
 */
export function startTicking(ms: number, task: () => void): () => void {
  let immediate: NodeJS.Immediate | undefined;
  // The event loop handles timers, then sockets, then immediates. During long timers, this timer may become due again before any
  // socket is read.
  const timer = setInterval(() => {
    immediate ??= setImmediate(() => {
      immediate = undefined;
      task();
    });
  }, ms).unref();

  return () => {
    clearInterval(timer);
    if (immediate !== undefined) clearImmediate(immediate);
  };
}
