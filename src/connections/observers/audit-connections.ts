// §24.6, §21.1: connections in the audit log: made, renewed, in need of a login, ended. Never a token.
import { createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { buildAuditedRenewalKey } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';
import type { Audit, AuditedAction, AuditedEnd } from '../../telemetry/audit/audit.ts';
import type { ConnectionEvent, ConnectionObserver } from '../connections.ts';

export interface AuditConnectionsDeps {
  readonly audit: Audit;
  readonly store: Pick<KeyValue, 'compareAndSet'>;
  readonly clock: Clock;
}

/** A renewal says no more than that the connection is in use: of each, one line a day, on all replicas together. */
const DAY_SECONDS = 86_400;
/** Connections of which this process knows that they have a line. */
const MAX_KNOWN = 10_000;

export function auditConnections({
  audit,
  store,
  clock,
}: AuditConnectionsDeps): ConnectionObserver {
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
    return store.compareAndSet(key, undefined, '1', DAY_SECONDS).catch(() => {
      written.delete(connectionId);
      return false;
    });
  }

  async function writeRenewal(event: ConnectionEvent): Promise<void> {
    if (await claimRenewal(event)) write(event, { action: 'renewed' }, SUCCESS);
  }

  return {
    made: (event) => write(event, { action: 'made' }, SUCCESS),
    // What it waits for may be slow, and no call waits for that line.
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
