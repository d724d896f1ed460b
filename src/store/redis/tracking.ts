// STORE_READS=tracked: reports changes to records that this process has read. Redis remembers the reads of one connection, and
// notifies another one about changes (CLIENT TRACKING with REDIRECT): with RESP2, since ioredis does not pass on unknown RESP3
// pushes. Nothing ever waits for these two connections.
import type { Redis } from 'ioredis';
import { createAttempts, type Moment, measureSince, takeMoment } from '../../platform/clock.ts';
import { buildHeartbeatKey } from '../keys.ts';
import type { RedisAccess } from './command-runner.ts';
import { endInOtherDatabase, endWhenSilent, isReadOnly, NEVER_RECONNECTING } from './connection.ts';

/** The maximum age of known records. */
const CERTAIN_MS = 100;
const BEAT_EVERY_MS = 40;
/** How long heartbeats continue after the last use. */
const BEAT_FOR_MS = 1000;
/** Maximum unanswered heartbeats: a server that does not answer gets no more. */
const MAX_BEATS = 4;
/** How long the heartbeat key exists when the tracking is tested. */
const PROOF_MS = 1000;
/** Minimum interval between disconnections from a server that takes no writes. */
const LEAVE_EVERY_MS = 1000;

/** Connects at first use, with the options of `commandClient`, and stays connected as long as it is. */
export function createTracking(
  commandClient: Redis,
  { sessionKeyPrefix, backoff, clock, log }: RedisAccess,
  onChange: (key: string) => void,
  /** Called when tracking is lost: any record may have changed, and no changes to earlier reads will be reported. */
  onLoss: () => void,
) {
  /** Absent except for a moment during the test. */
  const heartbeatKey = buildHeartbeatKey(sessionKeyPrefix);
  /** Undefined without a pair of connections, and between two attempts. */
  let pair: ReturnType<typeof openTrackingPair> | undefined;
  let isReady = false;
  let isClosed = false;
  let wasRefused = false;
  let hasHeard = false;
  const attempts = createAttempts(clock, backoff);
  let isRetrying = false;
  let leftAt = Number.NEGATIVE_INFINITY;

  /** The sending time of the last answered heartbeat. */
  let heardAt: Moment | undefined;
  let beats = 0;
  let askedAt = Number.NEGATIVE_INFINITY;
  let isBeating = false;

  // After a failover, a restart, or with another server under the same name, both connections must follow the commands.
  commandClient.on('close', () => pair?.close());
  commandClient.on('ready', () => {
    attempts.noteSuccess();
    if (isAsked()) void open();
  });

  const isAsked = () => clock.monotonic() - askedAt < BEAT_FOR_MS;

  async function open() {
    attempts.stop();
    isRetrying = false;
    if (isClosed || pair !== undefined || commandClient.status !== 'ready') return;
    const opened = openTrackingPair(commandClient, {
      onChange(key) {
        hasHeard = true;
        if (key === undefined) onLoss();
        else onChange(key);
      },
      onError: (cause) => log.debug('A connection that tracks reads is broken.', { cause }),
      onEnd: lose,
    });
    pair = opened;
    try {
      await opened.prepare();
      // A proxy, or a server that only resembles Redis, may accept all commands but notify no client, or another one.
      hasHeard = false;
      await opened.reader.get(heartbeatKey);
      await opened.reader.set(heartbeatKey, '', 'PX', PROOF_MS);
      // The notification arrives before this response.
      await opened.listener.ping();
      if (!hasHeard) throw new Error('It did not tell of a change');
    } catch (cause) {
      // A lost connection reconnects by itself; one that refuses is closed here.
      if (pair !== opened) return;
      if (isReadOnly(cause)) leave();
      else if (!wasRefused) log.warn(REFUSED, { cause });
      wasRefused ||= !isReadOnly(cause);
      opened.close();
      return;
    }
    if (pair !== opened) return;
    attempts.noteSuccess();
    wasRefused = false;
    isReady = true;
    beat();
  }

  /**
   * Without a write, the client for commands would not notice the failover. Limited in frequency, in case no other server is
   * found.
   */
  function leave() {
    if (clock.monotonic() - leftAt < LEAVE_EVERY_MS) return;
    leftAt = clock.monotonic();
    commandClient.disconnect(true);
  }

  function lose() {
    pair = undefined;
    isReady = false;
    heardAt = undefined;
    beats = 0;
    onLoss();
    if (isClosed) return;
    isRetrying = true;
    // Without any use in the meantime, the next use opens the pair.
    attempts.again(() => {
      isRetrying = false;
      if (isAsked()) void open();
    });
  }

  /**
   * One response proves that all earlier notifications have arrived; the other, that Redis still remembers the reads. The latter
   * is a write without an effect: a server that takes no writes, since it is a replica now, is not trusted.
   */
  function beat() {
    if (pair === undefined || !isReady || beats >= MAX_BEATS) return;
    const { listener, reader } = pair;
    const sentIn = pair;
    const sentAt = takeMoment(clock);
    beats += 1;
    Promise.all([listener.ping(), reader.del(heartbeatKey)]).then(
      () => {
        if (pair !== sentIn) return;
        beats -= 1;
        heardAt = sentAt;
      },
      (error: unknown) => {
        if (pair !== sentIn) return;
        beats -= 1;
        if (!isReadOnly(error)) return;
        leave();
        sentIn.close();
      },
    );
  }

  function keepBeating() {
    if (isBeating) return;
    isBeating = true;
    beat();
    clock.after(BEAT_EVERY_MS, () => {
      isBeating = false;
      if (!isClosed && isAsked()) keepBeating();
    });
  }

  return {
    /**
     * True if this process knows of all changes up to 100 ms ago. Another call is likely: heartbeats continue for a second to
     * keep it true.
     */
    isCertain() {
      askedAt = clock.monotonic();
      if (pair === undefined && !isRetrying) void open();
      if (!isReady) return false;
      keepBeating();
      return heardAt !== undefined && measureSince(heardAt, clock) <= CERTAIN_MS;
    },
    /** Changes to records that this connection reads are reported. Undefined if Redis reports none. */
    getReader: () => (isReady ? pair?.reader : undefined),
    close() {
      isClosed = true;
      attempts.stop();
      pair?.close();
    },
  };
}

const REFUSED =
  'Redis refuses to tell of changes, so STORE_READS=tracked has no effect: sessions and logins are read for each call. Allow the user of REDIS_URL the commands CLIENT ID and CLIENT TRACKING and the channel __redis__:invalidate (Redis 6 or later).';

/** The channel that Redis uses to notify RESP2 clients about changes. */
const INVALIDATIONS = '__redis__:invalidate';

interface PairListener {
  /** `undefined` means that all keys changed. */
  onChange(key: string | undefined): void;
  onError(cause: unknown): void;
  /** Called once, when either connection has ended and the other one is being closed as well. */
  onEnd(): void;
}

export function openTrackingPair(commandClient: Redis, { onChange, onError, onEnd }: PairListener) {
  const listener = commandClient.duplicate({ ...NEVER_RECONNECTING, protocol: 2 });
  const reader = commandClient.duplicate(NEVER_RECONNECTING);
  const ready = Promise.all([listener, reader].map(waitUntilReady));
  const prefixLength = commandClient.options.keyPrefix?.length ?? 0;
  let hasEnded = false;

  function close() {
    if (hasEnded) return;
    hasEnded = true;
    listener.disconnect();
    reader.disconnect();
    onEnd();
  }

  for (const connection of [listener, reader]) {
    endWhenSilent(connection);
    endInOtherDatabase(connection);
    connection.on('error', onError);
    connection.once('close', close);
  }
  // Not `message`, which would pass several keys as one string.
  listener.on('messageBuffer', (_channel, keys: unknown) => {
    if (hasEnded) return;
    // ioredis prepends `?keyPrefix=` of REDIS_URL to each key it sends.
    if (Array.isArray(keys)) for (const key of keys) onChange(String(key).slice(prefixLength));
    else onChange(undefined);
  });

  return {
    /** Accepts only PING. */
    listener,
    reader,
    /**
     * Resolves once Redis notifies the listener about changes to the reader's records. @throws the error of Redis if it refuses.
     */
    async prepare() {
      await ready;
      const id = await listener.client('ID');
      await listener.subscribe(INVALIDATIONS);
      await reader.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id);
    },
    close,
  };
}

/** Rejects with the reason if the connection ends before it is ready. */
function waitUntilReady(connection: Redis): Promise<void> {
  return new Promise((resolve, reject) => {
    let cause: unknown;
    connection.on('error', (error) => {
      cause = error;
    });
    connection.once('ready', resolve);
    connection.once('close', () => reject(cause ?? new Error('The connection was closed')));
  });
}
