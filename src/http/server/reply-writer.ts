// Bytes of replies on their way to the socket.
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../platform/clock.ts';
import {
  type CountedTransfer,
  createMemoryBudget,
  createTransfers,
  createUserBudgets,
} from '../../platform/memory/user-budgets.ts';
import type { BodyOwner } from './body-memory.ts';
import { runWhenClosed } from './receive-request.ts';

/** Handed over at once: a slow caller's progress shows by such steps. */
export const SLICE_BYTES = 16_384;

/** Resolves when the last slice was handed over, not all of it before; never when the caller is gone. */
export async function writeSlices(
  res: ServerResponse,
  bytes: Uint8Array,
  counter: Pick<ReplyCounter, 'count'>,
): Promise<void> {
  let counted: CountedReply | undefined;
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    if (res.write(bytes.subarray(at, at + SLICE_BYTES))) continue;
    // All of it stays in memory until its last byte is handed over.
    counted ??= counter.count(bytes.length);
    await waitForDrain(res);
    counted.noteSent(SLICE_BYTES);
  }
  counted?.end();
}

const waitForDrain = (res: ServerResponse) =>
  new Promise<void>((resolve) => res.once('drain', () => resolve()));

/**
 * Counts bytes of one reply until they are sent, or its connection has closed: where that has to make room, it ends, with
 * what its caller has not read.
 */
export class ReplyCounter {
  private readonly memory: ReplyMemory;
  private readonly owner: ReplyOwner;
  private readonly res: ServerResponse;
  private counted: CountedReply | undefined;

  constructor(memory: ReplyMemory, owner: ReplyOwner, res: ServerResponse) {
    this.memory = memory;
    this.owner = owner;
    this.res = res;
  }

  count(bytes: number): CountedReply {
    const { res } = this;
    const { socket } = res.req;
    if (this.counted === undefined) runWhenClosed(res, () => this.counted?.end());
    const counted = this.memory.start(this.owner, bytes, () => socket.resetAndDestroy());
    this.counted = counted;
    if (res.destroyed) counted.end();
    return counted;
  }
}

// The memory that replies take until their callers have read them (§12): a budget for each user, and one for all.

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
  const transfers = createTransfers(clock, false);

  function startTransfer(owner: ReplyOwner, onDrop: () => void): CountedTransfer | undefined {
    if (owner === 'unauthenticated') return undefined;
    const budgets = owner === 'authDisabled' ? [all] : [users.find(owner.user), all];
    return transfers.start(budgets, {
      onDrop,
      onEnd() {
        if (typeof owner === 'object') users.forgetIfEmpty(owner.user);
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
