// Memory budgets of request bodies, and of replies until their clients have read them (§12).

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
 * Names the budget of bytes: that of all callers without a valid token, that of all callers if no login is required, or a user's
 * (`nameOwner`).
 */
export type MemoryOwner = 'unauthenticated' | 'authDisabled' | { readonly user: string };

const MEBIBYTE = 1_048_576;
const UNAUTHENTICATED_BYTES = 8 * MEBIBYTE;
const BODY_BYTES = { user: 8 * MEBIBYTE, all: 64 * MEBIBYTE };
const REPLY_BYTES = { user: 32 * MEBIBYTE, all: 128 * MEBIBYTE };

/** Creates a budget for each user, and one for all callers except unauthenticated ones. */
function createOwnedTransfers(
  bytes: { readonly user: number; readonly all: number },
  /** Undefined if theirs are not counted. */
  unauthenticated: MemoryBudget | undefined,
  transfers: ReturnType<typeof createTransfers>,
) {
  const all = createMemoryBudget(bytes.all);
  const users = createUserBudgets(bytes.user);

  /** Finds the budgets, the smallest first. */
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
    /** Counts an arriving body. `onDrop` is called at most once, when the body has to be dropped. */
    startBody(owner: MemoryOwner, onDrop: (cause: GatewayError) => void) {
      // The user's hold reads the bytes that have arrived by then. No accessor: see AnswerBody.keptBytes.
      const body = { bytes: 0 };
      const transfer = start(owner, (reason) => onDrop(REFUSALS[reason]()));
      return {
        count(arrived: number): void {
          body.bytes += arrived;
          transfer.count(arrived, arrived);
        },
        /** Ends the transfer. */
        end: transfer.end,
        // Once a body has arrived, it continues to count only if it belongs to a user.
        hold: typeof owner === 'object' ? users.createHold(owner.user, body) : NO_BODY.hold,
      };
    },
    /** The budgets of users, for bodies that have already arrived. */
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

/** Replies to callers without a token are not counted: they are small, or pages that all requests share. */
export function createReplyMemory(clock: Clock) {
  const replies = createOwnedTransfers(REPLY_BYTES, undefined, createTransfers(clock, false));

  return {
    /** Counts a reply until it is ended. `onDrop` is called at most once, when the reply has to be dropped. */
    start(owner: MemoryOwner, bytes: number, onDrop: () => void): CountedTransfer {
      const transfer = replies.start(owner, onDrop);
      transfer.count(0, bytes);
      return transfer;
    },
  };
}
