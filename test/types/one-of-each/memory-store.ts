// Values in a Map. What else a store has, this one cannot do.
import type { Clock } from '../../../src/platform/clock.ts';
import { type Store, StoreUnavailable } from '../../../src/store/store.ts';

const refuse = () => Promise.reject(new StoreUnavailable('It is not kept in memory'));

export function openMemoryStore(clock: Pick<Clock, 'now'>): Store {
  const values = new Map<string, { readonly value: string; readonly expiresAt: number }>();

  async function get(key: string) {
    const found = values.get(key);
    return found !== undefined && found.expiresAt > clock.now() ? found.value : undefined;
  }

  return {
    isShared: false,
    databaseSystem: 'memory',
    get,
    async set(key, value, ttlSeconds) {
      values.set(key, { value, expiresAt: clock.now() + ttlSeconds * 1000 });
    },
    async delete(key) {
      values.delete(key);
    },
    getOrSet: refuse,
    compareAndSet: refuse,
    compareAndDelete: refuse,
    getAndDelete: refuse,
    setListed: refuse,
    replaceListed: refuse,
    deleteListed: refuse,
    readListed: refuse,
    countListed: refuse,
    addRecent: refuse,
    readRecent: refuse,
    createSession: refuse,
    setSessionLogLevel: refuse,
    endSession: refuse,
    claimExpiredSession: refuse,
    sweepSessions: async () => 0,
    countSessions: async () => 0,
    listSessions: refuse,
    admitRequest: refuse,
    uncountRequest: refuse,
    reserveBytes: refuse,
    releaseBytes: refuse,
    publish: refuse,
    subscribe: () => () => {},
    async ping() {},
    describe: refuse,
    async close() {},
  };
}
