// §4.11: redis_operations_* of either driver. The labels are part of the interface, so they stay
// when an operation is renamed.
import type { Clock } from '../platform/clock.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { Store } from './store.ts';

/** The same store, each operation counted and timed. */
export function instrumentStore(store: Store, metrics: Metrics, clock: Clock): Store {
  const measure = <Args extends readonly unknown[], Result>(
    label: string,
    run: (...args: Args) => Promise<Result>,
  ) =>
    function operation(...args: Args): Promise<Result> {
      const started = clock.monotonic();
      const record = (status: 'success' | 'error') =>
        metrics.recordStoreOperation(label, status, (clock.monotonic() - started) / 1000);
      const pending = run(...args);
      // Beside the caller, who gets the driver's own promise.
      pending.then(
        () => record('success'),
        () => record('error'),
      );
      return pending;
    };

  return {
    get: measure('get', store.get),
    set: measure('set', store.set),
    getOrSet: measure('add', store.getOrSet),
    getAndDelete: measure('take', store.getAndDelete),
    delete: measure('delete', store.delete),
    setListed: measure('set_listed', store.setListed),
    deleteListed: measure('delete_listed', store.deleteListed),
    readListed: measure('read_listed', store.readListed),
    addRecent: measure('add_recent', store.addRecent),
    readRecent: measure('read_recent', store.readRecent),
    reserveBytes: measure('reserve_bytes', store.reserveBytes),
    releaseBytes: measure('release_bytes', store.releaseBytes),
    admitRequest: measure('admit', store.admitRequest),
    uncountRequest: measure('withdraw', store.uncountRequest),
    createSession: measure('create_session', store.createSession),
    setSessionLogLevel: measure('set_session_log_level', store.setSessionLogLevel),
    endSession: measure('end_session', store.endSession),
    claimExpiredSession: measure('take_expired_session', store.claimExpiredSession),
    sweepSessions: measure('sweep_sessions', store.sweepSessions),
    countSessions: measure('count_sessions', store.countSessions),
    listSessions: measure('list_sessions', store.listSessions),
    publish: measure('publish', store.publish),
    subscribe: store.subscribe,
    ping: measure('ping', store.ping),
    describe: measure('describe', store.describe),
    close: store.close,
  };
}
