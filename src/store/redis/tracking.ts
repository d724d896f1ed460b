// STORE_READS=tracked: how a process hears of what has changed. Redis remembers what one connection reads, and tells another
// one when that changes (CLIENT TRACKING with REDIRECT): by RESP2, since ioredis hands on no pushes of RESP3 that it does
// not know. Nothing ever waits for the two.
import type { Redis } from 'ioredis';
import { createAttempts, type Moment, measureSince, takeMoment } from '../../platform/clock.ts';
import { buildHeartbeatKey } from '../keys.ts';
import type { RedisAccess } from './command-runner.ts';
import { endInOtherDatabase, endWhenSilent, isReadOnly, NEVER_RECONNECTING } from './connection.ts';

/** The greatest age of what is known. */
const CERTAIN_MS = 100;
const BEAT_EVERY_MS = 40;
/** After the last that asked. */
const BEAT_FOR_MS = 1000;
/** Beats without an answer: a server that answers none gets no more. */
const MAX_BEATS = 4;
/** For as long something stands under the key of the beats, to see that its change is told of. */
const PROOF_MS = 1000;
/** A server that takes no writes. */
const LEAVE_EVERY_MS = 1000;

/** Connects when somebody asks for the first time, with the options of `commandClient`, and stands as long as that does. */
export function createTracking(
  commandClient: Redis,
  { sessionKeyPrefix, backoff, clock, log }: RedisAccess,
  onChange: (key: string) => void,
  /** Anything may have changed, and nothing that was read until now is told of. */
  onLoss: () => void,
) {
  /** Nothing stands there, but for a moment. */
  const heartbeatKey = buildHeartbeatKey(sessionKeyPrefix);
  /** Undefined while there is none, and between two attempts. */
  let pair: ReturnType<typeof openTrackingPair> | undefined;
  let isReady = false;
  let isClosed = false;
  let wasRefused = false;
  let hasHeard = false;
  const attempts = createAttempts(clock, backoff);
  let isRetrying = false;
  let leftAt = Number.NEGATIVE_INFINITY;

  /** When the last beat was sent that was answered. */
  let heardAt: Moment | undefined;
  let beats = 0;
  let askedAt = Number.NEGATIVE_INFINITY;
  let isBeating = false;

  // A fail-over, a restart, another server behind the same name: the two must be where the commands go.
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
      // A proxy, or what only speaks as Redis does, may take all commands, and tell of nothing, or somebody else.
      hasHeard = false;
      await opened.reader.get(heartbeatKey);
      await opened.reader.set(heartbeatKey, '', 'PX', PROOF_MS);
      // The message about the change has arrived before this is answered.
      await opened.listener.ping();
      if (!hasHeard) throw new Error('It did not tell of a change');
    } catch (cause) {
      // The end of a lost connection leads to the next attempt; that of a refusing one is made.
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

  /** Commands may go on without a write, and would not notice. Not again and again, where no other server is found. */
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
    // If nobody asks meanwhile, the next that does opens it.
    attempts.again(() => {
      isRetrying = false;
      if (isAsked()) void open();
    });
  }

  /**
   * Everything that was sent before the one answer has arrived with it; the other says that Redis still knows what was read. That one
   * is a write, of nothing: a server that takes none any more, since it is a replica now, is not believed.
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
     * Whether this process has heard of all that had changed 100 ms ago. Who asks will ask again: for a second it is seen to
     * that it stays so.
     */
    isCertain() {
      askedAt = clock.monotonic();
      if (pair === undefined && !isRetrying) void open();
      if (!isReady) return false;
      keepBeating();
      return heardAt !== undefined && measureSince(heardAt, clock) <= CERTAIN_MS;
    },
    /** What it reads, it hears of when that changes. Undefined where Redis tells nothing. */
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

/** The channel on which Redis tells clients of RESP2 what has changed. */
const INVALIDATIONS = '__redis__:invalidate';

interface PairListener {
  /** Undefined for all of them. */
  onChange(key: string | undefined): void;
  onError(cause: unknown): void;
  /** Once, when either of them has ended: the other ends, too. */
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
  // Not `message`, which would be given one text for many keys.
  listener.on('messageBuffer', (_channel, keys: unknown) => {
    if (hasEnded) return;
    // `?keyPrefix=` in REDIS_URL, which ioredis puts before each key that it sends.
    if (Array.isArray(keys)) for (const key of keys) onChange(String(key).slice(prefixLength));
    else onChange(undefined);
  });

  return {
    /** Takes nothing but PING. */
    listener,
    reader,
    /** Resolves once Redis tells the one what changes of what the other reads. @throws what Redis says against it. */
    async prepare() {
      await ready;
      const id = await listener.client('ID');
      await listener.subscribe(INVALIDATIONS);
      await reader.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id);
    },
    close,
  };
}

/** Rejects with why it ended, where it did before. */
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
