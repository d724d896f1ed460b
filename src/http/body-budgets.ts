// Decisions 10, "Bounds": whose bodies share a budget, and which are too slow to go on.
import type { Clock } from '../core/clock.ts';
import { GatewayError } from '../core/errors/gateway-error.ts';
import { type ArrivingBody, type BodyBudget, createBodyBudget } from './body-budget.ts';
import { beginPace } from './body-pace.ts';

/**
 * Whose budget the bytes of a body count against: that of all callers without a valid token, that of
 * all with one where nobody has to log in, or a user's.
 */
export type BodyOwner = 'stranger' | 'anonymous' | { readonly sub: string };

export interface BodyBudgets {
  /** Counts a body that begins. `onDrop` is called when it must go, at most once. */
  begin(owner: BodyOwner, onDrop: (cause: GatewayError) => void): CountedBody;
  /** How to hold a body that came at once; undefined where it does not fit beside the others. */
  holderOf(owner: BodyOwner, bytes: number): CountedBody['hold'] | undefined;
}

export interface CountedBody {
  count(bytes: number): void;
  /**
   * Counts a complete body of a user for as long as somebody works with it: until each function that
   * this returned was called.
   */
  hold(): () => void;
  /** The body does not arrive any more. */
  end(): void;
}

export interface BodyBudgetsOptions {
  /** `MAX_BODY_BYTES`: one body always has room. */
  readonly maxBodyBytes: number;
  readonly clock: Clock;
}

const MEBIBYTE = 1_048_576;
const STRANGERS_BYTES = 8 * MEBIBYTE;
const OTHERS_BYTES = 64 * MEBIBYTE;
const USER_BYTES = 8 * MEBIBYTE;

/** Budgets of users that may be kept while nothing counts against them. */
const MAX_EMPTY = 1000;

const MEASURE_MS = 1000;

export function createBodyBudgets({ maxBodyBytes, clock }: BodyBudgetsOptions): BodyBudgets {
  const strangers = createBodyBudget(STRANGERS_BYTES);
  const others = createBodyBudget(Math.max(OTHERS_BYTES, maxBodyBytes));
  const users = new Map<string, BodyBudget>();
  const arriving = new Set<ArrivingBody>();
  let turns = 0;
  let isMeasuring = false;

  function measureLater(): void {
    if (isMeasuring || arriving.size === 0) return;
    isMeasuring = true;
    clock.after(MEASURE_MS, () => {
      isMeasuring = false;
      const now = clock.monotonic();
      for (const body of arriving) if (body.pace.measure(now)) body.drop(tooSlow());
      measureLater();
    });
  }

  function budgetOf(sub: string): BodyBudget {
    const known = users.get(sub);
    if (known !== undefined) return known;
    const budget = createBodyBudget(Math.max(USER_BYTES, maxBodyBytes));
    users.set(sub, budget);
    return budget;
  }

  /** Those who come again and again find theirs. */
  function forgetIfEmpty(sub: string): void {
    if (users.size > MAX_EMPTY && users.get(sub)?.isEmpty()) users.delete(sub);
  }

  /** The smallest first. */
  function budgetsOf(owner: BodyOwner): readonly BodyBudget[] {
    if (owner === 'stranger') return [strangers];
    return owner === 'anonymous' ? [others] : [budgetOf(owner.sub), others];
  }

  return {
    begin(owner, onDrop) {
      const budgets = budgetsOf(owner);
      const body: ArrivingBody = {
        bytes: 0,
        turn: turns++,
        pace: beginPace(clock.monotonic()),
        drop(cause) {
          end();
          onDrop(cause);
        },
      };
      arriving.add(body);
      for (const budget of budgets) budget.add(body);
      measureLater();

      function end(): void {
        if (!arriving.delete(body)) return;
        for (const budget of budgets) budget.remove(body);
        if (typeof owner === 'object') forgetIfEmpty(owner.sub);
      }

      return {
        count(bytes) {
          body.bytes += bytes;
          body.turn = turns++;
          body.pace.count(bytes);
          for (const budget of budgets) budget.count(bytes);
          for (const budget of budgets) if (arriving.has(body)) budget.makeRoomFor(body);
        },
        end,
        hold: typeof owner === 'object' ? holder(owner.sub, body) : NOT_COUNTED,
      };
    },
    holderOf(owner, bytes) {
      if (typeof owner !== 'object') return NOT_COUNTED;
      return budgetOf(owner.sub).hasRoom(bytes) ? holder(owner.sub, { bytes }) : undefined;
    },
  };

  function holder(sub: string, body: Pick<ArrivingBody, 'bytes'>): () => () => void {
    let holders = 0;
    let letGo = () => {};
    return function hold() {
      let isHeld = true;
      if (holders++ === 0) letGo = budgetOf(sub).hold(body.bytes);
      return () => {
        if (!isHeld) return;
        isHeld = false;
        if (--holders > 0) return;
        letGo();
        forgetIfEmpty(sub);
      };
    };
  }
}

const NOT_COUNTED = () => () => {};

const tooSlow = () =>
  new GatewayError('request_timeout', {
    details: 'After its first 5 s a body must bring at least 1 KiB per second.',
    headers: { Connection: 'close' },
  });
