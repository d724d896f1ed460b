// The connections of a server: what becomes of each when it is opened, busy, idle, and at the end.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createSecondTimer } from '../platform/clock.ts';
import {
  type Connection,
  closeConnection,
  closeStalledConnections,
  createOpenConnections,
  createStallDetector,
  forgetConnection,
} from './connection.ts';
import {
  type ConnectionLimit,
  type ConnectionLimitOptions,
  createConnectionLimit,
} from './overload.ts';
import { toAddress } from './receive-request.ts';

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

// One connection: its requests that have no reply yet, in order, and what of the replies is not sent.

interface ConnectionEvents {
  /** A request has begun, on a connection that had none. */
  onBusy(): void;
  /** The last request is over, or the connection has closed. */
  onIdle(): void;
}

/** Bytes of replies not yet sent at which no more requests are worked on. */
const MAX_UNSENT_BYTES = 1_048_576;

function createConnection(socket: Socket, { onBusy, onIdle }: ConnectionEvents): Connection {
  /** With the bytes of their replies. */
  const pending = new Map<ServerResponse, number>();
  const waitingTasks: (() => void)[] = [];
  const stallDetector = createStallDetector();
  let unsentBytes = 0;
  let bytesReadBefore = -1;

  // node:http tells only the first of the pending responses that its caller is gone.
  socket.once('close', () => {
    waitingTasks.length = 0;
    for (const res of pending.keys()) if (res.socket === null) res.destroy().emit('close');
  });

  function endRequest(res: ServerResponse): void {
    const bytes = pending.get(res);
    if (bytes === undefined) return;
    unsentBytes -= bytes;
    pending.delete(res);
    while (unsentBytes < MAX_UNSENT_BYTES && waitingTasks.length > 0) waitingTasks.shift()?.();
    if (pending.size === 0) onIdle();
  }

  return {
    socket,
    address: toAddress(socket.remoteAddress),
    isClosing: false,
    startRequest(res) {
      pending.set(res, 0);
      // Not once: the wrapper that takes the listener away again costs as much as ending the request.
      res.on('close', () => endRequest(res));
      if (pending.size === 1) onBusy();
      return pending.size;
    },
    pendingResponses: () => [...pending.keys()],
    runWhenDrained(task) {
      if (unsentBytes < MAX_UNSENT_BYTES && waitingTasks.length === 0) task();
      else waitingTasks.push(task);
    },
    countReply(res, bytes) {
      if (!pending.has(res)) return;
      pending.set(res, bytes);
      unsentBytes += bytes;
    },
    checkProgress() {
      const sending = stallDetector.checkProgress({
        unsentBytes: socket.writableLength,
        sentBytes: socket.bytesWritten - socket.writableLength,
      });
      if (sending === 'stalled') return 'stalled';
      const isSilent = socket.bytesRead === bytesReadBefore;
      bytesReadBefore = socket.bytesRead;
      const [only] = pending.keys();
      const isWaiting = isSilent && pending.size === 1 && only?.req.complete === false;
      return isWaiting ? 'waiting for a body' : 'moving';
    },
  };
}
