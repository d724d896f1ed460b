// Decisions 10, "Bounds": the calls that run, and how many of them may have run for long.
import type { Clock } from '../../../core/clock.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { McpCall } from '../era-handler.ts';
import { paramsOf } from '../protocol/json-rpc.ts';
import type { CallContext } from './context.ts';
import type { Method, Outcome } from './methods.ts';

export interface Calls {
  /**
   * Runs a method. The call, and the bytes of its body, count until the work is done, whether somebody
   * waits for it or not.
   *
   * @throws GatewayError `too_many_calls` for its user, `overloaded` for the process; and what the
   * method throws.
   */
  run(call: McpCall, method: Method, params: unknown, context: CallContext): Promise<Outcome>;
}

export interface CallsOptions {
  /** `MCP_USER_CALLS_MAX`; 0 = none. */
  readonly maxPerUser: number;
  readonly clock: Clock;
}

/** Milliseconds after which a call counts: short ones are the business of the rate limits. */
const LONG_MS = 1000;
const MAX_IN_ALL = 4096;

/** When each began; the oldest first. */
type Running = Set<{ readonly since: number }>;

export function createCalls({ maxPerUser, clock }: CallsOptions): Calls {
  const all: Running = new Set();
  const users = new Map<string, Running>();

  function runningOf(sub: string): Running {
    const known = users.get(sub);
    if (known !== undefined) return known;
    const own: Running = new Set();
    users.set(sub, own);
    return own;
  }

  function begin({ user, hold }: McpCall): () => void {
    const since = clock.monotonic();
    const own = user && runningOf(user.sub);
    if (own && maxPerUser > 0 && isFull(own, maxPerUser, since)) {
      fail('too_many_calls', { data: { retryAfter: 1 }, headers: { 'Retry-After': '1' } });
    }
    if (isFull(all, MAX_IN_ALL, since)) {
      fail('overloaded', {
        details: `${MAX_IN_ALL} calls are running in this process. Try again.`,
        headers: { 'Retry-After': '1' },
      });
    }
    const running = { since };
    const letGo = hold();
    all.add(running);
    own?.add(running);

    return function end() {
      all.delete(running);
      own?.delete(running);
      if (user && own?.size === 0 && users.get(user.sub) === own) users.delete(user.sub);
      letGo();
    };
  }

  return {
    // Async, so that what is thrown at once is a rejection, too; it awaits nothing, so that the params
    // are not kept until the work is done.
    async run(call, method, params, context) {
      const given = paramsOf(params);
      const end = begin(call);
      const work = method.run(given, context);
      work.then(end, end);
      return work;
    },
  };
}

/** Whether so many have run for long. Looks at no more than it has to. */
function isFull(running: Running, max: number, now: number): boolean {
  if (running.size < max) return false;
  let count = 0;
  for (const { since } of running) {
    if (now - since <= LONG_MS) return false;
    if (++count === max) return true;
  }
  return false;
}
