// §12: how many calls run, for each user and in all; §5.11: those of a login that has ended end.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { GrantCheck } from '../../http/endpoint/message.ts';
import { LinkedList } from '../../platform/bounded-map.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner } from '../../store/owner.ts';
import type { Call, Callers } from './call.ts';

/** Milliseconds after which a call counts: short ones are the business of the rate limits. */
const LONG_MS = 1000;
const MAX_IN_ALL = 4096;

interface RunningCall {
  readonly startedAt: number;
  readonly call: CountedCall;
}

type RunningCalls = LinkedList<RunningCall>;

/**
 * Counts the call, and the bytes of its body, until what it returns is called.
 *
 * @throws GatewayError `too_many_calls` for its user, `overloaded` for the process, `token_revoked`.
 */
export type CountCall = (call: CountedCall) => () => void;

interface CountedCall extends Pick<Call, 'user' | 'holdBody' | 'abort'> {
  readonly stream: Pick<Call['stream'], 'begin'>;
}

/** §15: milliseconds between looks for calls that have run for so long that their answers should become streams. */
const LOOK_FOR_LONG_MS = 250;

export function createCountCall(
  { config, clock }: Pick<Runtime, 'config' | 'clock'>,
  endedGrants?: Callers['endedGrants'],
): CountCall {
  // 0 means no bound, and that no answer becomes a stream only because its call takes long.
  const { maxCallsPerUser, streamAfterMs } = config.mcp;
  // §15.1: a stream that can outlive its connection begins earlier, so that its client gets an id.
  const beginAfterMs = Math.min(LONG_MS, streamAfterMs);
  const all: RunningCalls = new LinkedList();
  let isLooking = false;
  const byUser = new Map<string, RunningCalls>();

  endedGrants?.listen((grantId) => endCallsOf(({ id }) => id === grantId));

  return function countCall(call) {
    const { user } = call;
    // Let in just before, and not among those that ended then.
    if (user?.grant !== undefined && endedGrants?.hasEnded(user.grant.id)) fail('token_revoked');
    const startedAt = clock.monotonic();
    const name = user && nameOwner(user);
    const known = name === undefined ? undefined : byUser.get(name);
    if (known && maxCallsPerUser > 0 && isFull(known, maxCallsPerUser, startedAt)) {
      fail('too_many_calls', { data: { retryAfter: 1 }, headers: { 'Retry-After': '1' } });
    }
    if (isFull(all, MAX_IN_ALL, startedAt)) {
      fail('overloaded', {
        details: `${MAX_IN_ALL} calls are running in this process. Try again.`,
        headers: { 'Retry-After': '1' },
      });
    }
    const callsOfUser = name === undefined ? undefined : getRunningCalls(name);
    const running: RunningCall = { startedAt, call };
    const releaseBody = call.holdBody();
    const link = all.add(running);
    const linkOfUser = callsOfUser?.add(running);
    if (!isLooking) lookForLong();

    return function end() {
      link.remove();
      linkOfUser?.remove();
      releaseBody();
    };
  };

  function endCallsOf(hasEnded: (grant: GrantCheck) => boolean): void {
    const ended = [...all].filter(({ call: { user } }) => user?.grant && hasEnded(user.grant));
    for (const { call } of ended) call.abort(new GatewayError('token_revoked'));
  }

  /** One timer for all calls: short ones, which are nearly all, need none. */
  function lookForLong(): void {
    isLooking = true;
    clock.after(LOOK_FOR_LONG_MS, () => {
      isLooking = false;
      const now = clock.now();
      endCallsOf(({ endsAt }) => endsAt !== undefined && endsAt <= now);
      if (streamAfterMs > 0) beginStreams();
      forgetIdleUsers();
      if (all.size > 0) lookForLong();
    });
  }

  function beginStreams(): void {
    const now = clock.monotonic();
    for (const { startedAt, call } of all) {
      const ranMs = now - startedAt;
      if (ranMs < beginAfterMs) return;
      call.stream.begin(ranMs >= streamAfterMs);
    }
  }

  /** Not at the end of each call: see LinkedList of Maps that grow and shrink with calls. */
  function forgetIdleUsers(): void {
    for (const [user, { size }] of byUser) if (size === 0) byUser.delete(user);
  }

  function getRunningCalls(user: string): RunningCalls {
    const known = byUser.get(user);
    if (known !== undefined) return known;
    const none: RunningCalls = new LinkedList();
    byUser.set(user, none);
    return none;
  }
}

/** True if so many have run for long. Looks at no more than it has to. */
function isFull(calls: RunningCalls, max: number, now: number): boolean {
  if (calls.size < max) return false;
  let count = 0;
  for (const { startedAt } of calls) {
    if (now - startedAt <= LONG_MS) return false;
    if (++count === max) return true;
  }
  return false;
}
