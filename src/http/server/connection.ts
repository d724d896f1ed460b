// What a connection is, when its caller reads too slowly to go on, and the connections that are open.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Link, LinkedList } from '../../platform/bounded-map.ts';

export interface Connection {
  readonly socket: Socket;
  /** At its other end, canonical; or `unknown`. */
  readonly address: string;
  /** Its last reply is on its way: nothing more of it is looked at. */
  isClosing: boolean;
  /** Among those that are busy, or those that are idle. */
  place: Link<Connection> | undefined;
  /** Adds a request; returns how many of them are pending. */
  startRequest(res: ServerResponse): number;
  /** Those of the pending requests, in their order. */
  pendingResponses(): readonly ServerResponse[];
  /** Runs the task once enough of the replies before it is sent; mostly at once. */
  runWhenDrained(task: () => void): void;
  /** Counts a reply until all of it is sent. */
  countReply(res: ServerResponse, bytes: number): void;
  /** What became of it since the last call; to be called once a second. */
  checkProgress(): ConnectionProgress;
}

/**
 * Stalled: its caller reads too slowly to go on. Waiting for a body: nothing came of the body of its
 * only request.
 */
export type ConnectionProgress = 'moving' | 'stalled' | 'waiting for a body';

/** How long what comes after a reply is still read and dropped, so that its caller sees the reply. */
export const DISCARD_MS = 2000;

// Replies that nobody reads (§12). An idle stream does not count as stalled.

/** Of a connection, in bytes. */
interface SendProgress {
  /** What waits for the caller. */
  readonly unsentBytes: number;
  /** What was sent since the connection began. */
  readonly sentBytes: number;
}

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
  checkProgress({ unsentBytes, sentBytes }: SendProgress): 'moving' | 'stalled' {
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

// The connections that are open, by what they are doing.

export interface OpenConnections {
  readonly all: Set<Connection>;
  /** With requests that have no reply yet. */
  readonly busy: LinkedList<Connection>;
  /** The one that is idle longest comes first. */
  readonly idle: LinkedList<Connection>;
  /** Accepted while all others were busy. */
  readonly beyondLimit: Set<Connection>;
  /** Busy ones that only wait for a body: next to be closed when none is idle. */
  readonly waitingForBody: Set<Connection>;
}

export const createOpenConnections = (): OpenConnections => ({
  all: new Set(),
  busy: new LinkedList(),
  idle: new LinkedList(),
  beyondLimit: new Set(),
  waitingForBody: new Set(),
});

/** A busy one stays busy until its requests are over. */
export function forgetConnection(open: OpenConnections, connection: Connection): void {
  open.idle.remove(connection.place);
  for (const set of [open.all, open.beyondLimit, open.waitingForBody]) set.delete(connection);
}

export function closeConnection(open: OpenConnections, connection: Connection): void {
  forgetConnection(open, connection);
  connection.socket.destroy();
}

/** Closes those whose callers read too slowly, and finds those that only wait for a body. */
export function closeStalledConnections(open: OpenConnections): void {
  const { all, busy, waitingForBody } = open;
  // A copy: one that is reset is removed.
  for (const connection of [...busy]) {
    const progress = connection.checkProgress();
    if (progress === 'stalled') resetConnection(open, connection);
    else if (progress === 'waiting for a body' && all.has(connection)) {
      waitingForBody.add(connection);
    } else waitingForBody.delete(connection);
  }
}

/** At once, with what its caller has not read: the system would keep that for minutes. */
function resetConnection(open: OpenConnections, connection: Connection): void {
  forgetConnection(open, connection);
  connection.socket.resetAndDestroy();
}
