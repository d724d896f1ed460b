// The memory that replies take until their callers have read them (§12): a budget for each user, and one for all.
import type { Clock } from '../platform/clock.ts';
import { type CountedTransfer, createTransfers } from '../platform/memory/transfers.ts';
import { createMemoryBudget, createUserBudgets } from '../platform/memory/user-budgets.ts';
import type { BodyOwner } from './body-memory.ts';

/** Those of callers without a token are small, or pages that are the same bytes for everybody: not counted. */
export type ReplyOwner = BodyOwner;

export interface ReplyMemory {
  /** Counts a reply until it is ended; `onDrop` is called, at most once, when it has to go. */
  start(owner: ReplyOwner, bytes: number, onDrop: () => void): CountedReply;
}

export interface CountedReply {
  /** So many of its bytes were handed over. */
  noteSent(bytes: number): void;
  /** It takes so many more, or fewer. */
  noteChange(bytes: number): void;
  end(): void;
}

const MEBIBYTE = 1_048_576;
const USER_BYTES = 32 * MEBIBYTE;
const ALL_BYTES = 128 * MEBIBYTE;

export function createReplyMemory(clock: Clock): ReplyMemory {
  const all = createMemoryBudget(ALL_BYTES);
  const users = createUserBudgets(USER_BYTES);
  const transfers = createTransfers({ clock, dropsSlow: false });

  function startTransfer(owner: ReplyOwner, onDrop: () => void): CountedTransfer | undefined {
    if (owner === 'unauthenticated') return undefined;
    const budgets = owner === 'authDisabled' ? [all] : [users.find(owner.sub), all];
    return transfers.start(budgets, {
      onDrop,
      onEnd() {
        if (typeof owner === 'object') users.forgetIfEmpty(owner.sub);
      },
    });
  }

  return {
    start(owner, bytes, onDrop) {
      const transfer = startTransfer(owner, onDrop);
      transfer?.count(0, bytes);
      return {
        noteSent: (sent) => transfer?.count(sent, 0),
        noteChange: (change) => transfer?.count(0, change),
        end: () => transfer?.end(),
      };
    },
  };
}
