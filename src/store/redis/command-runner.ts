// Commands to Redis fail fast while it is down or frozen, and are answered again at once when it is back.

import { createHash } from 'node:crypto';
import { LinkedList } from '../../platform/bounded-map.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import { findNextPlace, type PageRequest, type TimedEntry } from '../page.ts';
import { StoreUnavailable } from '../store.ts';
import {
  type Backoff,
  type RedisClient,
  type RedisConnection,
  startTicking,
} from './connection.ts';

/** A Redis, as all parts of the driver use it. */
export interface RedisAccess extends ClockAndLog {
  readonly client: RedisClient;
  readonly commands: CommandRunner;
  /** A cluster keeps what belongs together in different slots: several steps in place of one script. */
  readonly isCluster: boolean;
  readonly sessionKeyPrefix: string;
  /** For attempts to connect that nobody asked for. */
  readonly backoff: Backoff;
}

export type CommandRunner = ReturnType<typeof createCommandRunner>;

/**
 * An operation of the store answers or fails within this time: a caller who waits longer for a store that is down holds a
 * connection and memory, and gets the same error later.
 */
export const DEADLINE_MS = 250;

/** At most one new attempt to connect per second, however many requests ask for it. */
const RETRY_EVERY_MS = 1000;

/** The states of a client between two attempts to connect, or before the first. */
const UNCONNECTED = new Set(['wait', 'reconnecting', 'end']);

/**
 * `isCluster` decides what one command that times out says. Of a single server: all others would, too,
 * so they fail at once until a PING is answered. In a cluster the other nodes may well answer.
 */
export function createCommandRunner(
  { client, isCluster, reconnect, close }: RedisConnection,
  { clock, log }: ClockAndLog,
) {
  /** `starting` until Redis answers, or fails, for the first time. */
  let state: 'starting' | 'up' | 'down' | 'closed' = 'starting';
  /** Why it does not answer, as far as that is known. */
  let lastError: unknown;
  /** Called when it answers again. */
  const waiting = new Set<() => void>();
  let lastRetry = Number.NEGATIVE_INFINITY;
  let isPinging = false;
  const withDeadline = createDeadline();

  client.on('error', (error: Error & { readonly lastNodeError?: Error }) => {
    // A cluster says only that all nodes failed; the last node says why.
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

  /** One PING at a time; on a frozen server it waits until the connection is given up. */
  function ping() {
    isPinging = true;
    const onError = (error: unknown) => {
      // The reason why a connection was lost or given up says more than a command that it took along.
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

  /** True when it started something worth waiting for. */
  function retry() {
    const now = clock.monotonic();
    if (now - lastRetry < RETRY_EVERY_MS) return false;
    lastRetry = now;
    if (UNCONNECTED.has(client.status)) {
      reconnect();
      return true;
    }
    // The connection stands, and what answered may have been an error: "LOADING", say.
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
     * Runs commands with a deadline. @throws StoreUnavailable at once while Redis is known to be
     * down, after the deadline when it does not answer, and for errors that Redis answers.
     */
    async run<Result>(commands: (client: RedisClient) => Promise<Result>): Promise<Result> {
      if (state !== 'up') await waitUntilUp();
      try {
        return await withDeadline(commands(client), noteTimeout);
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        // A lost connection says more than the command that it took along.
        if (state === 'down') throw createUnavailableError();
        throw new StoreUnavailable('Redis could not run a command', { cause: error });
      }
    },
    /** Nothing changes any more, and nothing is logged. */
    close() {
      state = 'closed';
      close();
    },
  };
}

export type ChangeKey = ReturnType<typeof createChangeKey>;

/** `forget` is undefined where nothing is remembered of what was read (STORE_READS). */
export function createChangeKey(
  commands: CommandRunner,
  forget: ((key: string) => void) | undefined,
) {
  /** Runs commands that change what stands under the key: it holds for this process's next call, whenever Redis tells of it. */
  return function changeKey<Result>(key: string, change: (client: RedisClient) => Promise<Result>) {
    if (forget === undefined) return commands.run(change);
    // Before, so that nobody finds it while it changes; and after, since it may have been read anew meanwhile.
    forget(key);
    return commands.run(change).finally(() => forget(key));
  };
}

// The deadline.

const TICK_MS = 25;
/** The first tick comes early, as it was set for earlier operations. */
const TICKS = DEADLINE_MS / TICK_MS + 1;

interface PendingOperation {
  ticks: number;
  readonly expire: () => void;
}

/** Time is counted in ticks, by one timer for all operations: a stall of this process is not Redis's. */
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

  /** The result, or a rejection when the time is over. */
  return function withDeadline<Result>(
    work: Promise<Result>,
    onTimeout: () => Error,
  ): Promise<Result> {
    stopTicking ??= startTicking(TICK_MS, tick);
    return new Promise((resolve, reject) => {
      const operation: PendingOperation = {
        ticks: 0,
        expire() {
          link.remove();
          reject(onTimeout());
        },
      };
      const link = pending.add(operation);
      work.then(
        (result) => {
          link.remove();
          resolve(result);
        },
        (error: unknown) => {
          link.remove();
          reject(error);
        },
      );
    });
  };
}

// The steps that must be atomic. Time is the server's, so that replicas agree.
// No script decodes or encodes a client's JSON.

export function createScript(source: string) {
  const sha = createHash('sha1').update(source).digest('hex');

  /** One command, EVALSHA, and EVAL only after Redis forgot the script. */
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

// Sorted sets of times: page by page, the latest first, and what is taken out of them.

export async function readSetPage(commands: CommandRunner, set: string, request: PageRequest) {
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
  const entries = toEntries(flat);
  return { entries, next: findNextPlace(entries, request) };
}

/** Members and scores alternate. */
export const toEntries = (flat: readonly string[]): readonly TimedEntry[] =>
  flat.flatMap((id, at) => (at % 2 === 0 ? [{ id, time: Number(flat[at + 1]) }] : []));

/** True when it was there: of many at the same moment, for one. */
export const removeFromSet = async (commands: CommandRunner, set: string, member: string) =>
  (await commands.run((client) => client.zrem(set, member))) === 1;
