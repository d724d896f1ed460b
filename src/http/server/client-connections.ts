// Connections of clients: tracks which are busy and which are idle, and closes some to make room for others
// (`MAX_CONNECTIONS`, §12).

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { canonicalizeAddress } from '../../platform/address.ts';
import { type Link, LinkedList } from '../../platform/bounded-map.ts';
import { createSecondTimer } from '../../platform/clock.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/**
 * Extra connections accepted while all are busy, so that /health can be answered; other requests get 503. Enough of them
 * that a probe is answered even while thousands of connections a second arrive.
 */
const MAX_BEYOND_LIMIT = 1024;

export type ConnectionTable = ReturnType<typeof createConnectionTable>;

export function createConnectionTable({ config, clock, log }: Runtime) {
  const { maxConnections } = config.http;
  const known = new WeakMap<Socket, Connection>();
  const all = new Set<Connection>();
  /** Connections with requests that have no reply yet. */
  const busy = new LinkedList<Connection>();
  /** The one that has been idle longest comes first. */
  const idle = new LinkedList<Connection>();
  /** Accepted while all others were busy. */
  const beyondLimit = new Set<Connection>();
  /** Busy connections that only wait for a body: closed next when none is idle. */
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
      // A connection that another server accepted is not closed here.
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

  /** Leaves a busy connection among the busy ones until its requests have ended. */
  function forget(connection: Connection) {
    idle.remove(connection.place);
    for (const set of [all, beyondLimit, waitingForBody]) set.delete(connection);
  }

  function close(connection: Connection) {
    forget(connection);
    connection.socket.destroy();
  }

  /** Closes connections whose clients read too slowly, and finds those that only wait for a body. */
  function closeStalled() {
    // Iterates over a copy, since a connection that is reset is removed.
    for (const connection of [...busy]) {
      const progress = connection.checkProgress();
      if (progress === 'stalled') {
        forget(connection);
        // Drops unread bytes at once: the system would keep them for minutes.
        connection.socket.resetAndDestroy();
      } else if (progress === 'waiting for a body' && all.has(connection)) {
        waitingForBody.add(connection);
      } else waitingForBody.delete(connection);
    }
  }

  /** Returns false if all connections are busy. */
  function closeLongestIdle() {
    const [longest] = idle.size > 0 ? idle : waitingForBody;
    if (longest !== undefined) close(longest);
    return longest !== undefined;
  }

  /**
   * Gives a connection beyond the limit a slot, if one is free or can be freed by closing the connection that has been idle
   * longest.
   */
  function tryClaimPlace(connection: Connection) {
    const hasPlace = all.size <= maxConnections || closeLongestIdle();
    if (hasPlace) beyondLimit.delete(connection);
    return hasPlace;
  }

  return {
    /**
     * Adds an accepted connection. At the limit it closes the one that has been idle longest, or puts the new one beyond the limit.
     */
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
    beyondLimit,
    tryClaimPlace,
    /** Returns true if the next reply ends its connection. */
    isLastReply: (connection: Connection): boolean =>
      isDraining || (beyondLimit.has(connection) && !tryClaimPlace(connection)),
    /** From now on every reply ends its connection. */
    startDraining(): void {
      isDraining = true;
    },
    /** From now on a connection is closed as soon as its requests have ended. */
    startClosing(): void {
      isClosing = true;
    },
    /** Closes connections without a request. */
    closeIdle(): void {
      for (const connection of all) if (connection.place?.list !== busy) close(connection);
    },
    closeAll(): void {
      for (const connection of all) close(connection);
    },
  };
}

/** Moves the connection to this list from the other one. */
function move(connection: Connection, list: LinkedList<Connection>) {
  connection.place?.list?.remove(connection.place);
  connection.place = list.add(connection);
}

// One connection: its pending requests in order, and the bytes of replies that are not sent yet.

interface ConnectionEvents {
  /** Called when a request begins on a connection that had none. */
  onBusy(connection: Connection): void;
  /** Called when the last request has ended, or the connection has closed. */
  onIdle(connection: Connection): void;
  onClose(connection: Connection): void;
}

/** A pending request, in the list of its connection. */
export type OwedReply = Link<{
  readonly res: ServerResponse;
  /** Bytes of its reply; 0 before there is one. */
  bytes: number;
}>;

/** Requests of one connection that wait for their replies. */
const MAX_PIPELINED = 64;

/** High-water mark of unsent replies: from it on, further requests of the connection wait. */
const MAX_UNSENT_BYTES = 1_048_576;

/** A class, since thousands of connections stay open for minutes, and closures would take three times the memory. */
export class Connection {
  readonly socket: Socket;
  /** The peer's address, canonical, or `unknown`. */
  readonly address: string;
  /** The last reply is on its way: further requests are ignored. */
  isClosing = false;
  /** In the list of busy connections, or in that of idle ones. */
  place: Link<Connection> | undefined = undefined;
  private readonly events: ConnectionEvents;
  private readonly pending = new LinkedList<OwedReply['value']>();
  private waiting: (() => void)[] | undefined = undefined;
  /** Set while bytes wait for the client. */
  private stallDetector: StallDetector | undefined = undefined;
  private unsentBytes = 0;
  private bytesReadBefore = -1;

  constructor(socket: Socket, events: ConnectionEvents) {
    this.socket = socket;
    this.address = toAddress(socket.remoteAddress);
    this.events = events;
    // Not `once`: the wrapper that removes the listener would live as long as the connection.
    socket.on('close', () => {
      events.onClose(this);
      this.waiting = undefined;
      // node:http tells only the first of the pending responses that the client is gone.
      for (const res of this.pendingResponses()) {
        if (res.socket === null) res.destroy().emit('close');
      }
    });
  }

  /** Adds a request. Undefined if too many are pending: each holds one in memory. */
  startRequest(res: ServerResponse): OwedReply | undefined {
    const owed = this.pending.add({ res, bytes: 0 });
    // Not `once`: the wrapper that removes the listener costs as much as ending the request.
    res.on('close', () => this.endRequest(owed));
    if (this.pending.size === 1) this.events.onBusy(this);
    return this.pending.size > MAX_PIPELINED ? undefined : owed;
  }

  /** Returns the responses of pending requests, in their order. */
  pendingResponses(): readonly ServerResponse[] {
    return [...this.pending].map(({ res }) => res);
  }

  /** Back-pressure: undefined below `MAX_UNSENT_BYTES`, which is the usual case. Streams do not count. */
  waitForUnsentReplies(): Promise<void> | undefined {
    if (this.unsentBytes < MAX_UNSENT_BYTES && this.waiting === undefined) return undefined;
    this.waiting ??= [];
    const { waiting } = this;
    return new Promise((resolve) => void waiting.push(resolve));
  }

  /** Counts a reply until all of it is sent. */
  countReply(owed: OwedReply, bytes: number): void {
    if (owed.list === undefined) return;
    owed.value.bytes = bytes;
    this.unsentBytes += bytes;
  }

  /**
   * Reports the progress since the last call; call it once a second. Stalled: the client reads too slowly. Waiting for a body:
   * the only request's body has not made any progress.
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

  private endRequest(owed: OwedReply) {
    if (owed.list === undefined) return;
    this.unsentBytes -= owed.value.bytes;
    this.pending.remove(owed);
    while (this.waiting !== undefined && this.unsentBytes < MAX_UNSENT_BYTES) {
      const goOn = this.waiting.shift();
      if (goOn === undefined) this.waiting = undefined;
      else goOn();
    }
    if (this.pending.size === 0) this.events.onIdle(this);
  }
}

/** The address of a client that sent no valid one: text of a header never becomes part of a key. */
export const UNKNOWN_ADDRESS = 'unknown';

/** Canonicalizes an address that any client may have written, or returns `unknown`. */
export function toAddress(text: string | undefined): string {
  if (text === undefined) return UNKNOWN_ADDRESS;
  return canonicalizeAddress(text) ?? canonicalizeAddress(removePort(text)) ?? UNKNOWN_ADDRESS;
}

/** Removes the port of `ip:port` and `[v6]:port`, and the brackets of `[v6]`. */
const removePort = (text: string) => {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([^:]*):\d{1,5})$/.exec(text) ?? [];
  return bracketed ?? plain ?? '';
};

// Replies that clients do not read (§12). An idle stream does not count as stalled.

/** Seconds without any progress after which the connection is closed. */
const MAX_SILENT_SECONDS = 30;
/** A client must read this many bytes in this many seconds. */
const WINDOW_SECONDS = 60;
const WINDOW_BYTES = 60 * 1024;

export class StallDetector {
  private sentBefore: number | undefined = undefined;
  private silentSeconds = 0;
  private windowSeconds = 0;
  private windowBytes = 0;

  /** Call it once a second. Seconds when the process itself was too busy to send are not counted. */
  checkProgress({
    unsentBytes,
    sentBytes,
  }: {
    /** Bytes that wait for the client. */
    readonly unsentBytes: number;
    /** Bytes sent since the connection began. */
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
