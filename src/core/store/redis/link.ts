// Decisions 0.6 and 9: fail fast while Redis is down or frozen, wake up at once when it is back.
import type { Cluster, Redis } from 'ioredis';
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { StoreUnavailable } from '../store.ts';
import { createDeadline, DEADLINE_MS } from './deadline.ts';

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
  let probing = false;
  let cause: unknown;
  const waiters = new Set<() => void>();
  const within = createDeadline();

  client.on('ready', freezes ? probe : answered);
  client.on('error', (error: Error & { readonly lastNodeError?: Error }) => {
    // A cluster says only that all nodes failed; the last node says why.
    cause = error.lastNodeError ?? error;
  });
  client.on('close', () => lose(cause ?? new Error('The connection was closed')));

  /** One PING at a time; on a frozen server it waits until the connection is given up. */
  function probe(): void {
    probing = true;
    const refused = (error: unknown) => client.status === 'ready' && lose(error);
    void client
      .ping()
      .then(answered, refused)
      .finally(() => {
        probing = false;
      });
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
    if (client.status === 'reconnecting' || client.status === 'end') {
      client.connect().catch(() => {});
      return true;
    }
    // The connection stands, and what answered may have been an error: "LOADING", say.
    if (client.status !== 'ready' || probing) return false;
    probe();
    return true;
  }

  async function untilUp(): Promise<void> {
    if (state === 'closed') throw new StoreUnavailable('The store is closed');
    if (!nudge() && state !== 'starting') throw unavailable();
    let wake = () => {};
    const up = new Promise<void>((resolve) => {
      wake = resolve;
      waiters.add(wake);
    });
    await within(up, unavailable).finally(() => waiters.delete(wake));
  }

  const unavailable = () => new StoreUnavailable('Redis does not answer', { cause });

  return {
    async run(commands) {
      if (state !== 'up') await untilUp();
      try {
        return await within(commands(client), timedOut);
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        // A lost connection says more than the command that it took along.
        if (state === 'down') throw unavailable();
        throw new StoreUnavailable('Redis could not run a command', { cause: error });
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
