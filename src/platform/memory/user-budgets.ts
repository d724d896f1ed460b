// Bounds memory per user (§12).
import { type Clock, createSecondTimer } from '../clock.ts';

/**
 * Counts a complete body against its user until every returned release function was called.
 */
export type HoldBody = () => () => void;

/** Maximum number of unused budgets to keep. */
const MAX_EMPTY_BUDGETS = 1000;

export function createUserBudgets(maxBytes: number) {
  const byUser = new Map<string, MemoryBudget>();

  /** `user` is a key that is unique to the user. */
  function find(user: string): MemoryBudget {
    const known = byUser.get(user);
    if (known !== undefined) return known;
    const budget = createMemoryBudget(maxBytes);
    byUser.set(user, budget);
    return budget;
  }

  /** To be called when memory of the user was released. Budgets of returning users are kept. */
  function forgetIfEmpty(user: string) {
    if (byUser.size > MAX_EMPTY_BUDGETS && byUser.get(user)?.isEmpty()) byUser.delete(user);
  }

  return {
    find,
    forgetIfEmpty,
    /** Counts a body from the moment it is held; its size is read then. */
    createHold(user: string, body: { readonly bytes: number }): HoldBody {
      let holders = 0;
      let heldBytes = 0;
      return function hold() {
        let isHeld = true;
        if (holders++ === 0) {
          heldBytes = body.bytes;
          find(user).hold(heldBytes);
        }
        return function release() {
          if (!isHeld) return;
          isHeld = false;
          if (--holders > 0) return;
          // This is still the same budget, since a budget in use is never dropped.
          find(user).hold(-heldBytes);
          forgetIfEmpty(user);
        };
      };
    },
  };
}

// One budget of bytes in memory (§12): for request bodies, upstream responses, or unread replies.

export type MemoryBudget = ReturnType<typeof createMemoryBudget>;

/** A body that is received or sent piece by piece, and is in memory in the meantime. */
interface Transfer {
  /** Number of its bytes that are in memory now. */
  bytes: number;
  /** Sequence number of the transfer's last piece, across all transfers. */
  lastPiece: number;
  readonly speed: ReturnType<typeof createSpeedMeter>;
  /** Aborts the transfer and releases its bytes. */
  drop(reason: DropReason): void;
}

/** There is no room next to the bodies that calls hold; or this is the slowest transfer, and another one needs room. */
type DropReason = 'no room' | 'slowest';

export function createMemoryBudget(maxBytes: number) {
  const transfers = new Set<Transfer>();
  let movingBytes = 0;
  let heldBytes = 0;

  return {
    add(transfer: Transfer) {
      transfers.add(transfer);
    },
    /** Adds the change in a transfer's bytes, which may be negative. */
    count(bytes: number) {
      movingBytes += bytes;
    },
    /** Drops transfers until the remaining ones fit: the slowest first, or the newest one if held bodies take up the space. */
    makeRoomFor(newest: Transfer) {
      if (heldBytes > 0 && heldBytes + newest.bytes > maxBytes) newest.drop('no room');
      // A single transfer always fits, since its own size is bounded elsewhere.
      const least = heldBytes > 0 ? 0 : 1;
      while (heldBytes + movingBytes > maxBytes && transfers.size > least) {
        findSlowest(transfers)?.drop('slowest');
      }
    },
    /** Removes a finished transfer and its bytes. */
    remove(transfer: Transfer) {
      if (transfers.delete(transfer)) movingBytes -= transfer.bytes;
    },
    /** Adds the change in the bytes of complete bodies whose calls are running, which may be negative. */
    hold(bytes: number) {
      heldBytes += bytes;
    },
    hasRoomFor: (bytes: number) => heldBytes + movingBytes + bytes <= maxBytes,
    isEmpty: () => transfers.size === 0 && heldBytes === 0,
  };
}

/** The slowest transfer; among equals, the one that has been silent the longest. */
function findSlowest(transfers: Iterable<Transfer>): Transfer | undefined {
  let slowest: Transfer | undefined;
  let least = Number.POSITIVE_INFINITY;
  let silentSince = Number.POSITIVE_INFINITY;
  for (const one of transfers) {
    const speed = one.speed.bytesPerSecond();
    if (speed > least || (speed === least && one.lastPiece >= silentSince)) continue;
    slowest = one;
    least = speed;
    silentSince = one.lastPiece;
  }
  return slowest;
}

// Measures transfer speed; a request body must arrive at 1 KiB per second after its first 5 s (§12).

const GRACE_MS = 5000;
const MIN_BYTES_PER_SECOND = 1024;
/** Bytes by which a transfer may be ahead of that rate: networks deliver in bursts. */
const MAX_AHEAD_BYTES = 2048;
/** Minimum interval between measurements. */
const SHORTEST_MS = 500;

function createSpeedMeter(startedAt: number) {
  let measuredAt = startedAt;
  let recentBytes = 0;
  let aheadBytes = 0;
  let speed = Number.POSITIVE_INFINITY;

  return {
    count(bytes: number) {
      recentBytes += bytes;
    },
    /** To be called about once a second. Returns false if a body is too slow. */
    measureSpeed(now: number): boolean {
      const elapsed = now - measuredAt;
      if (elapsed < SHORTEST_MS) return true;
      speed = (recentBytes * 1000) / elapsed;
      aheadBytes = Math.min(MAX_AHEAD_BYTES, aheadBytes + recentBytes);
      // Charges only one second at a time: a process that was busy for longer has not read the data that arrived meanwhile.
      if (measuredAt - startedAt >= GRACE_MS) aheadBytes -= MIN_BYTES_PER_SECOND;
      measuredAt = now;
      recentBytes = 0;
      return aheadBytes >= 0;
    },
    /** Bytes per second at the last measurement; Infinity before the first. */
    bytesPerSecond: () => speed,
  };
}

// Tracks transfers, their speed, and the budgets they count against (§12).

export interface TransferHandlers {
  /** Called when the transfer is dropped; at most once, after `onEnd`. */
  onDrop(reason: DropReason | 'too slow'): void;
  /** Called once when the transfer no longer counts, however it ended. */
  onEnd(): void;
}

export type CountedTransfer = ReturnType<ReturnType<typeof createTransfers>['start']>;

/** With `dropsSlow`, transfers slower than 1 KiB per second are dropped. */
export function createTransfers(clock: Clock, dropsSlow: boolean) {
  const open = new Map<Transfer, (reason: DropReason | 'too slow') => void>();
  let pieces = 0;
  const startMeasuring = createSecondTimer(clock, {
    isNeeded: () => open.size > 0,
    task() {
      const now = clock.monotonic();
      for (const [{ speed }, drop] of open) {
        const isFastEnough = speed.measureSpeed(now);
        if (!isFastEnough && dropsSlow) drop('too slow');
      }
    },
  });

  return {
    /** `budgets` are checked in order, the smallest first. */
    start(budgets: readonly MemoryBudget[], { onDrop, onEnd }: TransferHandlers) {
      const transfer: Transfer = {
        bytes: 0,
        lastPiece: pieces++,
        speed: createSpeedMeter(clock.monotonic()),
        drop,
      };
      open.set(transfer, drop);
      for (const budget of budgets) budget.add(transfer);
      startMeasuring();

      function end() {
        if (!open.delete(transfer)) return;
        for (const budget of budgets) budget.remove(transfer);
        onEnd();
      }

      function drop(reason: DropReason | 'too slow') {
        end();
        onDrop(reason);
      }

      return {
        /** Records the bytes moved, and the change of bytes in memory. */
        count(moved: number, change: number) {
          if (!open.has(transfer)) return;
          transfer.bytes += change;
          transfer.lastPiece = pieces++;
          transfer.speed.count(moved);
          for (const budget of budgets) budget.count(change);
          for (const budget of budgets) if (open.has(transfer)) budget.makeRoomFor(transfer);
        },
        end,
      };
    },
  };
}
