// STORE_READS=tracked: what this process changes itself holds for its own next call, whenever Redis tells of it.
import { buildSessionKey } from '../keys.ts';
import type { KeyValue, Sessions } from '../store.ts';

type Changed = KeyValue & Sessions;

interface OwnChangesOptions {
  /** Undefined where nothing is remembered. */
  readonly records: { forget(key: string): void } | undefined;
  readonly sessionKeyPrefix: string;
}

export function forgetOwnChanges(
  store: Changed,
  { records, sessionKeyPrefix }: OwnChangesOptions,
): Changed {
  if (records === undefined) return store;
  const buildKey = (sessionId: string) => buildSessionKey(sessionKeyPrefix, sessionId);

  /** Before, so that nobody finds it while it changes; and after, since it may have been read anew meanwhile. */
  function change<Result>(key: string, send: () => Promise<Result>): Promise<Result> {
    records?.forget(key);
    return send().finally(() => records?.forget(key));
  }

  return {
    ...store,
    set: (key, ...rest) => change(key, () => store.set(key, ...rest)),
    getOrSet: (key, ...rest) => change(key, () => store.getOrSet(key, ...rest)),
    compareAndSet: (key, ...rest) => change(key, () => store.compareAndSet(key, ...rest)),
    compareAndDelete: (key, ...rest) => change(key, () => store.compareAndDelete(key, ...rest)),
    getAndDelete: (key) => change(key, () => store.getAndDelete(key)),
    delete: (key) => change(key, () => store.delete(key)),
    setListed: (list, key, ...rest) => change(key, () => store.setListed(list, key, ...rest)),
    replaceListed: (list, key, ...rest) =>
      change(key, () => store.replaceListed(list, key, ...rest)),
    deleteListed: (list, key) => change(key, () => store.deleteListed(list, key)),

    async createSession(session, ...rest) {
      const { sessionId } = session;
      const ended = await change(buildKey(sessionId), () => store.createSession(session, ...rest));
      for (const id of ended) records.forget(buildKey(id));
      return ended;
    },
    setSessionLogLevel: (id, ...rest) =>
      change(buildKey(id), () => store.setSessionLogLevel(id, ...rest)),
    endSession: (id, owner) => change(buildKey(id), () => store.endSession(id, owner)),
  };
}
