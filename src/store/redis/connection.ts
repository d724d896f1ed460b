// The common part of all connections to Redis, however their server is found.
import type { Cluster, Redis } from 'ioredis';

export type RedisClient = Redis | Cluster;

/** Milliseconds until the n-th attempt to connect. */
export type Backoff = (attempt: number) => number;

/** §8.5: grows by 100 ms per attempt, up to 30 s. */
export const idleBackoff: Backoff = (attempt) => Math.min(attempt * 100, 30_000);

/** Reconnecting is ours: a connection that is made anew has lost its channels, and is told nothing of what another has read. */
export const NEVER_RECONNECTING = {
  lazyConnect: false,
  enableOfflineQueue: false,
  autoResubscribe: false,
  retryStrategy: () => null,
};

export interface RedisConnection {
  readonly client: RedisClient;
  readonly isCluster: boolean;
  /** While there is no connection: tries at once, in place of after the pause. */
  reconnect(): void;
  /** For good. */
  close(): void;
}

/** Before Redis 7 the word stands inside the message when a script met it. */
export const isReadOnly = (cause: unknown): boolean =>
  cause instanceof Error && cause.message.includes('READONLY');

/** Fail at once instead of queueing, and never send a command twice. Time-outs are those of `endWhenSilent`. */
export const FAIL_FAST = {
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableReadyCheck: false,
  connectTimeout: 0,
  // After a fail-over the old primary is read-only: go and find the new one.
  reconnectOnError: isReadOnly,
};

/** Options of a client that sends its commands to one server. */
export const SERVER_OPTIONS = { ...FAIL_FAST, enableOfflineQueue: false };

/** If the server has no database of the number in `REDIS_URL`, ioredis would go on in database 0. */
export function endInOtherDatabase(client: Redis): void {
  client.on('error', (error: Error) => {
    if (error.message.includes('DB index is out of range')) client.stream?.destroy(error);
  });
}

// A connection that stays silent although an answer is due is given up: its host may be gone for good.
// ioredis's own time-outs would also end those whose answers this process had no time to read.

/** Until a connection stands: long enough for the second SYN, which follows the first after a second. */
export const CONNECT_MS = 1500;
/** Until the next byte of an answer. */
const SILENCE_MS = 2000;
const TICK_MS = 250;

/** Watches a client from its next attempt to connect until its end, as often as it begins. */
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

// Time in which this process could run. While it stalls (a slow tool, a starved or stopped container) timers
// become due although nobody looked into the sockets, where the answers of Redis may lie.

/**
 * Runs `task` about every `ms`, but only after a turn of the event loop in which what lay in the sockets
 * was read: a stall counts as one tick, however long it is. Returns a function that ends it.
 */
export function startTicking(ms: number, task: () => void): () => void {
  let immediate: NodeJS.Immediate | undefined;
  // After timers come sockets, and then immediates. While other timers take long, this one can become due
  // again before any socket is read.
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
