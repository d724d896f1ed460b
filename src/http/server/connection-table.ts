// The connections of a server: what becomes of each when it is opened, busy, idle, and at the end.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Link, LinkedList } from '../../platform/bounded-map.ts';
import { createSecondTimer } from '../../platform/clock.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  type Connection,
  type ConnectionProgress,
  closeConnection,
  closeStalledConnections,
  createOpenConnections,
  forgetConnection,
  StallDetector,
} from './connection.ts';
import { type ConnectionLimit, createConnectionLimit } from './overload.ts';
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

export function createConnectionTable(runtime: Runtime): ConnectionTable {
  const known = new WeakMap<Socket, Connection>();
  const open = createOpenConnections();
  const { all, busy, idle, beyondLimit, waitingForBody } = open;
  const { makeRoomFor, tryClaimPlace } = createConnectionLimit(
    open,
    runtime.config.http.maxConnections,
    runtime,
  );
  let isDraining = false;
  let isClosing = false;
  const startMeasuring = createSecondTimer(runtime.clock, {
    isNeeded: () => busy.size > 0,
    task: () => closeStalledConnections(open),
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
    onClose: (connection) => forgetConnection(open, connection),
  };

  function create(socket: Socket): Connection {
    const connection = new ServedConnection(socket, events);
    known.set(socket, connection);
    return connection;
  }

  return {
    open(socket) {
      const connection = create(socket);
      all.add(connection);
      makeRoomFor(connection);
      if (!beyondLimit.has(connection)) move(connection, idle);
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
      for (const connection of all)
        if (connection.place?.list !== busy) closeConnection(open, connection);
    },
    closeAll() {
      for (const connection of all) closeConnection(open, connection);
    },
  };
}

/** Into the list, and out of the other one. */
function move(connection: Connection, list: LinkedList<Connection>): void {
  connection.place?.remove();
  connection.place = list.add(connection);
}

// One connection: its requests that have no reply yet, in order, and what of the replies is not sent.

interface ConnectionEvents {
  /** A request has begun, on a connection that had none. */
  onBusy(connection: Connection): void;
  /** The last request is over, or the connection has closed. */
  onIdle(connection: Connection): void;
  onClose(connection: Connection): void;
}

interface PendingReply {
  readonly res: ServerResponse;
  /** Of its reply; 0 while there is none. */
  bytes: number;
}

/** Bytes of replies not yet sent at which no more requests are worked on. */
const MAX_UNSENT_BYTES = 1_048_576;

/** A class: thousands of connections stand for minutes, and closures would take three times the memory. */
class ServedConnection implements Connection {
  readonly socket: Socket;
  readonly address: string;
  isClosing = false;
  place: Link<Connection> | undefined;
  private readonly events: ConnectionEvents;
  private readonly pending = new LinkedList<PendingReply>();
  private waitingTasks: (() => void)[] | undefined;
  /** While something waits for its caller. */
  private stallDetector: StallDetector | undefined;
  private unsentBytes = 0;
  private bytesReadBefore = -1;

  constructor(socket: Socket, events: ConnectionEvents) {
    this.socket = socket;
    this.address = toAddress(socket.remoteAddress);
    this.events = events;
    // Not once: the wrapper that takes the listener away again would stay as long as the connection.
    socket.on('close', () => {
      events.onClose(this);
      this.waitingTasks = undefined;
      // node:http tells only the first of the pending responses that its caller is gone.
      for (const res of this.pendingResponses()) {
        if (res.socket === null) res.destroy().emit('close');
      }
    });
  }

  startRequest(res: ServerResponse): number {
    const link = this.pending.add({ res, bytes: 0 });
    // Not once: the wrapper that takes the listener away again costs as much as ending the request.
    res.on('close', () => this.endRequest(link));
    if (this.pending.size === 1) this.events.onBusy(this);
    return this.pending.size;
  }

  pendingResponses(): readonly ServerResponse[] {
    return [...this.pending].map(({ res }) => res);
  }

  runWhenDrained(task: () => void): void {
    if (this.unsentBytes < MAX_UNSENT_BYTES && this.waitingTasks === undefined) {
      task();
      return;
    }
    this.waitingTasks ??= [];
    this.waitingTasks.push(task);
  }

  countReply(res: ServerResponse, bytes: number): void {
    const reply = this.pending.find((one) => one.res === res);
    if (reply === undefined) return;
    reply.bytes = bytes;
    this.unsentBytes += bytes;
  }

  checkProgress(): ConnectionProgress {
    const { socket, pending } = this;
    if (this.isStalled()) return 'stalled';
    const isSilent = socket.bytesRead === this.bytesReadBefore;
    this.bytesReadBefore = socket.bytesRead;
    const [only] = pending;
    const isWaiting = isSilent && pending.size === 1 && only?.res.req.complete === false;
    return isWaiting ? 'waiting for a body' : 'moving';
  }

  private isStalled(): boolean {
    const { socket } = this;
    const unsentBytes = socket.writableLength;
    if (unsentBytes === 0) {
      this.stallDetector = undefined;
      return false;
    }
    this.stallDetector ??= new StallDetector();
    const sentBytes = socket.bytesWritten - unsentBytes;
    return this.stallDetector.checkProgress({ unsentBytes, sentBytes }) === 'stalled';
  }

  private endRequest(link: Link<PendingReply>): void {
    if (link.list === undefined) return;
    this.unsentBytes -= link.value.bytes;
    link.remove();
    this.runWaiting();
    if (this.pending.size === 0) this.events.onIdle(this);
  }

  private runWaiting(): void {
    while (this.waitingTasks !== undefined && this.unsentBytes < MAX_UNSENT_BYTES) {
      const task = this.waitingTasks.shift();
      if (task === undefined) this.waitingTasks = undefined;
      else task();
    }
  }
}
