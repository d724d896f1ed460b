// The connections of a server: what becomes of each when it is opened, busy, idle, and at the end.
import type { Socket } from 'node:net';
import { createSecondTimer } from '../platform/clock.ts';
import {
  type Connection,
  closeConnection,
  closeStalledConnections,
  createConnection,
  createOpenConnections,
  forgetConnection,
} from './connection.ts';
import {
  type ConnectionLimit,
  type ConnectionLimitOptions,
  createConnectionLimit,
} from './overload.ts';

export interface ConnectionTable {
  /** Adds a connection that was accepted; at the limit it closes the one that is idle longest. */
  open(socket: Socket): void;
  get(socket: Socket): Connection;
  readonly tryClaimPlace: ConnectionLimit['tryClaimPlace'];
  /** Whether every reply ends its connection. */
  isDraining(): boolean;
  /** From now on every reply ends its connection. */
  startDraining(): void;
  /** From now on each is closed as soon as its requests are over. */
  startClosing(): void;
  /** Closes those without a request. */
  closeIdle(): void;
  closeAll(): void;
}

export function createConnectionTable(options: ConnectionLimitOptions): ConnectionTable {
  const known = new WeakMap<Socket, Connection>();
  const open = createOpenConnections();
  const { all, busy, idle, beyondLimit, waitingForBody } = open;
  const { makeRoomFor, tryClaimPlace } = createConnectionLimit(open, options);
  let isDraining = false;
  let isClosing = false;
  const startMeasuring = createSecondTimer(options.clock, {
    isNeeded: () => busy.size > 0,
    task: () => closeStalledConnections(open),
  });

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

  return {
    open(socket) {
      const connection = create(socket);
      all.add(connection);
      socket.once('close', () => forgetConnection(open, connection));
      makeRoomFor(connection);
      if (!beyondLimit.has(connection)) idle.add(connection);
    },
    get: (socket) => known.get(socket) ?? create(socket),
    tryClaimPlace,
    isDraining: () => isDraining,
    startDraining() {
      isDraining = true;
    },
    startClosing() {
      isClosing = true;
    },
    closeIdle() {
      for (const connection of all) if (!busy.has(connection)) closeConnection(open, connection);
    },
    closeAll() {
      for (const connection of all) closeConnection(open, connection);
    },
  };
}
