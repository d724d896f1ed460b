// §26.5: each guard of a file, asked once by whom no gateway serves.

import { systemClock } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import type { Log } from '../platform/log.ts';
import { createGuards } from '../policy/guards/create-guards.ts';
import type { GuardFacts } from '../policy/guards/guards.ts';
import { noMetrics } from '../telemetry/metrics/metrics.ts';
import { listGuardServers, type Setup } from './catalog/plan.ts';
import type { UpstreamConfig } from './config/upstream-config.ts';
import { GATEWAY_CALLER, type Upstream } from './upstream.ts';

interface TryGuardsDeps {
  readonly fetch: Fetch;
  readonly log: Log;
  openUpstream(config: UpstreamConfig): Upstream;
}

interface TriedGuard extends Pick<GuardFacts, 'name' | 'kind' | 'onError'> {
  /** Why it has failed; undefined where it answered. */
  readonly problem: string | undefined;
}

/** @throws ConfigError for a module that cannot be loaded. */
export async function tryGuards(
  file: Setup['file'],
  { fetch, log, openUpstream }: TryGuardsDeps,
): Promise<readonly TriedGuard[]> {
  const names = new Set(listGuardServers(file));
  const opened = new Map(
    file.servers.filter(({ name }) => names.has(name)).map((one) => [one.name, openUpstream(one)]),
  );
  try {
    const runtime = { clock: systemClock, fetch, log, metrics: noMetrics };
    const guards = await createGuards(
      runtime,
      file.guards,
      async (name, { method, params, timeoutMs }) => {
        const upstream = opened.get(name);
        if (upstream === undefined) throw new Error(`${name} is not there`);
        const signal = AbortSignal.timeout(timeoutMs);
        const request = { method, params, signal, trace: {}, logLevel: undefined };
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
