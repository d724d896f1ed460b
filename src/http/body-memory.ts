// The memory that request bodies take (§12): whose budget they count against, and which are
// too slow to go on.
import type { Clock } from '../core/clock.ts';
import type { HttpConfig } from '../core/config/groups/http.ts';
import { GatewayError } from '../core/errors/gateway-error.ts';
import { createSpeedMeter } from './body-speed.ts';
import { type ArrivingBody, createMemoryBudget, type MemoryBudget } from './memory-budget.ts';
import { createSecondTimer } from './second-timer.ts';
import { createUserBudgets, type HoldBody } from './user-budgets.ts';

/**
 * Whose budget the bytes of a body count against: that of all callers without a valid token, that of
 * all with one where nobody has to log in, or a user's.
 */
export type BodyOwner = 'unauthenticated' | 'authDisabled' | { readonly sub: string };

export interface BodyMemory {
  /** Counts a body that begins to arrive. `onDrop` is called when it must go, at most once. */
  startBody(owner: BodyOwner, onDrop: (cause: GatewayError) => void): CountedBody;
  /** How to hold a body that came at once; undefined where it does not fit beside the others. */
  admitWhole(owner: BodyOwner, bytes: number): HoldBody | undefined;
}

export interface CountedBody {
  count(bytes: number): void;
  readonly hold: HoldBody;
  /** The body does not arrive any more. */
  end(): void;
}

/** One body of `maxBodyBytes` always has room. */
export interface BodyMemoryOptions extends Pick<HttpConfig, 'maxBodyBytes'> {
  readonly clock: Clock;
}

const MEBIBYTE = 1_048_576;
const UNAUTHENTICATED_BYTES = 8 * MEBIBYTE;
const ALL_BYTES = 64 * MEBIBYTE;
const USER_BYTES = 8 * MEBIBYTE;

export function createBodyMemory({ maxBodyBytes, clock }: BodyMemoryOptions): BodyMemory {
  const unauthenticated = createMemoryBudget(UNAUTHENTICATED_BYTES);
  /** All but those of unauthenticated callers. */
  const all = createMemoryBudget(Math.max(ALL_BYTES, maxBodyBytes));
  const users = createUserBudgets(Math.max(USER_BYTES, maxBodyBytes));
  const arriving = new Set<ArrivingBody>();
  let pieces = 0;
  const startMeasuring = createSecondTimer(clock, {
    isNeeded: () => arriving.size > 0,
    task: dropTooSlow,
  });

  function dropTooSlow(): void {
    const now = clock.monotonic();
    for (const body of arriving) {
      const isFastEnough = body.speed.measureSpeed(now);
      if (!isFastEnough) body.drop(createTooSlowError());
    }
  }

  /** The smallest first. */
  function findBudgets(owner: BodyOwner): readonly MemoryBudget[] {
    if (owner === 'unauthenticated') return [unauthenticated];
    return owner === 'authDisabled' ? [all] : [users.find(owner.sub), all];
  }

  return {
    startBody(owner, onDrop) {
      const budgets = findBudgets(owner);
      const body: ArrivingBody = {
        bytes: 0,
        lastPiece: pieces++,
        speed: createSpeedMeter(clock.monotonic()),
        drop(cause) {
          end();
          onDrop(cause);
        },
      };
      arriving.add(body);
      for (const budget of budgets) budget.add(body);
      startMeasuring();

      function end(): void {
        if (!arriving.delete(body)) return;
        for (const budget of budgets) budget.remove(body);
        if (typeof owner === 'object') users.forgetIfEmpty(owner.sub);
      }

      return {
        count(bytes) {
          body.bytes += bytes;
          body.lastPiece = pieces++;
          body.speed.count(bytes);
          for (const budget of budgets) budget.count(bytes);
          for (const budget of budgets) if (arriving.has(body)) budget.makeRoomFor(body);
        },
        end,
        hold: typeof owner === 'object' ? users.createHold(owner.sub, body) : holdUncounted,
      };
    },
    admitWhole(owner, bytes) {
      if (typeof owner !== 'object') return holdUncounted;
      if (!users.find(owner.sub).hasRoomFor(bytes)) return undefined;
      return users.createHold(owner.sub, { bytes });
    },
  };
}

/** Only bodies of users count after they have arrived. */
const holdUncounted: HoldBody = () => () => {};

const createTooSlowError = () =>
  new GatewayError('request_timeout', {
    details: 'The request body arrived too slowly: after 5 s it must arrive at 1 KiB/s or faster.',
    headers: { Connection: 'close' },
  });
