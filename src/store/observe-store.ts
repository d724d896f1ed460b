// Whoever watches the operations of a store, of any driver: metrics and traces.
import type { Clock } from '../platform/clock.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { Tracing } from '../telemetry/tracing/tracing.ts';
import type { Store } from './store.ts';

/** §4.11: the same store, each operation counted and timed (`redis_operations_*`, whatever the driver). */
export const instrumentStore = (store: Store, metrics: Metrics, clock: Clock): Store =>
  wrapOperations(
    store,
    (label, run) =>
      function operation(...args) {
        const started = clock.monotonic();
        const record = (status: 'success' | 'error') =>
          metrics.recordStoreOperation(label, status, (clock.monotonic() - started) / 1000);
        const result = run(...args);
        if (result instanceof Promise) {
          // Beside the caller, who gets the driver's own promise.
          result.then(
            () => record('success'),
            () => record('error'),
          );
        } else record('success');
        return result;
      },
  );

/**
 * §21.2: operations as spans, by OpenTelemetry's conventions for databases; never a key or a value. They are waits that a
 * request has of the store: what is done for no request is no span.
 */
export const traceStore = (store: Store, tracing: Pick<Tracing, 'startChild'>): Store =>
  wrapOperations(store, (operation, run) => {
    const description = {
      name: `store ${operation}`,
      kind: 'client',
      attributes: { 'db.system.name': store.databaseSystem, 'db.operation.name': operation },
    } as const;

    return function tracedOperation(...args) {
      const span = tracing.startChild(description);
      const result = run(...args);
      if (span === undefined) return result;
      if (result instanceof Promise) {
        // Beside the caller, who gets the driver's own promise.
        result.then(span.end, (error: unknown) => {
          span.fail(error instanceof Error ? error.name : '_OTHER');
          span.end();
        });
      } else span.end();
      return result;
    };
  });

/** A result that is no promise was at hand, and is a success: what fails is a rejection. */
type Wrap = <Args extends readonly unknown[], Result>(
  name: string,
  run: (...args: Args) => Result,
) => (...args: Args) => Result;

/** The names are part of the interface, so they stay when an operation is renamed. */
function wrapOperations(store: Store, wrap: Wrap): Store {
  return {
    isShared: store.isShared,
    databaseSystem: store.databaseSystem,
    get: wrap('get', store.get),
    set: wrap('set', store.set),
    getOrSet: wrap('add', store.getOrSet),
    compareAndSet: wrap('compare_and_set', store.compareAndSet),
    compareAndDelete: wrap('compare_and_delete', store.compareAndDelete),
    getAndDelete: wrap('take', store.getAndDelete),
    delete: wrap('delete', store.delete),
    setListed: wrap('set_listed', store.setListed),
    replaceListed: wrap('replace_listed', store.replaceListed),
    deleteListed: wrap('delete_listed', store.deleteListed),
    readListed: wrap('read_listed', store.readListed),
    countListed: wrap('count_listed', store.countListed),
    addRecent: wrap('add_recent', store.addRecent),
    readRecent: wrap('read_recent', store.readRecent),
    reserveBytes: wrap('reserve_bytes', store.reserveBytes),
    releaseBytes: wrap('release_bytes', store.releaseBytes),
    admitRequest: wrap('admit', store.admitRequest),
    uncountRequest: wrap('withdraw', store.uncountRequest),
    createSession: wrap('create_session', store.createSession),
    setSessionLogLevel: wrap('set_session_log_level', store.setSessionLogLevel),
    endSession: wrap('end_session', store.endSession),
    claimExpiredSession: wrap('take_expired_session', store.claimExpiredSession),
    sweepSessions: wrap('sweep_sessions', store.sweepSessions),
    countSessions: wrap('count_sessions', store.countSessions),
    listSessions: wrap('list_sessions', store.listSessions),
    publish: wrap('publish', store.publish),
    subscribe: store.subscribe,
    ping: wrap('ping', store.ping),
    describe: wrap('describe', store.describe),
    close: store.close,
  };
}
