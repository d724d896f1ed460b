// How many connections there may be, and which are closed for others (§12).
import type { Socket } from 'node:net';
import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { type Connection, createConnection } from './connection.ts';
import { createSecondTimer } from './second-timer.ts';

export interface ConnectionTable {
  /** Adds a connection that was accepted; at the limit it closes the one that is idle longest. */
  open(socket: Socket): void;
  get(socket: Socket): Connection;
  /**
   * Whether it is within the limit, now that others may have become idle: only one that came while
   * all others were busy is not.
   */
  claimPlace(connection: Connection): boolean;
  /** Whether the connection ends with its next reply: while draining, and beyond the limit. */
  endsWithReply(connection: Connection): boolean;
  /** From now on every reply ends its connection. */
  startDraining(): void;
  /** From now on each is closed as soon as its requests are over. */
  startClosing(): void;
  /** Closes those without a request. */
  closeIdle(): void;
  closeAll(): void;
}

export interface ConnectionTableOptions {
  /** `MAX_CONNECTIONS`; 0 = no limit. */
  readonly max: number;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Beyond the limit while all are busy: somebody may ask for /health, the others are told why not. So
 * many that a probe has its time even while thousands a second come.
 */
const MAX_BEYOND_LIMIT = 1024;

const WARN_MS = 60_000;

export function createConnectionTable({
  max,
  clock,
  log,
}: ConnectionTableOptions): ConnectionTable {
  const known = new WeakMap<Socket, Connection>();
  const all = new Set<Connection>();
  const busy = new Set<Connection>();
  /** The one that is idle longest comes first. */
  const idle = new Set<Connection>();
  const beyondLimit = new Set<Connection>();
  /** Busy ones that only wait for a body: next to be closed when none is idle. */
  const waitingForBody = new Set<Connection>();
  let isDraining = false;
  let isClosing = false;
  const startMeasuring = createSecondTimer(clock, {
    isNeeded: () => busy.size > 0,
    task: closeStalled,
  });
  const warnOfLimit = createLimitWarning(max, clock, log);

  function create(socket: Socket): Connection {
    const connection = createConnection(socket, {
      onBusy() {
        // One that somebody else's server accepted is not ours to close.
        if (!all.has(connection)) return;
        idle.delete(connection);
        busy.add(connection);
        startMeasuring();
      },
      onIdle() {
        busy.delete(connection);
        waitingForBody.delete(connection);
        if (!all.has(connection)) return;
        if (isClosing) socket.destroySoon();
        else if (!beyondLimit.has(connection)) idle.add(connection);
      },
    });
    known.set(socket, connection);
    return connection;
  }

  function forget(connection: Connection): void {
    for (const set of [all, idle, beyondLimit, waitingForBody]) set.delete(connection);
  }

  function close(connection: Connection): void {
    forget(connection);
    connection.socket.destroy();
  }

  /** At once, with what its caller has not read: the system would keep that for minutes. */
  function reset(connection: Connection): void {
    forget(connection);
    connection.socket.resetAndDestroy();
  }

  /** False when all are busy. */
  function closeLongestIdle(): boolean {
    const [longest] = idle.size > 0 ? idle : waitingForBody;
    if (longest !== undefined) close(longest);
    return longest !== undefined;
  }

  function makeRoomFor(newest: Connection): void {
    warnOfLimit(busy.size);
    if (closeLongestIdle()) return;
    beyondLimit.add(newest);
    const [oldest] = beyondLimit;
    if (beyondLimit.size > MAX_BEYOND_LIMIT && oldest !== undefined) close(oldest);
  }

  function closeStalled(): void {
    for (const connection of busy) {
      if (connection.isStalled()) reset(connection);
      else if (connection.isWaitingForBody() && all.has(connection)) waitingForBody.add(connection);
      else waitingForBody.delete(connection);
    }
  }

  function claimPlace(connection: Connection): boolean {
    if (!beyondLimit.has(connection)) return true;
    const hasPlace = all.size <= max || closeLongestIdle();
    if (hasPlace) beyondLimit.delete(connection);
    return hasPlace;
  }

  return {
    open(socket) {
      const connection = create(socket);
      all.add(connection);
      socket.once('close', () => forget(connection));
      if (max > 0 && all.size > max) makeRoomFor(connection);
      if (!beyondLimit.has(connection)) idle.add(connection);
    },
    get: (socket) => known.get(socket) ?? create(socket),
    claimPlace,
    endsWithReply: (connection) => isDraining || !claimPlace(connection),
    startDraining() {
      isDraining = true;
    },
    startClosing() {
      isClosing = true;
    },
    closeIdle() {
      for (const connection of all) if (!busy.has(connection)) close(connection);
    },
    closeAll() {
      for (const connection of all) close(connection);
    },
  };
}

/** One line a minute at most. */
function createLimitWarning(max: number, clock: Clock, log: Log) {
  let warnedAt = Number.NEGATIVE_INFINITY;

  return function warnOfLimit(busy: number): void {
    const now = clock.monotonic();
    if (now - warnedAt < WARN_MS) return;
    warnedAt = now;
    log.warn('MAX_CONNECTIONS is reached: idle connections are closed for new ones.', {
      connections: max,
      busy,
    });
  };
}
