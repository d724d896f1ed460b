import type { Metrics } from '../../../core/metrics/metrics.ts';
import type { Lock } from './lock.ts';

/** The same lock, which counts what it does not approve: each time that a list was read. */
export const observeLock = (lock: Lock, metrics: Pick<Metrics, 'recordLockRefusal'>): Lock => ({
  check(server, kind, item) {
    const verdict = lock.check(server, kind, item);
    if (verdict !== 'approved') metrics.recordLockRefusal(server, kind, verdict);
    return verdict;
  },
  knows: lock.knows,
  findChanges: lock.findChanges,
});
