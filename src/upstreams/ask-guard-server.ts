// §26.2: servers of the file that are guards are asked by the gateway itself.

import { Cancellation } from '../platform/cancellation.ts';
import type { Clock } from '../platform/clock.ts';
import type { AskServer } from '../policy/guards/external-guards.ts';
import type { Plan } from './catalog/plan.ts';
import { GATEWAY_CALLER, UpstreamError } from './upstream.ts';

export function createAskGuardServer(
  getServers: () => Plan['guardServers'],
  clock: Clock,
): AskServer {
  return async function askGuardServer(name, { method, params, signal, timeoutMs, traceparent }) {
    const planned = getServers().get(name);
    if (planned === undefined) throw new Error(`${name} is no longer there`);
    const { upstream, usage } = planned.server;
    const cancellation = new Cancellation();
    const leave = (): void => cancellation.abort();
    let isLate = false;
    const stop = clock.after(timeoutMs, () => {
      isLate = true;
      cancellation.abort();
    });
    if (signal?.aborted) cancellation.abort();
    signal?.addEventListener('abort', leave);
    try {
      return await usage.run(() =>
        upstream.request(GATEWAY_CALLER, {
          method,
          params,
          signal: cancellation,
          trace: traceparent === undefined ? {} : { traceparent },
          logLevel: undefined,
        }),
      );
    } catch (error) {
      if (isLate) throw new Error(`it did not answer within ${timeoutMs} ms`);
      throw error instanceof UpstreamError
        ? error
        : new Error('it gave no answer', { cause: error });
    } finally {
      stop();
      signal?.removeEventListener('abort', leave);
    }
  };
}
