// Runs methods, within bounds on how many calls may have run for long.
import type { Clock } from '../../../core/clock.ts';
import type { McpConfig } from '../../../core/config/groups/mcp.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { ServiceInfo } from '../catalog/catalog.ts';
import { readParams } from '../protocol/json-rpc.ts';
import type { Call } from './call.ts';
import { type CallClient, createContext } from './context.ts';
import { canAsk, type Method, type MethodResult } from './methods.ts';

/**
 * The call, and the bytes of its body, count until the work is done, whether somebody waits for it or
 * not.
 *
 * @throws GatewayError `too_many_calls` for its user, `overloaded` for the process; and what the
 * method throws.
 */
export type RunMethod = (
  call: Call,
  client: CallClient,
  method: Method,
  params: unknown,
) => Promise<MethodResult>;

export interface RunMethodOptions extends Pick<McpConfig, 'maxCallsPerUser'> {
  readonly service: ServiceInfo;
  readonly clock: Clock;
}

/** Milliseconds after which a call counts: short ones are the business of the rate limits. */
const LONG_MS = 1000;
const MAX_IN_ALL = 4096;

/** When each began; the oldest first. */
type RunningCalls = Set<{ readonly startedAt: number }>;

export function createRunMethod({ service, maxCallsPerUser, clock }: RunMethodOptions): RunMethod {
  const all: RunningCalls = new Set();
  const byUser = new Map<string, RunningCalls>();

  // Awaits nothing, so that the params are not kept until the work is done. Not async: whoever waits
  // for the work would then wait for two promises.
  return function runMethod(call, client, method, params) {
    try {
      const context = createContext(call, client, {
        service,
        canAsk: canAsk(method),
        params,
      });
      const args = readParams(params);
      const end = startCounting(call);
      const work = method.run(args, context);
      work.then(end, end);
      return work;
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  };

  /** Returns what to call when the work is done. */
  function startCounting({ user, holdBody }: Call): () => void {
    const startedAt = clock.monotonic();
    const callsOfUser = user && getRunningCalls(user.sub);
    if (callsOfUser && maxCallsPerUser > 0 && isFull(callsOfUser, maxCallsPerUser, startedAt)) {
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
  }

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
