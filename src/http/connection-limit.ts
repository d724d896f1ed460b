// `MAX_CONNECTIONS` (§12): which connections are closed for others, and which are beyond the limit.
import type { Clock } from '../core/clock.ts';
import type { HttpConfig } from '../core/config/groups/http.ts';
import type { Log } from '../core/log.ts';
import { createWarnThrottle } from '../core/log-throttle.ts';
import type { Connection } from './connection.ts';
import { closeConnection, type OpenConnections } from './open-connections.ts';

export interface ConnectionLimit {
  /** At the limit it closes the connection that is idle longest; where none is, `newest` is beyond it. */
  makeRoomFor(newest: Connection): void;
  /**
   * False only for one that came while all others were busy, and still are. To make room, it closes the
   * connection that is idle longest.
   */
  tryClaimPlace(connection: Connection): boolean;
}

export interface ConnectionLimitOptions extends Pick<HttpConfig, 'maxConnections'> {
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Extra connections accepted while all are busy, so that /health can be answered. Others get 503. So
 * many that a probe is answered even while thousands of connections a second arrive.
 */
const MAX_BEYOND_LIMIT = 1024;

export function createConnectionLimit(
  open: OpenConnections,
  { maxConnections, clock, log }: ConnectionLimitOptions,
): ConnectionLimit {
  const { all, busy, idle, beyondLimit, waitingForBody } = open;
  const warnOfLimit = createLimitWarning(maxConnections, clock, log);

  /** False when all are busy. */
  function closeLongestIdle(): boolean {
    const [longest] = idle.size > 0 ? idle : waitingForBody;
    if (longest !== undefined) closeConnection(open, longest);
    return longest !== undefined;
  }

  return {
    makeRoomFor(newest) {
      if (maxConnections === 0 || all.size <= maxConnections) return;
      warnOfLimit(busy.size);
      if (closeLongestIdle()) return;
      beyondLimit.add(newest);
      const [oldest] = beyondLimit;
      if (beyondLimit.size > MAX_BEYOND_LIMIT && oldest !== undefined) {
        closeConnection(open, oldest);
      }
    },
    tryClaimPlace(connection) {
      if (!beyondLimit.has(connection)) return true;
      const hasPlace = all.size <= maxConnections || closeLongestIdle();
      if (hasPlace) beyondLimit.delete(connection);
      return hasPlace;
    },
  };
}

/** One line a minute at most. */
const createLimitWarning = (maxConnections: number, clock: Clock, log: Log) =>
  createWarnThrottle(clock, (busy: number) =>
    log.warn('MAX_CONNECTIONS is reached: idle connections are closed for new ones.', {
      connections: maxConnections,
      busy,
    }),
  );
