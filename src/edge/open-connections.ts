// The connections that are open, by what they are doing.
import type { Connection } from './connection.ts';

export interface OpenConnections {
  readonly all: Set<Connection>;
  /** With requests that have no reply yet. */
  readonly busy: Set<Connection>;
  /** The one that is idle longest comes first. */
  readonly idle: Set<Connection>;
  /** Accepted while all others were busy. */
  readonly beyondLimit: Set<Connection>;
  /** Busy ones that only wait for a body: next to be closed when none is idle. */
  readonly waitingForBody: Set<Connection>;
}

export const createOpenConnections = (): OpenConnections => ({
  all: new Set(),
  busy: new Set(),
  idle: new Set(),
  beyondLimit: new Set(),
  waitingForBody: new Set(),
});

/** A busy one stays busy until its requests are over. */
export function forgetConnection(open: OpenConnections, connection: Connection): void {
  for (const set of [open.all, open.idle, open.beyondLimit, open.waitingForBody]) {
    set.delete(connection);
  }
}

export function closeConnection(open: OpenConnections, connection: Connection): void {
  forgetConnection(open, connection);
  connection.socket.destroy();
}

/** Closes those whose callers read too slowly, and finds those that only wait for a body. */
export function closeStalledConnections(open: OpenConnections): void {
  const { all, busy, waitingForBody } = open;
  for (const connection of busy) {
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
