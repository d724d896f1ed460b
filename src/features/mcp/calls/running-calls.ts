// §12: how many calls run, for each user and in all.
import type { Clock } from '../../../core/clock.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { Call } from './call.ts';

/** Milliseconds after which a call counts: short ones are the business of the rate limits. */
const LONG_MS = 1000;
const MAX_IN_ALL = 4096;

/** When each began; the oldest first. */
type RunningCalls = Set<{ readonly startedAt: number }>;

/**
 * Counts the call, and the bytes of its body, until what it returns is called.
 *
 * @throws GatewayError `too_many_calls` for its user, `overloaded` for the process.
 */
export type CountCall = (call: Pick<Call, 'user' | 'holdBody'>) => () => void;

/** `maxPerUser` 0 is no bound. */
export function createCountCall(maxPerUser: number, clock: Clock): CountCall {
  const all: RunningCalls = new Set();
  const byUser = new Map<string, RunningCalls>();

  return function countCall({ user, holdBody }) {
    const startedAt = clock.monotonic();
    const callsOfUser = user && getRunningCalls(user.sub);
    if (callsOfUser && maxPerUser > 0 && isFull(callsOfUser, maxPerUser, startedAt)) {
      fail('too_many_calls', { data: { retryAfter: 1 }, headers: { 'Retry-After': '1' } });
    }
    if (isFull(all, MAX_IN_ALL, startedAt)) {
      fail('overloaded', {
        details: `${MAX_IN_ALL} calls are running in this process. Try again.`,
        headers: { 'Retry-After': '1' },
      });
    }
    const running = { startedAt };
    const releaseBody = holdBody();
    all.add(running);
    callsOfUser?.add(running);

    return function end() {
      all.delete(running);
      callsOfUser?.delete(running);
      if (user && callsOfUser?.size === 0 && byUser.get(user.sub) === callsOfUser) {
        byUser.delete(user.sub);
      }
      releaseBody();
    };
  };

  function getRunningCalls(sub: string): RunningCalls {
    const known = byUser.get(sub);
    if (known !== undefined) return known;
    const none: RunningCalls = new Set();
    byUser.set(sub, none);
    return none;
  }
}

/** Whether so many have run for long. Looks at no more than it has to. */
function isFull(calls: RunningCalls, max: number, now: number): boolean {
  if (calls.size < max) return false;
  let count = 0;
  for (const { startedAt } of calls) {
    if (now - startedAt <= LONG_MS) return false;
    if (++count === max) return true;
  }
  return false;
}
