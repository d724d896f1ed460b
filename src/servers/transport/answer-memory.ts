// §18.4: the memory that answers of servers take while they come in: a budget for each user and for all users together; of what
// the gateway itself asks, for each server and for all servers. Where one is full, the slowest answer makes room.

import { UpstreamError } from '../../mcp/upstream/upstream.ts';
import type { Clock } from '../../platform/clock.ts';
import {
  type CountedTransfer,
  createMemoryBudget,
  createTransfers,
  createUserBudgets,
  type MemoryBudget,
} from '../../platform/memory/user-budgets.ts';

export interface AnswerMemory {
  /** Counts one answer, or one stream of them; `onDrop` is called at most once, when it has to end. */
  open(owner: AnswerOwner, onDrop: (error: UpstreamError) => void): CountedAnswer;
}

/** The owner of an answer: a user, and without authentication nobody knows which; or the gateway itself, which asked the server. */
export type AnswerOwner = { readonly user: string | undefined } | { readonly server: string };

export interface CountedAnswer {
  /** Bytes that have come, and those that are kept now because the rest of them is still to come. */
  note(received: number, kept: number): void;
  end(): void;
}

const MEBIBYTE = 1_048_576;
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 64 * MEBIBYTE;
/** Lists, and what the gateway listens to. No user's answers take any of it, and no other server's. */
const SERVER_BYTES = 16 * MEBIBYTE;
/** Nearly all answers come in one piece: counting each of them would cost more than it bounds. */
const UNCOUNTED_BYTES = 16_384;

/** One answer of `maxBytes` always has room. */
export function createAnswerMemory(clock: Clock, maxBytes: number): AnswerMemory {
  const all = createMemoryBudget(Math.max(ALL_BYTES, maxBytes));
  const users = createUserBudgets(Math.max(USER_BYTES, maxBytes));
  const allServers = createMemoryBudget(Math.max(ALL_BYTES, maxBytes));
  const servers = createUserBudgets(Math.max(SERVER_BYTES, maxBytes));
  const transfers = createTransfers(clock, false);

  /** The smallest first. */
  function findBudgets(owner: AnswerOwner): readonly MemoryBudget[] {
    if ('server' in owner) return [servers.find(owner.server), allServers];
    return owner.user === undefined ? [all] : [users.find(owner.user), all];
  }

  const start: StartTransfer = (owner, onDrop) =>
    transfers.start(findBudgets(owner), {
      onDrop: () => onDrop(new UpstreamError('overloaded', TOO_MANY)),
      onEnd() {
        if ('server' in owner) servers.forgetIfEmpty(owner.server);
        else if (owner.user !== undefined) users.forgetIfEmpty(owner.user);
      },
    });

  return { open: (owner, onDrop) => new TransferredAnswer(start, owner, onDrop) };
}

type OnDrop = (error: UpstreamError) => void;

type StartTransfer = (owner: AnswerOwner, onDrop: OnDrop) => CountedTransfer;

class TransferredAnswer implements CountedAnswer {
  private readonly start: StartTransfer;
  private readonly owner: AnswerOwner;
  private readonly onDrop: OnDrop;
  private counted = 0;
  private transfer: CountedTransfer | undefined;
  private isOver = false;

  constructor(start: StartTransfer, owner: AnswerOwner, onDrop: OnDrop) {
    this.start = start;
    this.owner = owner;
    this.onDrop = onDrop;
  }

  note(received: number, kept: number): void {
    if (this.isOver) return;
    if (kept < UNCOUNTED_BYTES) {
      this.release();
      return;
    }
    const change = kept - this.counted;
    this.counted = kept;
    this.transfer ??= this.start(this.owner, this.onDrop);
    this.transfer.count(received, change);
  }

  end(): void {
    this.isOver = true;
    this.release();
  }

  private release(): void {
    this.transfer?.end();
    this.transfer = undefined;
    this.counted = 0;
  }
}

const TOO_MANY =
  'too many large answers were coming in at the same time, and this one came the slowest';
