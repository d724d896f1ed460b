// Spec §4.11, decisions 8: redis_operations_* of either driver.
import type { Clock } from '../clock.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Store } from './store.ts';

/** The same store, each operation counted and timed. */
export function instrumented(store: Store, metrics: Metrics, clock: Clock): Store {
  const measured = <Args extends readonly unknown[], Result>(
    name: string,
    run: (...args: Args) => Promise<Result>,
  ) =>
    async function operation(...args: Args): Promise<Result> {
      const started = clock.monotonic();
      const record = (status: 'success' | 'error') =>
        metrics.recordStoreOperation(name, status, (clock.monotonic() - started) / 1000);
      try {
        const result = await run(...args);
        record('success');
        return result;
      } catch (thrown) {
        record('error');
        throw thrown;
      }
    };

  return {
    get: measured('get', store.get),
    set: measured('set', store.set),
    add: measured('add', store.add),
    take: measured('take', store.take),
    delete: measured('delete', store.delete),
    admit: measured('admit', store.admit),
    withdraw: measured('withdraw', store.withdraw),
    createSession: measured('create_session', store.createSession),
    touchSession: measured('touch_session', store.touchSession),
    endSession: measured('end_session', store.endSession),
    takeExpiredSession: measured('take_expired_session', store.takeExpiredSession),
    sweepSessions: measured('sweep_sessions', store.sweepSessions),
    countSessions: measured('count_sessions', store.countSessions),
    publish: measured('publish', store.publish),
    subscribe: store.subscribe,
    ping: measured('ping', store.ping),
    close: store.close,
  };
}
