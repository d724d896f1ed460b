// §21.2: operations of the store as spans, by OpenTelemetry's conventions for databases. Never a key or a value.

import type { Tracing } from '../telemetry/tracing/tracing.ts';
import type { Store } from './store.ts';

/** Waits that a request has of the store; what is done for no request is no span. */
export function traceStore(store: Store, system: 'redis' | 'lmdb', tracing: Tracing): Store {
  const trace = <Args extends readonly unknown[], Result>(
    operation: string,
    run: (...args: Args) => Promise<Result>,
  ) => {
    const description = {
      name: `store ${operation}`,
      kind: 'client',
      attributes: { 'db.system.name': system, 'db.operation.name': operation },
    } as const;

    return function tracedOperation(...args: Args): Promise<Result> {
      const span = tracing.startChild(description);
      const pending = run(...args);
      // Beside the caller, who gets the driver's own promise.
      if (span !== undefined) {
        pending.then(span.end, (error: unknown) => {
          span.fail(error instanceof Error ? error.name : '_OTHER');
          span.end();
        });
      }
      return pending;
    };
  };

  return {
    get: trace('get', store.get),
    set: trace('set', store.set),
    getOrSet: trace('add', store.getOrSet),
    getAndDelete: trace('take', store.getAndDelete),
    delete: trace('delete', store.delete),
    setListed: trace('set_listed', store.setListed),
    deleteListed: trace('delete_listed', store.deleteListed),
    readListed: trace('read_listed', store.readListed),
    addRecent: trace('add_recent', store.addRecent),
    readRecent: trace('read_recent', store.readRecent),
    reserveBytes: trace('reserve_bytes', store.reserveBytes),
    releaseBytes: trace('release_bytes', store.releaseBytes),
    admitRequest: trace('admit', store.admitRequest),
    uncountRequest: trace('withdraw', store.uncountRequest),
    createSession: trace('create_session', store.createSession),
    setSessionLogLevel: trace('set_session_log_level', store.setSessionLogLevel),
    endSession: trace('end_session', store.endSession),
    claimExpiredSession: trace('take_expired_session', store.claimExpiredSession),
    sweepSessions: trace('sweep_sessions', store.sweepSessions),
    countSessions: trace('count_sessions', store.countSessions),
    listSessions: trace('list_sessions', store.listSessions),
    publish: trace('publish', store.publish),
    subscribe: store.subscribe,
    ping: trace('ping', store.ping),
    describe: trace('describe', store.describe),
    close: store.close,
  };
}
