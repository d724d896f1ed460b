// Whether Redis answers. The log says when it stops to, and when it does again.
import type { Log } from '../../log.ts';
import type { RedisClient } from './connection.ts';

export interface Availability {
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
export function createAvailability(client: RedisClient, log: Log): Availability {
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
