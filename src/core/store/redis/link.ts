// Decisions 0.6 and 9: fail fast while Redis is down or frozen, wake up at once when it is back.
import type { Cluster, Redis } from 'ioredis';
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { StoreUnavailable } from '../store.ts';
import { DEADLINE_MS, withDeadline } from './deadline.ts';

export type Client = Redis | Cluster;

export interface Link {
  /**
   * Runs commands with a deadline. @throws StoreUnavailable at once while Redis is known to be
   * down, after the deadline when it does not answer, and for errors that Redis answers.
   */
  run<Result>(commands: (client: Client) => Promise<Result>): Promise<Result>;
  close(): void;
}

/** Decisions 0.6: at most one new attempt per second, however many requests ask for it. */
const NUDGE_EVERY_MS = 1000;
/** A connection that stands and has not answered for so long is given up for a new one. */
const STUCK_AFTER_MS = 2000;

/**
 * `freezes` is true for a single server: when one command times out, so would all others, and
 * they fail at once until a PING is answered. In a cluster the other nodes may well answer.
 */
export function createLink(
  client: Client,
  { clock, log, freezes }: { clock: Clock; log: Log; freezes: boolean },
): Link {
  let state: 'starting' | 'up' | 'down' | 'closed' = 'starting';
  let lastNudge = Number.NEGATIVE_INFINITY;
  let silentSince = clock.monotonic();
  let cause: unknown;
  const waiters = new Set<() => void>();

  client.on('ready', freezes ? probe : answered);
  client.on('error', (error: unknown) => {
    cause = error;
  });
  client.on('close', () => lose(cause ?? new Error('The connection was closed')));

  function probe(): void {
    client.ping().then(answered, (error: unknown) => lose(error));
  }

  function answered(): void {
    if (state === 'up' || state === 'closed') return;
    if (state === 'down') log.info('The store answers again.');
    state = 'up';
    cause = undefined;
    for (const wake of waiters) wake();
  }

  function lose(reason: unknown): void {
    cause = reason;
    if (state === 'closed') return;
    if (state !== 'down') {
      silentSince = clock.monotonic();
      log.error(
        'The store does not answer: sessions and registered clients cannot be used. Check that Redis runs and that REDIS_URL is right.',
        { cause },
      );
    }
    state = 'down';
  }

  /** True when it started something worth waiting for. */
  function nudge(): boolean {
    const now = clock.monotonic();
    if (now - lastNudge < NUDGE_EVERY_MS) return false;
    lastNudge = now;
    if (client.status === 'reconnecting') {
      client.connect().catch(() => {});
      return true;
    }
    const stands = client.status === 'connect' || client.status === 'ready';
    if (stands && now - silentSince > STUCK_AFTER_MS) {
      silentSince = now;
      client.disconnect(true);
    }
    return false;
  }

  async function untilUp(): Promise<void> {
    if (state === 'closed') throw new StoreUnavailable('The store is closed');
    if (!nudge() && state !== 'starting') throw unavailable();
    let wake = () => {};
    const up = new Promise<void>((resolve) => {
      wake = resolve;
      waiters.add(wake);
    });
    await withDeadline(DEADLINE_MS, up, unavailable).finally(() => waiters.delete(wake));
  }

  const unavailable = () => new StoreUnavailable('Redis does not answer', { cause });

  return {
    async run(commands) {
      if (state !== 'up') await untilUp();
      try {
        return await withDeadline(DEADLINE_MS, commands(client), timedOut);
      } catch (error) {
        throw error instanceof StoreUnavailable
          ? error
          : new StoreUnavailable('Redis could not run a command', { cause: error });
      }
    },
    close() {
      state = 'closed';
      client.disconnect();
    },
  };

  function timedOut(): StoreUnavailable {
    const late = new Error(`no answer within ${DEADLINE_MS} ms`);
    if (freezes && state === 'up') {
      lose(late);
      probe();
    }
    return new StoreUnavailable('Redis does not answer', { cause: late });
  }
}
