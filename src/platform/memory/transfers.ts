// What counts against budgets of memory while it comes in or goes out (§12), and how fast each of it does.
import { type Clock, createSecondTimer } from '../clock.ts';
import {
  createSpeedMeter,
  type DropReason,
  type MemoryBudget,
  type Transfer,
} from './user-budgets.ts';

export interface Transfers {
  /** The budgets in the order in which they are to have room, the smallest first. */
  start(budgets: readonly MemoryBudget[], handlers: TransferHandlers): CountedTransfer;
}

export interface TransferHandlers {
  /** It must go; called at most once, after `onEnd`. */
  onDrop(reason: DropReason | 'too slow'): void;
  /** It counts no longer, however it ended; called once. */
  onEnd(): void;
}

export interface CountedTransfer {
  /** So many bytes have moved, and what is in memory has changed by so many. */
  count(moved: number, change: number): void;
  end(): void;
}

export interface TransfersOptions {
  readonly clock: Clock;
  /** Whether what moves at less than 1 KiB per second is dropped. */
  readonly dropsSlow: boolean;
}

export function createTransfers({ clock, dropsSlow }: TransfersOptions): Transfers {
  const open = new Map<Transfer, (reason: DropReason | 'too slow') => void>();
  let pieces = 0;
  const startMeasuring = createSecondTimer(clock, {
    isNeeded: () => open.size > 0,
    task: measureSpeeds,
  });

  function measureSpeeds(): void {
    const now = clock.monotonic();
    for (const [{ speed }, drop] of open) {
      const isFastEnough = speed.measureSpeed(now);
      if (!isFastEnough && dropsSlow) drop('too slow');
    }
  }

  return {
    start(budgets, { onDrop, onEnd }) {
      const transfer: Transfer = {
        bytes: 0,
        lastPiece: pieces++,
        speed: createSpeedMeter(clock.monotonic()),
        drop,
      };
      open.set(transfer, drop);
      for (const budget of budgets) budget.add(transfer);
      startMeasuring();

      function end(): void {
        if (!open.delete(transfer)) return;
        for (const budget of budgets) budget.remove(transfer);
        onEnd();
      }

      function drop(reason: DropReason | 'too slow'): void {
        end();
        onDrop(reason);
      }

      return {
        count(moved, change) {
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
