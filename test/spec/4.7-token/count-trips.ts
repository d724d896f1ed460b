// How many trips to the store stand one after the other. Each lasts at least a turn of the event loop,
// so that whatever need not wait for it has begun before it ends.
import { setImmediate } from 'node:timers/promises';
import type { Store } from '../../../src/store/store.ts';

export interface TripCounter {
  /** The store, each of its trips counted. */
  count(store: Store): Store;
  /** The trips since the last call: those of one list began before any of them had ended. */
  take(): readonly (readonly string[])[];
}

export function createTripCounter(): TripCounter {
  let waits: string[][] = [];
  let ended = 0;

  const counted =
    <Args extends readonly unknown[], Result>(
      name: string,
      trip: (...args: Args) => Result | Promise<Result>,
    ) =>
    async (...args: Args): Promise<Result> => {
      const begun = ended;
      waits[begun] = [...(waits[begun] ?? []), name];
      try {
        return await trip(...args);
      } finally {
        await setImmediate();
        ended = Math.max(ended, begun + 1);
      }
    };

  return {
    count: (store) => ({
      ...store,
      get: counted('get', store.get),
      set: counted('set', store.set),
      getOrSet: counted('getOrSet', store.getOrSet),
      getAndDelete: counted('getAndDelete', store.getAndDelete),
      compareAndSet: counted('compareAndSet', store.compareAndSet),
      delete: counted('delete', store.delete),
      deleteListed: counted('deleteListed', store.deleteListed),
      setListed: counted('setListed', store.setListed),
      admitRequest: counted('count', store.admitRequest),
    }),
    take() {
      const taken = waits;
      waits = [];
      ended = 0;
      return taken;
    },
  };
}
