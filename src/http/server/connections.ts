// The connections of a server: what becomes of each when it is opened, busy, idle, and at the end; and which are closed for
// others (`MAX_CONNECTIONS`, §12).

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Link, LinkedList } from '../../platform/bounded-map.ts';
import { createSecondTimer } from '../../platform/clock.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { toAddress } from './receive-request.ts';

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

  function create(socket: Socket) {
    const connection = new Connection(socket, events);
    known.set(socket, connection);
    return connection;
  }

  /** A busy one stays busy until its requests are over. */
  function forget(connection: Connection) {
    idle.remove(connection.place);
    for (const set of [all, beyondLimit, waitingForBody]) set.delete(connection);
  }

  function close(connection: Connection) {
    forget(connection);
    connection.socket.destroy();
  }

  /** Closes those whose callers read too slowly, and finds those that only wait for a body. */
  function closeStalled() {
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

  /** False when all are busy. */
  function closeLongestIdle() {
    const [longest] = idle.size > 0 ? idle : waitingForBody;
    if (longest !== undefined) close(longest);
    return longest !== undefined;
  }

  return {
    /** Adds a connection that was accepted; at the limit the one that is idle longest is closed, or the new one is beyond it. */
    open(socket: Socket): void {
      const connection = create(socket);
      all.add(connection);
      if (maxConnections > 0 && all.size > maxConnections) {
        warnOfLimit(busy.size);
        if (!closeLongestIdle()) beyondLimit.add(connection);
        const [oldest] = beyondLimit;
        if (beyondLimit.size > MAX_BEYOND_LIMIT && oldest !== undefined) close(oldest);
      }
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
function move(connection: Connection, list: LinkedList<Connection>) {
  connection.place?.remove();
  connection.place = list.add(connection);
}

// One connection: its requests that have no reply yet, in order, and what of the replies is not sent.

/** Calls of a connection to its table. */
interface ConnectionEvents {
  /** A request has begun, on a connection that had none. */
  onBusy(connection: Connection): void;
  /** The last request is over, or the connection has closed. */
  onIdle(connection: Connection): void;
  onClose(connection: Connection): void;
}

interface OwedReply {
  readonly res: ServerResponse;
  /** Bytes of its reply; 0 while there is none. */
  bytes: number;
}

/** Bytes of replies not yet sent at which no more requests are worked on. */
const MAX_UNSENT_BYTES = 1_048_576;

/** A class: thousands of connections stand for minutes, and closures would take three times the memory. */
export class Connection {
  readonly socket: Socket;
  /** At its other end, canonical; or `unknown`. */
  readonly address: string;
  /** Its last reply is on its way: nothing more of it is looked at. */
  isClosing = false;
  /** Among those that are busy, or those that are idle. */
  place: Link<Connection> | undefined;
  private readonly events: ConnectionEvents;
  private readonly pending = new LinkedList<OwedReply>();
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

  /** Adds a request; returns how many of them are pending. */
  startRequest(res: ServerResponse): number {
    const link = this.pending.add({ res, bytes: 0 });
    // Not once: the wrapper that takes the listener away again costs as much as ending the request.
    res.on('close', () => this.endRequest(link));
    if (this.pending.size === 1) this.events.onBusy(this);
    return this.pending.size;
  }

  /** Those of the pending requests, in their order. */
  pendingResponses(): readonly ServerResponse[] {
    return [...this.pending].map(({ res }) => res);
  }

  /** Runs the task once enough of the replies before it is sent; mostly at once. */
  runWhenDrained(task: () => void): void {
    if (this.unsentBytes < MAX_UNSENT_BYTES && this.waitingTasks === undefined) {
      task();
      return;
    }
    this.waitingTasks ??= [];
    this.waitingTasks.push(task);
  }

  /** Counts a reply until all of it is sent. */
  countReply(res: ServerResponse, bytes: number): void {
    const reply = this.pending.find((one) => one.res === res);
    if (reply === undefined) return;
    reply.bytes = bytes;
    this.unsentBytes += bytes;
  }

  /**
   * Tells its progress since the last call; to be called once a second. Stalled: its caller reads too slowly to go on.
   * Waiting for a body: nothing came of the body of its only request.
   */
  checkProgress(): 'moving' | 'stalled' | 'waiting for a body' {
    const { socket, pending } = this;
    const unsentBytes = socket.writableLength;
    if (unsentBytes === 0) this.stallDetector = undefined;
    else {
      this.stallDetector ??= new StallDetector();
      const sentBytes = socket.bytesWritten - unsentBytes;
      const progress = this.stallDetector.checkProgress({ unsentBytes, sentBytes });
      if (progress === 'stalled') return progress;
    }
    const isSilent = socket.bytesRead === this.bytesReadBefore;
    this.bytesReadBefore = socket.bytesRead;
    const [only] = pending;
    const isWaiting = isSilent && pending.size === 1 && only?.res.req.complete === false;
    return isWaiting ? 'waiting for a body' : 'moving';
  }

  private endRequest(link: Link<OwedReply>): void {
    if (link.list === undefined) return;
    this.unsentBytes -= link.value.bytes;
    link.remove();
    while (this.waitingTasks !== undefined && this.unsentBytes < MAX_UNSENT_BYTES) {
      const task = this.waitingTasks.shift();
      if (task === undefined) this.waitingTasks = undefined;
      else task();
    }
    if (this.pending.size === 0) this.events.onIdle(this);
  }
}

// Replies that nobody reads (§12). An idle stream does not count as stalled.

/** Seconds without any progress after which a caller is given up. */
const MAX_SILENT_SECONDS = 30;
/** In so many seconds a caller reads so many bytes. */
const WINDOW_SECONDS = 60;
const WINDOW_BYTES = 60 * 1024;

export class StallDetector {
  private sentBefore: number | undefined;
  private silentSeconds = 0;
  private windowSeconds = 0;
  private windowBytes = 0;

  /**
   * To be called once a second. Stalled is a caller that reads too slowly to go on. Seconds in which
   * the process itself was too busy to send are not counted.
   */
  checkProgress({
    unsentBytes,
    sentBytes,
  }: {
    /** Waiting for the caller. */
    readonly unsentBytes: number;
    /** Sent since the connection began. */
    readonly sentBytes: number;
  }): 'moving' | 'stalled' {
    if (unsentBytes === 0) {
      this.sentBefore = undefined;
      return 'moving';
    }
    if (this.sentBefore === undefined) {
      this.sentBefore = sentBytes;
      this.silentSeconds = this.windowSeconds = this.windowBytes = 0;
      return 'moving';
    }
    const progress = sentBytes - this.sentBefore;
    this.sentBefore = sentBytes;
    this.silentSeconds = progress > 0 ? 0 : this.silentSeconds + 1;
    this.windowBytes += progress;
    this.windowSeconds++;
    if (this.silentSeconds >= MAX_SILENT_SECONDS) return 'stalled';
    if (this.windowSeconds < WINDOW_SECONDS) return 'moving';
    const isTooSlow = this.windowBytes < WINDOW_BYTES;
    this.windowSeconds = this.windowBytes = 0;
    return isTooSlow ? 'stalled' : 'moving';
  }
}
