// Bytes of replies on their way to the socket.
import type { ServerResponse } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import { type CountedTransfer, createTransfers } from '../platform/memory/transfers.ts';
import { createMemoryBudget, createUserBudgets } from '../platform/memory/user-budgets.ts';
import { KEEP_ALIVE } from '../platform/sse.ts';
import type { BodyOwner } from './body-memory.ts';

/** Handed over at once: a slow caller's progress shows by such steps. */
export const SLICE_BYTES = 16_384;

/** Counts so many bytes until they are sent, or the connection has closed. */
export type CountBytes = (bytes: number) => CountedReply;

/** Resolves when the last slice was handed over, not all of it before; never when the caller is gone. */
export async function writeSlices(
  res: ServerResponse,
  bytes: Uint8Array,
  countBytes: CountBytes,
): Promise<void> {
  let counted: CountedReply | undefined;
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    if (res.write(bytes.subarray(at, at + SLICE_BYTES))) continue;
    // All of it stays in memory until its last byte is handed over.
    counted ??= countBytes(bytes.length);
    await waitForDrain(res);
    counted.noteSent(SLICE_BYTES);
  }
  counted?.end();
}

const waitForDrain = (res: ServerResponse) =>
  new Promise<void>((resolve) => res.once('drain', () => resolve()));

/** Milliseconds. Proxies cut what is silent for 60 s. */
const KEEP_ALIVE_MS = 15_000;

/** Writes an event stream. A class: thousands of them stand for minutes, and closures would take four times the memory. */
export class StreamWriter {
  private readonly res: ServerResponse;
  private readonly clock: Clock;
  private readonly countBytes: CountBytes;
  private isStopped = false;
  private cancelComment: (() => void) | undefined;

  constructor(res: ServerResponse, clock: Clock, countBytes: CountBytes) {
    this.res = res;
    this.clock = clock;
    this.countBytes = countBytes;
  }

  /** From now on nothing is due: comments fill the silence until the next call. */
  keepAlive(): void {
    this.cancelComment?.();
    if (this.isStopped) return;
    this.cancelComment = this.clock.after(KEEP_ALIVE_MS, () => {
      // Hours of comments that nobody read, or that wait behind another reply, are enough.
      if (!this.res.writableNeedDrain) this.res.write(KEEP_ALIVE);
      this.keepAlive();
    });
  }

  /** Resolves when more can be written; never when the caller is gone. */
  write(piece: string): Promise<void> {
    this.cancelComment?.();
    return writeSlices(this.res, Buffer.from(piece), this.countBytes);
  }

  /** Resolves when the system has everything; never when the caller is gone. */
  end(): Promise<void> {
    this.cancelComment?.();
    const finished = new Promise<void>((resolve) => this.res.once('finish', () => resolve()));
    this.res.end();
    return finished;
  }

  /** No more comments. */
  stop(): void {
    this.isStopped = true;
    this.cancelComment?.();
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
  const transfers = createTransfers({ clock, dropsSlow: false });

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
