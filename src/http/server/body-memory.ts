// The memory that request bodies take (§12): whose budget they count against, and which are
// too slow to go on.

import { GatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import {
  createMemoryBudget,
  createTransfers,
  createUserBudgets,
  type HoldBody,
  type MemoryBudget,
  type UserBudgets,
} from '../../platform/memory/user-budgets.ts';
import { NO_BODY } from '../endpoint/message.ts';

/**
 * Whose budget the bytes of a body count against: that of all callers without a valid token, that of
 * all with one where nobody has to log in, or a user's (`nameOwner`).
 */
export type BodyOwner = 'unauthenticated' | 'authDisabled' | { readonly user: string };

export interface BodyMemory {
  /** Counts a body that begins to arrive. `onDrop` is called when it must go, at most once. */
  startBody(owner: BodyOwner, onDrop: (cause: GatewayError) => void): CountedBody;
  /** Of each user, where a body that came at once is counted without a start. */
  readonly users: UserBudgets;
}

export interface CountedBody {
  count(bytes: number): void;
  readonly hold: HoldBody;
  /** The body does not arrive any more. */
  end(): void;
}

const MEBIBYTE = 1_048_576;
const UNAUTHENTICATED_BYTES = 8 * MEBIBYTE;
const ALL_BYTES = 64 * MEBIBYTE;
const USER_BYTES = 8 * MEBIBYTE;

/** One body of `maxBodyBytes` always has room. */
export function createBodyMemory(clock: Clock, maxBodyBytes: number): BodyMemory {
  const unauthenticated = createMemoryBudget(UNAUTHENTICATED_BYTES);
  /** All but those of unauthenticated callers. */
  const all = createMemoryBudget(Math.max(ALL_BYTES, maxBodyBytes));
  const users = createUserBudgets(Math.max(USER_BYTES, maxBodyBytes));
  const transfers = createTransfers(clock, true);

  /** The smallest first. */
  function findBudgets(owner: BodyOwner): readonly MemoryBudget[] {
    if (owner === 'unauthenticated') return [unauthenticated];
    return owner === 'authDisabled' ? [all] : [users.find(owner.user), all];
  }

  return {
    startBody(owner, onDrop) {
      // The user's hold reads it later, by what has arrived by then. No accessor: see AnswerBody.keptBytes.
      const body = { bytes: 0 };
      const { count, end } = transfers.start(findBudgets(owner), {
        onDrop: (reason) => onDrop(REFUSALS[reason]()),
        onEnd() {
          if (typeof owner === 'object') users.forgetIfEmpty(owner.user);
        },
      });
      return {
        count(arrived) {
          body.bytes += arrived;
          count(arrived, arrived);
        },
        end,
        // Only bodies of users count after they have arrived.
        hold: typeof owner === 'object' ? users.createHold(owner.user, body) : NO_BODY.hold,
      };
    },
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
