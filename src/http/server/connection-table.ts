// The connections of a server: what becomes of each when it is opened, busy, idle, and at the end; and which are closed for
// others (`MAX_CONNECTIONS`, §12).
import type { Socket } from 'node:net';
import { createSecondTimer } from '../../platform/clock.ts';
import { LinkedList } from '../../platform/linked-list.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { Connection, type ConnectionEvents } from './connection.ts';

/**
 * Extra connections accepted while all are busy, so that /health can be answered. Others get 503. So
 * many that a probe is answered even while thousands of connections a second arrive.
 */
const MAX_BEYOND_LIMIT = 1024;

export type ConnectionTable = ReturnType<typeof createConnectionTable>;

export function createConnectionTable({ config, clock, log }: Runtime) {
  const { maxConnections } = config.http;
  const known = new WeakMap<Socket, Connection>();
  const all = new Set<Connection>();
  /** With requests that have no reply yet. */
  const busy = new LinkedList<Connection>();
  /** The one that is idle longest comes first. */
  const idle = new LinkedList<Connection>();
  /** Accepted while all others were busy. */
  const beyondLimit = new Set<Connection>();
  /** Busy ones that only wait for a body: next to be closed when none is idle. */
  const waitingForBody = new Set<Connection>();
  let isDraining = false;
  let isClosing = false;

  /** One line a minute at most. */
  const warnOfLimit = createWarnThrottle(clock, (busyConnections: number) =>
    log.warn('MAX_CONNECTIONS is reached: idle connections are closed for new ones.', {
      connections: maxConnections,
      busy: busyConnections,
    }),
  );

  const startMeasuring = createSecondTimer(clock, {
    isNeeded: () => busy.size > 0,
    task: closeStalled,
  });

  const events: ConnectionEvents = {
    onBusy(connection) {
      // One that somebody else's server accepted is not ours to close.
      if (!all.has(connection)) return;
      move(connection, busy);
      startMeasuring();
    },
    onIdle(connection) {
      busy.remove(connection.place);
      waitingForBody.delete(connection);
      if (!all.has(connection)) return;
      if (isClosing) connection.socket.destroySoon();
      else if (!beyondLimit.has(connection)) move(connection, idle);
    },
    onClose: forget,
  };

  function create(socket: Socket): Connection {
    const connection = new Connection(socket, events);
    known.set(socket, connection);
    return connection;
  }

  /** A busy one stays busy until its requests are over. */
  function forget(connection: Connection): void {
    idle.remove(connection.place);
    for (const set of [all, beyondLimit, waitingForBody]) set.delete(connection);
  }

  function close(connection: Connection): void {
    forget(connection);
    connection.socket.destroy();
  }

  /** Closes those whose callers read too slowly, and finds those that only wait for a body. */
  function closeStalled(): void {
    // A copy: one that is reset is removed.
    for (const connection of [...busy]) {
      const progress = connection.checkProgress();
      if (progress === 'stalled') {
        forget(connection);
        // At once, with what its caller has not read: the system would keep that for minutes.
        connection.socket.resetAndDestroy();
      } else if (progress === 'waiting for a body' && all.has(connection)) {
        waitingForBody.add(connection);
      } else waitingForBody.delete(connection);
    }
  }

  /** At the limit it closes the connection that is idle longest; where none is, `newest` is beyond it. */
  function makeRoomFor(newest: Connection): void {
    if (maxConnections === 0 || all.size <= maxConnections) return;
    warnOfLimit(busy.size);
    if (closeLongestIdle()) return;
    beyondLimit.add(newest);
    const [oldest] = beyondLimit;
    if (beyondLimit.size > MAX_BEYOND_LIMIT && oldest !== undefined) close(oldest);
  }

  /** False when all are busy. */
  function closeLongestIdle(): boolean {
    const [longest] = idle.size > 0 ? idle : waitingForBody;
    if (longest !== undefined) close(longest);
    return longest !== undefined;
  }

  return {
    /** Adds a connection that was accepted; at the limit it closes the one that is idle longest. */
    open(socket: Socket): void {
      const connection = create(socket);
      all.add(connection);
      makeRoomFor(connection);
      if (!beyondLimit.has(connection)) move(connection, idle);
    },
    get: (socket: Socket): Connection => known.get(socket) ?? create(socket),
    /**
     * False only for one that came while all others were busy, and still are. To make room, it closes the
     * connection that is idle longest.
     */
    tryClaimPlace(connection: Connection): boolean {
      if (!beyondLimit.has(connection)) return true;
      const hasPlace = all.size <= maxConnections || closeLongestIdle();
      if (hasPlace) beyondLimit.delete(connection);
      return hasPlace;
    },
    /** True if every reply ends its connection. */
    isDraining: () => isDraining,
    /** From now on every reply ends its connection. */
    startDraining(): void {
      isDraining = true;
    },
    /** From now on each is closed as soon as its requests are over. */
    startClosing(): void {
      isClosing = true;
    },
    /** Closes those without a request. */
    closeIdle(): void {
      for (const connection of all) if (connection.place?.list !== busy) close(connection);
    },
    closeAll(): void {
      for (const connection of all) close(connection);
    },
  };
}

/** Into the list, and out of the other one. */
function move(connection: Connection, list: LinkedList<Connection>): void {
  connection.place?.remove();
  connection.place = list.add(connection);
}
