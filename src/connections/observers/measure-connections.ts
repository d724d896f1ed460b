// §24.6: metrics of connections: what token endpoints said, and how many connections there are.
import type { Clock } from '../../platform/clock.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import type { ConnectionCount, Metrics } from '../../telemetry/metrics/metrics.ts';
import type { ConnectionObserver, Connections } from '../connections.ts';

export const measureRefreshes = (
  metrics: Pick<Metrics, 'recordUpstreamTokenRefresh'>,
): ConnectionObserver => ({
  refreshed: (server, outcome) =>
    metrics.recordUpstreamTokenRefresh(
      server,
      outcome === 'login needed' ? 'login_needed' : outcome,
    ),
});

export interface CountConnectionsDeps {
  readonly connections: Pick<Connections, 'count'>;
  /** Those of the configuration file that have connections, as it is now. */
  readonly listServers: () => readonly { readonly name: string }[];
  readonly clock: Clock;
}

/** For so long an answer of the store is good: anybody may scrape, as often as they like. */
const KEPT_MS = 15_000;

/** Of a server whose connections cannot be counted nothing is said. Never rejects. */
export function createCountConnections({
  connections,
  listServers,
  clock,
}: CountConnectionsDeps): () => Promise<readonly ConnectionCount[]> {
  let kept: { readonly counts: readonly ConnectionCount[]; readonly endsAt: number } | undefined;
  const counting = createSingleFlight<'all', readonly ConnectionCount[]>();

  async function countServer(server: string): Promise<readonly ConnectionCount[]> {
    const counts = await connections.count(server).catch(() => undefined);
    if (counts === undefined) return [];
    return [
      { server, state: 'active', count: counts.active },
      { server, state: 'login_needed', count: counts['login needed'] },
    ];
  }

  /** One server after the other, so that a scrape never has more than one question at the store. */
  async function countAll(): Promise<readonly ConnectionCount[]> {
    const counts: ConnectionCount[] = [];
    for (const { name } of listServers()) counts.push(...(await countServer(name)));
    kept = { counts, endsAt: clock.monotonic() + KEPT_MS };
    return counts;
  }

  return async function countConnections() {
    if (kept !== undefined && clock.monotonic() < kept.endsAt) return kept.counts;
    return counting.run('all', countAll);
  };
}
