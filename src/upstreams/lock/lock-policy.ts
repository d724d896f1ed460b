// §18.7: the lock as a policy: what was not approved is hidden from everybody.

import type { Policy } from '../../policy/policy.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import type { Lock } from './lock.ts';

/** Counts what it hides: each time that a list was read. */
export const createLockPolicy = (
  lock: Lock,
  metrics: Pick<Metrics, 'recordLockRefusal'>,
): Policy => ({
  findHidden(server, kind, said) {
    const verdict = lock.check(server, kind, said);
    if (verdict === 'approved') return undefined;
    metrics.recordLockRefusal(server, kind, verdict);
    return LOCKED[verdict];
  },
});

/** The rest of a sentence that begins with the name of what is hidden. */
export const LOCKED = {
  new: 'is not in postern.lock. See what is new with postern lock --check; approve it with postern lock',
  changed:
    'is no longer what postern.lock approved. See what changed with postern lock --check; approve it with postern lock',
} as const;
