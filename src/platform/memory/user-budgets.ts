// A budget of memory for each user (§12).
import { type Clock, createSecondTimer } from '../clock.ts';

/**
 * Keeps counting a user's complete body until every returned release function was called.
 */
export type HoldBody = () => () => void;

/** Budgets that may be kept while nothing counts against them. */
const MAX_EMPTY_BUDGETS = 1000;

export function createUserBudgets(maxBytes: number) {
  const byUser = new Map<string, MemoryBudget>();

  /** `user` tells the user from all others. */
  function find(user: string): MemoryBudget {
    const known = byUser.get(user);
    if (known !== undefined) return known;
    const budget = createMemoryBudget(maxBytes);
    byUser.set(user, budget);
    return budget;
  }

  /** To be called when something of the user counts no longer. Budgets of returning users are kept. */
  function forgetIfEmpty(user: string) {
    if (byUser.size > MAX_EMPTY_BUDGETS && byUser.get(user)?.isEmpty()) byUser.delete(user);
  }

  return {
    find,
    forgetIfEmpty,
    /** Counts a body that has arrived, or will have when it is held. */
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
          // It is the same budget: one in which something counts is not forgotten.
          find(user).release(heldBytes);
          forgetIfEmpty(user);
        };
      };
    },
  };
}

// One budget of bytes in memory (§12): of request bodies, of servers' answers, of replies that wait to be read.

export type MemoryBudget = ReturnType<typeof createMemoryBudget>;

/** Bytes that come in or go out piece by piece, and is in memory meanwhile. */
interface Transfer {
  /** In memory now. */
  bytes: number;
  /** When its last piece moved: rises with each piece of any transfer. */
  lastPiece: number;
  readonly speed: ReturnType<typeof createSpeedMeter>;
  /** Ends it, and counts it no longer. */
  drop(reason: DropReason): void;
}

/** It has no room beside what calls hold; or another one needs room, and this one is the slowest. */
type DropReason = 'no room' | 'slowest';

export function createMemoryBudget(maxBytes: number) {
  const transfers = new Set<Transfer>();
  let movingBytes = 0;
  let heldBytes = 0;

  return {
    add(transfer: Transfer) {
      transfers.add(transfer);
    },
    /** Counts bytes of a transfer that are there now; fewer than before where it is negative. */
    count(bytes: number) {
      movingBytes += bytes;
    },
    /** Drops transfers until all have room: the slowest ones, or this one where calls hold the room. */
    makeRoomFor(newest: Transfer) {
      if (heldBytes > 0 && heldBytes + newest.bytes > maxBytes) newest.drop('no room');
      // One alone has room, however large it is: its own bound is elsewhere.
      const least = heldBytes > 0 ? 0 : 1;
      while (heldBytes + movingBytes > maxBytes && transfers.size > least) {
        findSlowest(transfers)?.drop('slowest');
      }
    },
    /** The transfer is over; its bytes do not count any more. */
    remove(transfer: Transfer) {
      if (transfers.delete(transfer)) movingBytes -= transfer.bytes;
    },
    /** Counts bytes of a complete body, whose call runs, until as many are released. */
    hold(bytes: number) {
      heldBytes += bytes;
    },
    release(bytes: number) {
      heldBytes -= bytes;
    },
    hasRoomFor: (bytes: number) => heldBytes + movingBytes + bytes <= maxBytes,
    isEmpty: () => transfers.size === 0 && heldBytes === 0,
  };
}

/** The slowest; among those that are as slow, the one that has been silent longest. */
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

// The speed at which bytes come or go; a request body must arrive at 1 KiB per second after its first 5 s (§12).

const GRACE_MS = 5000;
const MIN_BYTES_PER_SECOND = 1024;
/** Bytes that may be ahead of that: networks bring them in lumps. */
const MAX_AHEAD_BYTES = 2048;
/** Shorter times say nothing about speed. */
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
    /** To be called about once a second; false when a body would be too slow to go on. */
    measureSpeed(now: number): boolean {
      const elapsed = now - measuredAt;
      if (elapsed < SHORTEST_MS) return true;
      speed = (recentBytes * 1000) / elapsed;
      aheadBytes = Math.min(MAX_AHEAD_BYTES, aheadBytes + recentBytes);
      // One second at a time: a process that was busy for longer has not read what came meanwhile.
      if (measuredAt - startedAt >= GRACE_MS) aheadBytes -= MIN_BYTES_PER_SECOND;
      measuredAt = now;
      recentBytes = 0;
      return aheadBytes >= 0;
    },
    /** Bytes per second, measured last; of what has just begun, Infinity. */
    bytesPerSecond: () => speed,
  };
}

// Transfers that count against budgets of memory while it comes in or goes out (§12), and how fast each of it does.

export interface TransferHandlers {
  /** It must go; called at most once, after `onEnd`. */
  onDrop(reason: DropReason | 'too slow'): void;
  /** It counts no longer, however it ended; called once. */
  onEnd(): void;
}

export type CountedTransfer = ReturnType<ReturnType<typeof createTransfers>['start']>;

/** With `dropsSlow` what moves at less than 1 KiB per second is dropped. */
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
    /** The budgets in the order in which they are to have room, the smallest first. */
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
        /** So many bytes have moved, and what is in memory has changed by so many. */
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

// Bytes that come in pieces, maybe one by one.

/** The bytes of a body, or an event, as they arrive. */
export type GrowingBuffer = ReturnType<typeof createGrowingBuffer>;

/** Room is made in steps of at least this many bytes. */
const STEP_BYTES = 4096;

/** Takes twice the bytes at most: each piece by itself, of a body in many small ones, takes far more. */
export function createGrowingBuffer() {
  let buffer: Buffer | undefined;
  let length = 0;

  return {
    append(piece: Buffer) {
      const bytes = length + piece.length;
      // Most bodies come in one.
      if (buffer === undefined) {
        buffer = piece;
      } else {
        if (buffer.length < bytes) {
          const grown = Buffer.allocUnsafeSlow(Math.max(2 * bytes, STEP_BYTES));
          buffer.copy(grown, 0, 0, length);
          buffer = grown;
        }
        piece.copy(buffer, length);
      }
      length = bytes;
    },
    byteLength: () => length,
    /** Returns all bytes, and keeps them no longer. */
    take(): Buffer {
      const whole = buffer?.subarray(0, length) ?? Buffer.alloc(0);
      buffer = undefined;
      length = 0;
      return whole;
    },
  };
}
