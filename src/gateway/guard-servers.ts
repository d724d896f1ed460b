// §26.2: requests from the gateway itself to servers in the configuration file that are guards.

import { listGuardServers, type Plan } from '../catalog/plan.ts';
import { createGuards } from '../control/guards/create-guards.ts';
import type { AskServer } from '../control/guards/define-guard.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  UpstreamError,
  type UpstreamRuntime,
} from '../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { Cancellation } from '../platform/cancellation.ts';
import type { Clock } from '../platform/clock.ts';
import type { GatewayFile } from './configuration/gateway-file.ts';

export function createAskGuardServer(
  getServers: () => Plan['guardServers'],
  clock: Clock,
): AskServer {
  return async function askGuardServer(name, { method, params, signal, timeoutMs, traceparent }) {
    const planned = getServers().get(name);
    if (planned === undefined) throw new Error(`${name} is no longer there`);
    const { upstream, inFlight } = planned.server;
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
      return await inFlight.run(() =>
        upstream.request(GATEWAY_CALLER, {
          method,
          params,
          signal: cancellation,
          trace: traceparent === undefined ? {} : { traceparent },
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

// §26.5: tries each guard in a file once, for a command.

/** `problem` says why a guard failed; undefined if it responded. @throws ConfigError for a module that cannot be loaded. */
export async function tryGuards(
  runtime: UpstreamRuntime,
  file: GatewayFile,
  openUpstream: (config: UpstreamConfig) => Upstream,
) {
  const names = new Set(listGuardServers(file));
  const opened = new Map(
    file.servers.filter(({ name }) => names.has(name)).map((one) => [one.name, openUpstream(one)]),
  );
  try {
    const guards = await createGuards(
      runtime,
      file.guards,
      async (name, { method, params, timeoutMs }) => {
        const upstream = opened.get(name);
        if (upstream === undefined) throw new Error(`${name} is not there`);
        const signal = AbortSignal.timeout(timeoutMs);
        const request = { method, params, signal, trace: {} };
        return upstream.request(GATEWAY_CALLER, request);
      },
    );
    return await Promise.all(
      (guards?.listGuards() ?? []).map(async ({ name, kind, onError, check }) => ({
        name,
        kind,
        onError,
        problem: await check(),
      })),
    );
  } finally {
    await Promise.all([...opened.values()].map((upstream) => upstream.close(0)));
  }
}
