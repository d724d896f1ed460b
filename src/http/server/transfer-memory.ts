// The memory that request bodies take, and replies until their callers have read them (§12): whose budget they count against,
// and which must go.

import { GatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import {
  type CountedTransfer,
  createMemoryBudget,
  createTransfers,
  createUserBudgets,
  type MemoryBudget,
  type TransferHandlers,
} from '../../platform/memory/user-budgets.ts';
import { NO_BODY } from '../endpoint/message.ts';

/**
 * Names the budget that bytes count against: that of all callers without a valid token, that of
 * all with one where nobody has to log in, or a user's (`nameOwner`).
 */
export type MemoryOwner = 'unauthenticated' | 'authDisabled' | { readonly user: string };

const MEBIBYTE = 1_048_576;
const UNAUTHENTICATED_BYTES = 8 * MEBIBYTE;
const BODY_BYTES = { user: 8 * MEBIBYTE, all: 64 * MEBIBYTE };
const REPLY_BYTES = { user: 32 * MEBIBYTE, all: 128 * MEBIBYTE };

/** A budget for each user, and one for all but unauthenticated callers. */
function createOwnedTransfers(
  bytes: { readonly user: number; readonly all: number },
  /** Undefined where theirs are not counted. */
  unauthenticated: MemoryBudget | undefined,
  transfers: ReturnType<typeof createTransfers>,
) {
  const all = createMemoryBudget(bytes.all);
  const users = createUserBudgets(bytes.user);

  /** The smallest first. */
  function findBudgets(owner: MemoryOwner): readonly MemoryBudget[] | undefined {
    if (owner === 'unauthenticated') return unauthenticated && [unauthenticated];
    return owner === 'authDisabled' ? [all] : [users.find(owner.user), all];
  }

  return {
    users,
    start(owner: MemoryOwner, onDrop: TransferHandlers['onDrop']): CountedTransfer {
      const budgets = findBudgets(owner);
      if (budgets === undefined) return NOT_COUNTED;
      return transfers.start(budgets, {
        onDrop,
        onEnd() {
          if (typeof owner === 'object') users.forgetIfEmpty(owner.user);
        },
      });
    },
  };
}

const NOT_COUNTED: CountedTransfer = { count() {}, end() {} };

/** One body of `maxBodyBytes` always has room. */
export function createBodyMemory(clock: Clock, maxBodyBytes: number) {
  const { users, start } = createOwnedTransfers(
    { user: Math.max(BODY_BYTES.user, maxBodyBytes), all: Math.max(BODY_BYTES.all, maxBodyBytes) },
    createMemoryBudget(UNAUTHENTICATED_BYTES),
    createTransfers(clock, true),
  );

  return {
    /** Counts a body that begins to arrive. `onDrop` is called when it must go, at most once. */
    startBody(owner: MemoryOwner, onDrop: (cause: GatewayError) => void) {
      // The user's hold reads it later, by what has arrived by then. No accessor: see AnswerBody.keptBytes.
      const body = { bytes: 0 };
      const transfer = start(owner, (reason) => onDrop(REFUSALS[reason]()));
      return {
        count(arrived: number): void {
          body.bytes += arrived;
          transfer.count(arrived, arrived);
        },
        /** The body does not arrive any more. */
        end: transfer.end,
        // Only bodies of users count after they have arrived.
        hold: typeof owner === 'object' ? users.createHold(owner.user, body) : NO_BODY.hold,
      };
    },
    /** The budgets of users, where a body that came at once is counted without a start. */
    users,
  };
}

const HEADERS = { Connection: 'close', 'Retry-After': '1' };

const REFUSALS = {
  'too slow': () =>
    new GatewayError('request_timeout', {
      details:
        'The request body arrived too slowly: after 5 s it must arrive at 1 KiB/s or faster.',
      headers: { Connection: 'close' },
    }),
  'no room': () =>
    new GatewayError('overloaded', {
      details:
        'Your running calls use all the memory that their request bodies may take. Try again when one of them has ended.',
      headers: HEADERS,
    }),
  slowest: () =>
    new GatewayError('overloaded', {
      details:
        'Too many request bodies are arriving at the same time, and this one was the slowest. Try again.',
      headers: HEADERS,
    }),
} as const;

export type ReplyMemory = ReturnType<typeof createReplyMemory>;

/** Replies of callers without a token are small, or pages that are the same bytes for everybody: not counted. */
export function createReplyMemory(clock: Clock) {
  const replies = createOwnedTransfers(REPLY_BYTES, undefined, createTransfers(clock, false));

  return {
    /** Counts a reply until it is ended; `onDrop` is called, at most once, when it has to go. */
    start(owner: MemoryOwner, bytes: number, onDrop: () => void): CountedTransfer {
      const transfer = replies.start(owner, onDrop);
      transfer.count(0, bytes);
      return transfer;
    },
  };
}
