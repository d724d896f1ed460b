// §24.6, §21.1: who is told of connections. The audit log: made, renewed, in need of a login, ended; never a token. The metrics: what
// token endpoints said, and how many connections there are.

import type { ConnectionServer } from '../mcp/upstream/connection.ts';
import type {
  ConnectionEvent,
  ConnectionObserver,
  Connections,
} from '../mcp/upstream/connections.ts';
import { createExpiringMap } from '../platform/bounded-map.ts';
import { createSingleFlight } from '../platform/single-flight.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildAuditedRenewalKey } from '../store/keys.ts';
import { claimOnce } from '../store/records.ts';
import type { Audit, AuditedAction, AuditedEnd } from '../telemetry/audit/audit.ts';
import type { ConnectionCount, Metrics } from '../telemetry/metrics/metrics.ts';

/** A renewal says no more than that the connection is in use: of each, one line a day, on all replicas together. */
const DAY_SECONDS = 86_400;
/** Connections of which this process knows that they have a line. */
const MAX_KNOWN = 10_000;

export function auditConnections(
  audit: Audit,
  { store, clock }: Pick<Runtime, 'store' | 'clock'>,
): ConnectionObserver {
  const written = createExpiringMap<true>(MAX_KNOWN, clock.monotonic);

  const write = (
    event: ConnectionEvent,
    rest: Pick<AuditedAction, 'action' | 'by'>,
    end: AuditedEnd,
  ): void => audit.write({ ...describeConnection(event), ...rest }, end);

  /** False where there is one of today, or nobody can know whether there is. */
  async function claimRenewal({ connectionId }: ConnectionEvent): Promise<boolean> {
    if (written.get(connectionId)) return false;
    written.set(connectionId, true, clock.monotonic() + DAY_SECONDS * 1000);
    const key = buildAuditedRenewalKey(connectionId);
    return claimOnce(store, key, DAY_SECONDS).catch(() => {
      written.delete(connectionId);
      return false;
    });
  }

  async function writeRenewal(event: ConnectionEvent): Promise<void> {
    if (await claimRenewal(event)) write(event, { action: 'renewed' }, SUCCESS);
  }

  return {
    made: (event) => write(event, { action: 'made' }, SUCCESS),
    // The store may be slow, and no call waits for that line.
    renewed: (event) => void writeRenewal(event),
    loginNeeded: (event) =>
      write(event, { action: 'login_needed' }, { outcome: 'failure', reason: event.reason }),
    ended: (event) => write(event, { action: 'ended', by: event.by }, SUCCESS),
  };
}

const SUCCESS: AuditedEnd = { outcome: 'success' };

/** A shared one is no user's. */
const describeConnection = ({ owner, server }: ConnectionEvent): AuditedAction => ({
  event: 'connection',
  ...(owner !== 'shared' && { user: owner.sub, issuer: owner.issuer }),
  server,
  ...(owner === 'shared' && { target: 'shared' }),
});

export const measureRefreshes = (
  metrics: Pick<Metrics, 'recordUpstreamTokenRefresh'>,
): ConnectionObserver => ({
  refreshed: (server, outcome) =>
    metrics.recordUpstreamTokenRefresh(
      server,
      outcome === 'login needed' ? 'login_needed' : outcome,
    ),
});

/** For so long an answer of the store is good: anybody may scrape, as often as they like. */
const KEPT_MS = 15_000;

/** Leaves out a server whose connections cannot be counted. Never rejects. */
export function createCountConnections(
  { clock }: Runtime,
  connections: Pick<Connections, 'count'>,
  listServers: () => readonly ConnectionServer[],
): () => Promise<readonly ConnectionCount[]> {
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
