// Runs commands on Redis: they fail fast while Redis is down or frozen, and work again as soon as it is back.

import { createHash } from 'node:crypto';
import { LinkedList } from '../../platform/bounded-map.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import { findNextPlace, type PageRequest, type StoredPage, type TimedEntry } from '../page.ts';
import { StoreUnavailable } from '../store.ts';
import {
  type Backoff,
  type RedisClient,
  type RedisConnection,
  startTicking,
} from './connection.ts';

/** The access to Redis that all parts of the driver use. */
export interface RedisAccess extends ClockAndLog {
  readonly client: RedisClient;
  readonly commands: CommandRunner;
  /** A cluster stores related keys in different slots: several steps replace one script. */
  readonly isCluster: boolean;
  readonly sessionKeyPrefix: string;
  /** For reconnection attempts that no request triggers. */
  readonly backoff: Backoff;
}

export type CommandRunner = ReturnType<typeof createCommandRunner>;

/**
 * Deadline for an operation of the store: a caller that waits longer for a store that is down occupies a connection and memory,
 * and gets the same error later.
 */
export const DEADLINE_MS = 250;

/** At most one reconnection attempt per second, however many requests ask for one. */
const RETRY_EVERY_MS = 1000;

/** The states of a client before its first connection attempt and between two attempts. */
const UNCONNECTED = new Set(['wait', 'reconnecting', 'end']);

/**
 * `isCluster` determines the meaning of a command timeout. On a single server, all other commands would time out, too, so they
 * fail immediately until a PING succeeds. On a cluster, other nodes may still respond.
 */
export function createCommandRunner(
  { client, isCluster, reconnect, close }: RedisConnection,
  { clock, log }: ClockAndLog,
) {
  /** `starting` until Redis responds, or fails, for the first time. */
  let state: 'starting' | 'up' | 'down' | 'closed' = 'starting';
  /** The reason why Redis does not respond, if known. */
  let lastError: unknown;
  /** Called when Redis responds again. */
  const waiting = new Set<() => void>();
  let lastRetry = Number.NEGATIVE_INFINITY;
  let isPinging = false;
  const withDeadline = createDeadline();

  client.on('error', (error: Error & { readonly lastNodeError?: Error }) => {
    // A cluster's error only says that all nodes failed; the last node's error has the reason.
    lastError = error.lastNodeError ?? error;
  });
  // Down as soon as the client loses its connection.
  client.on('close', () => markDown(lastError ?? new Error('The connection was closed')));
  client.on('ready', isCluster ? markUp : ping);

  function markUp() {
    if (state === 'up' || state === 'closed') return;
    if (state === 'down') log.info('The store answers again.');
    state = 'up';
    lastError = undefined;
    for (const resume of waiting) resume();
  }

  function markDown(cause: unknown) {
    lastError = cause;
    if (state === 'closed') return;
    if (state !== 'down')
      log.error(
        'The store does not answer: sessions and registered clients cannot be used. Check that Redis runs and that REDIS_URL is right.',
        { cause },
      );
    state = 'down';
  }

  /** Sends one PING at a time; on a frozen server it waits until the connection is closed. */
  function ping() {
    isPinging = true;
    const onError = (error: unknown) => {
      // The reason for the loss of a connection is more informative than the error of an interrupted command.
      const isLost = client.status !== 'ready' || ('stream' in client && client.stream.destroyed);
      if (!isLost) markDown(error);
    };
    void client
      .ping()
      .then(markUp, onError)
      .finally(() => {
        isPinging = false;
      });
  }

  /** True if a reconnection or a PING was started. */
  function retry() {
    const now = clock.monotonic();
    if (now - lastRetry < RETRY_EVERY_MS) return false;
    lastRetry = now;
    if (UNCONNECTED.has(client.status)) {
      reconnect();
      return true;
    }
    // The connection is open, and the last response may have been an error such as "LOADING".
    if (client.status !== 'ready' || isPinging) return false;
    ping();
    return true;
  }

  async function waitUntilUp() {
    if (state === 'closed') throw new StoreUnavailable('The store is closed');
    if (!retry() && state !== 'starting') throw createUnavailableError();
    let resume = () => {};
    const up = new Promise<void>((resolve) => {
      resume = resolve;
    });
    waiting.add(resume);
    await withDeadline(up, createUnavailableError).finally(() => waiting.delete(resume));
  }

  const createUnavailableError = () =>
    new StoreUnavailable('Redis does not answer', { cause: lastError });

  function noteTimeout() {
    const cause = new Error(`no answer within ${DEADLINE_MS} ms`);
    if (!isCluster && state === 'up') {
      markDown(cause);
      ping();
    }
    return new StoreUnavailable('Redis does not answer', { cause });
  }

  return {
    /**
     * Runs commands with a deadline. @throws StoreUnavailable immediately while Redis is known to be down, after the deadline if
     * it does not respond, and for errors that it returns.
     */
    async run<Result>(commands: (client: RedisClient) => Promise<Result>): Promise<Result> {
      if (state !== 'up') await waitUntilUp();
      try {
        return await withDeadline(commands(client), noteTimeout);
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        // The loss of the connection is more informative than the interrupted command.
        if (state === 'down') throw createUnavailableError();
        throw new StoreUnavailable('Redis could not run a command', { cause: error });
      }
    },
    /** Nothing changes or is logged afterwards. */
    close() {
      state = 'closed';
      close();
    },
  };
}

export type ChangeKey = ReturnType<typeof createChangeKey>;

/** `forget` is undefined if reads are not cached (STORE_READS). */
export function createChangeKey(
  commands: CommandRunner,
  forget: ((key: string) => void) | undefined,
) {
  /**
   * Runs commands that change the value of the key: the change takes effect for this process's next call, whenever Redis reports
   * it.
   */
  return function changeKey<Result>(key: string, change: (client: RedisClient) => Promise<Result>) {
    if (forget === undefined) return commands.run(change);
    // Before the change, so that no read uses the old value while it changes; and after it, since a read may have cached it
    // in the meantime.
    forget(key);
    return commands.run(change).finally(() => forget(key));
  };
}

// The deadline.

const TICK_MS = 25;
/** The first tick may come early, as the timer was started by earlier operations. */
const TICKS = DEADLINE_MS / TICK_MS + 1;

interface PendingOperation {
  ticks: number;
  readonly expire: () => void;
}

/** Counts time in ticks of one timer for all operations: a stall of this process does not count as a timeout of Redis. */
function createDeadline() {
  const pending = new LinkedList<PendingOperation>();
  let stopTicking: (() => void) | undefined;

  function tick() {
    if (pending.size === 0) {
      stopTicking?.();
      stopTicking = undefined;
    }
    for (const operation of pending) {
      operation.ticks += 1;
      if (operation.ticks >= TICKS) operation.expire();
    }
  }

  /** Resolves to the result, or rejects at the deadline. */
  return function withDeadline<Result>(
    work: Promise<Result>,
    onTimeout: () => Error,
  ): Promise<Result> {
    stopTicking ??= startTicking(TICK_MS, tick);
    return new Promise((resolve, reject) => {
      const operation: PendingOperation = {
        ticks: 0,
        expire() {
          pending.remove(link);
          reject(onTimeout());
        },
      };
      const link = pending.add(operation);
      work.then(
        (result) => {
          pending.remove(link);
          resolve(result);
        },
        (error: unknown) => {
          pending.remove(link);
          reject(error);
        },
      );
    });
  };
}

// Steps that must be atomic. They use the server's time, so that replicas agree. No script decodes or encodes a client's JSON.

export function createScript(source: string) {
  const sha = createHash('sha1').update(source).digest('hex');

  /** Runs one EVALSHA, and EVAL only if Redis does not know the script. */
  return async function runScript(
    client: RedisClient,
    keys: readonly string[],
    args: readonly (string | number | Buffer)[],
  ) {
    try {
      return await client.evalsha(sha, keys.length, ...keys, ...args);
    } catch (error) {
      const isForgotten = error instanceof Error && error.message.startsWith('NOSCRIPT');
      if (!isForgotten) throw error;
      return client.eval(source, keys.length, ...keys, ...args);
    }
  };
}

/** The server's time in milliseconds. */
export const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

// Sorted sets of times: read page by page, the latest first; and removal from them.

export async function readSetPage(
  commands: CommandRunner,
  set: string,
  request: PageRequest,
): Promise<StoredPage<TimedEntry>> {
  const { from, limit } = request;
  const flat = await commands.run((client) =>
    client.zrevrangebyscore(
      set,
      from?.time ?? '+inf',
      '-inf',
      'WITHSCORES',
      'LIMIT',
      from?.skip ?? 0,
      limit,
    ),
  );
  const items = toEntries(flat);
  return { items, next: findNextPlace(items, request) };
}

/** The reply alternates members and scores. */
export const toEntries = (flat: readonly string[]): readonly TimedEntry[] =>
  flat.flatMap((id, at) => (at % 2 === 0 ? [{ id, time: Number(flat[at + 1]) }] : []));

/** True if the member was present: exactly one of concurrent callers gets true. */
export const removeFromSet = async (commands: CommandRunner, set: string, member: string) =>
  (await commands.run((client) => client.zrem(set, member))) === 1;
