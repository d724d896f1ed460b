// Commands to Redis fail fast while it is down or frozen, and are answered again at once when it is back.
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { StoreUnavailable } from '../store.ts';
import { createAvailability } from './availability.ts';
import type { RedisClient, RedisConnection } from './connection.ts';
import { createDeadline, DEADLINE_MS } from './deadline.ts';

export interface CommandRunner {
  /**
   * Runs commands with a deadline. @throws StoreUnavailable at once while Redis is known to be
   * down, after the deadline when it does not answer, and for errors that Redis answers.
   */
  run<Result>(commands: (client: RedisClient) => Promise<Result>): Promise<Result>;
  close(): void;
}

/** At most one new attempt to connect per second, however many requests ask for it. */
const RETRY_EVERY_MS = 1000;

/** Where its connection is lost, or given up, why it was says more than a command that it took along. */
const isConnected = (client: RedisClient): boolean =>
  client.status === 'ready' && !('stream' in client && client.stream.destroyed);

/** Of a client between two attempts to connect, or before the first. */
const UNCONNECTED: ReadonlySet<string> = new Set(['wait', 'reconnecting', 'end']);

/**
 * `isCluster` decides what one command that times out says. Of a single server: all others would, too,
 * so they fail at once until a PING is answered. In a cluster the other nodes may well answer.
 */
export function createCommandRunner(
  { client, isCluster, reconnect, close }: RedisConnection,
  { clock, log }: { clock: Clock; log: Log },
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
