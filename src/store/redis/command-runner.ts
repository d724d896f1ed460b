// Commands to Redis fail fast while it is down or frozen, and are answered again at once when it is back.

import { createHash } from 'node:crypto';
import { LinkedList } from '../../platform/bounded-map.ts';
import type { ClockAndLog, Log } from '../../platform/log.ts';
import { findNextPlace, type PagePlace, type PageRequest, type TimedEntry } from '../page.ts';
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

export interface CommandRunner {
  /**
   * Runs commands with a deadline. @throws StoreUnavailable at once while Redis is known to be
   * down, after the deadline when it does not answer, and for errors that Redis answers.
   */
  run<Result>(commands: (client: RedisClient) => Promise<Result>): Promise<Result>;
  close(): void;
}

/**
 * An operation of the store answers or fails within this time: a caller who waits longer for a store that is down holds a
 * connection and memory, and gets the same error later.
 */
export const DEADLINE_MS = 250;

/** At most one new attempt to connect per second, however many requests ask for it. */
const RETRY_EVERY_MS = 1000;

/** The reason why a connection was lost or given up says more than a command that it took along. */
const isConnected = (client: RedisClient): boolean =>
  client.status === 'ready' && !('stream' in client && client.stream.destroyed);

/** The states of a client between two attempts to connect, or before the first. */
const UNCONNECTED: ReadonlySet<string> = new Set(['wait', 'reconnecting', 'end']);

/**
 * `isCluster` decides what one command that times out says. Of a single server: all others would, too,
 * so they fail at once until a PING is answered. In a cluster the other nodes may well answer.
 */
export function createCommandRunner(
  { client, isCluster, reconnect, close }: RedisConnection,
  { clock, log }: ClockAndLog,
): CommandRunner {
  const availability = createAvailability(client, log);
  let lastRetry = Number.NEGATIVE_INFINITY;
  let isPinging = false;
  const withDeadline = createDeadline();

  client.on('ready', isCluster ? availability.markUp : ping);

  /** One PING at a time; on a frozen server it waits until the connection is given up. */
  function ping(): void {
    isPinging = true;
    const onError = (error: unknown) => isConnected(client) && availability.markDown(error);
    void client
      .ping()
      .then(availability.markUp, onError)
      .finally(() => {
        isPinging = false;
      });
  }

  /** True when it started something worth waiting for. */
  function retry(): boolean {
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

  async function waitUntilUp(): Promise<void> {
    if (availability.state === 'closed') throw new StoreUnavailable('The store is closed');
    if (!retry() && availability.state !== 'starting') throw createUnavailableError();
    let stopListening = () => {};
    const up = new Promise<void>((resolve) => {
      stopListening = availability.onUp(resolve);
    });
    await withDeadline(up, createUnavailableError).finally(stopListening);
  }

  const createUnavailableError = () =>
    new StoreUnavailable('Redis does not answer', { cause: availability.lastError });

  return {
    async run(commands) {
      if (availability.state !== 'up') await waitUntilUp();
      try {
        return await withDeadline(commands(client), handleTimeout);
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        // A lost connection says more than the command that it took along.
        if (availability.state === 'down') throw createUnavailableError();
        throw new StoreUnavailable('Redis could not run a command', { cause: error });
      }
    },
    close() {
      availability.close();
      close();
    },
  };

  function handleTimeout(): StoreUnavailable {
    const cause = new Error(`no answer within ${DEADLINE_MS} ms`);
    if (!isCluster && availability.state === 'up') {
      availability.markDown(cause);
      ping();
    }
    return new StoreUnavailable('Redis does not answer', { cause });
  }
}

// The log says when Redis stops to answer, and when it does again.

interface Availability {
  /** `starting` until it answers, or fails, for the first time. */
  readonly state: 'starting' | 'up' | 'down' | 'closed';
  /** Why it does not answer, as far as that is known. */
  readonly lastError: unknown;
  markUp(): void;
  markDown(cause: unknown): void;
  /** Calls `listener` whenever Redis answers again, until what it returns is called. */
  onUp(listener: () => void): () => void;
  /** Nothing changes any more, and nothing is logged. */
  close(): void;
}

/** Down as soon as the client loses its connection; up is what the caller finds out. */
function createAvailability(client: RedisClient, log: Log): Availability {
  let state: Availability['state'] = 'starting';
  let lastError: unknown;
  const listeners = new Set<() => void>();

  client.on('error', (error: Error & { readonly lastNodeError?: Error }) => {
    // A cluster says only that all nodes failed; the last node says why.
    lastError = error.lastNodeError ?? error;
  });
  client.on('close', () => markDown(lastError ?? new Error('The connection was closed')));

  function markUp(): void {
    if (state === 'up' || state === 'closed') return;
    if (state === 'down') log.info('The store answers again.');
    state = 'up';
    lastError = undefined;
    for (const listener of listeners) listener();
  }

  function markDown(cause: unknown): void {
    lastError = cause;
    if (state === 'closed') return;
    if (state !== 'down') {
      log.error(
        'The store does not answer: sessions and registered clients cannot be used. Check that Redis runs and that REDIS_URL is right.',
        { cause },
      );
    }
    state = 'down';
  }

  return {
    get state() {
      return state;
    },
    get lastError() {
      return lastError;
    },
    markUp,
    markDown,
    onUp(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close() {
      state = 'closed';
    },
  };
}

// The deadline.

/** The result, or a rejection when the time is over. */
type WithDeadline = <Result>(work: Promise<Result>, onTimeout: () => Error) => Promise<Result>;

const TICK_MS = 25;
/** The first tick comes early, as it was set for earlier operations. */
const TICKS = DEADLINE_MS / TICK_MS + 1;

interface PendingOperation {
  ticks: number;
  readonly expire: () => void;
}

/** Time is counted in ticks, by one timer for all operations: a stall of this process is not Redis's. */
function createDeadline(): WithDeadline {
  const pending = new LinkedList<PendingOperation>();
  let stopTicking: (() => void) | undefined;

  function tick(): void {
    if (pending.size === 0) {
      stopTicking?.();
      stopTicking = undefined;
    }
    for (const operation of pending) {
      operation.ticks += 1;
      if (operation.ticks >= TICKS) operation.expire();
    }
  }

  return function withDeadline(work, onTimeout) {
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

export interface LuaScript {
  /** One command, EVALSHA, and EVAL only after Redis forgot the script. */
  run(
    client: RedisClient,
    keys: readonly string[],
    args: readonly (string | number | Buffer)[],
  ): Promise<unknown>;
}

export function createScript(source: string): LuaScript {
  const sha = createHash('sha1').update(source).digest('hex');

  return {
    async run(client, keys, args) {
      try {
        return await client.evalsha(sha, keys.length, ...keys, ...args);
      } catch (error) {
        const isForgotten = error instanceof Error && error.message.startsWith('NOSCRIPT');
        if (!isForgotten) throw error;
        return client.eval(source, keys.length, ...keys, ...args);
      }
    },
  };
}

/** The server's time in milliseconds. */
export const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

// Sorted sets of times: page by page, the latest first, and what is taken out of them.

export interface SetPage {
  readonly entries: readonly TimedEntry[];
  readonly next: PagePlace | undefined;
}

export async function readSetPage(
  commands: CommandRunner,
  set: string,
  request: PageRequest,
): Promise<SetPage> {
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
  const entries = flat.flatMap((id, at) =>
    at % 2 === 0 ? [{ id, time: Number(flat[at + 1]) }] : [],
  );
  return { entries, next: findNextPlace(entries, request) };
}

/** True when it was there: of many at the same moment, for one. */
export const removeFromSet = async (commands: CommandRunner, set: string, member: string) =>
  (await commands.run((client) => client.zrem(set, member))) === 1;
