// Decisions 10, "Bounds": how many connections there may be, and which are closed for others.
import type { Socket } from 'node:net';
import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { type Connection, createConnection } from './connection.ts';

export interface Connections {
  /** Notes a connection that was accepted; at the limit it closes the one that is idle longest. */
  open(socket: Socket): void;
  of(socket: Socket): Connection;
  /** Whether it is within the limit: only one that came while all others were busy is not. */
  hasPlace(connection: Connection): boolean;
  /** From now on each is closed when its requests are over. */
  startClosing(): void;
  /** Closes those without a request. */
  closeIdle(): void;
  closeAll(): void;
}

export interface ConnectionsOptions {
  /** `MAX_CONNECTIONS`; 0 = no limit. */
  readonly max: number;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Beyond the limit while all are busy: somebody may ask for /health, the others are told why not. So
 * many that a probe has its time even while thousands a second come.
 */
const MAX_BEYOND = 1024;

const MEASURE_MS = 1000;
const WARN_MS = 60_000;

export function createConnections({ max, clock, log }: ConnectionsOptions): Connections {
  const known = new WeakMap<Socket, Connection>();
  const all = new Set<Connection>();
  const busy = new Set<Connection>();
  /** The one that is idle longest comes first. */
  const idle = new Set<Connection>();
  const beyond = new Set<Connection>();
  /** Busy ones that only wait for a body: next to be closed when none is idle. */
  const waiting = new Set<Connection>();
  let isMeasuring = false;
  let isClosing = false;
  let warnedAt = Number.NEGATIVE_INFINITY;

  function create(socket: Socket): Connection {
    const connection = createConnection(socket, {
      onBusy() {
        // One that somebody else's server accepted is not ours to close.
        if (!all.has(connection)) return;
        idle.delete(connection);
        busy.add(connection);
        measureLater();
      },
      onIdle() {
        busy.delete(connection);
        waiting.delete(connection);
        if (!all.has(connection)) return;
        if (isClosing) socket.destroySoon();
        else if (!beyond.has(connection)) idle.add(connection);
      },
    });
    known.set(socket, connection);
    return connection;
  }

  function forget(connection: Connection): void {
    for (const set of [all, idle, beyond, waiting]) set.delete(connection);
  }

  function close(connection: Connection): void {
    forget(connection);
    connection.socket.destroy();
  }

  /** At once, with what its caller has not taken: the system would keep that for minutes. */
  function reset(connection: Connection): void {
    forget(connection);
    connection.socket.resetAndDestroy();
  }

  /** False when all are busy. */
  function closeLongestIdle(): boolean {
    const [longest] = idle.size > 0 ? idle : waiting;
    if (longest !== undefined) close(longest);
    return longest !== undefined;
  }

  function makeRoomFor(newest: Connection): void {
    warn();
    if (closeLongestIdle()) return;
    beyond.add(newest);
    const [oldest] = beyond;
    if (beyond.size > MAX_BEYOND && oldest !== undefined) close(oldest);
  }

  function warn(): void {
    const now = clock.monotonic();
    if (now - warnedAt < WARN_MS) return;
    warnedAt = now;
    log.warn('MAX_CONNECTIONS is reached: idle connections are closed for new ones.', {
      connections: max,
      busy: busy.size,
    });
  }

  function measureLater(): void {
    if (isMeasuring || busy.size === 0) return;
    isMeasuring = true;
    clock.after(MEASURE_MS, () => {
      isMeasuring = false;
      for (const connection of busy) {
        if (connection.isStalled()) reset(connection);
        else if (connection.isWaitingForBody() && all.has(connection)) waiting.add(connection);
        else waiting.delete(connection);
      }
      measureLater();
    });
  }

  return {
    open(socket) {
      const connection = create(socket);
      all.add(connection);
      socket.once('close', () => forget(connection));
      if (max > 0 && all.size > max) makeRoomFor(connection);
      if (!beyond.has(connection)) idle.add(connection);
    },
    of: (socket) => known.get(socket) ?? create(socket),
    hasPlace(connection) {
      if (!beyond.has(connection)) return true;
      const hasPlace = all.size <= max || closeLongestIdle();
      if (hasPlace) beyond.delete(connection);
      return hasPlace;
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
