// Of those who want the same thing at the same time, one does the work, and all get its outcome.

export interface SingleFlight<Key, Value> {
  /** Begins `work`, unless it is under way for this key. */
  run(key: Key, work: () => Promise<Value>): Promise<Value>;
  /** What is under way. */
  find(key: Key): Promise<Value> | undefined;
  count(): number;
}

export function createSingleFlight<Key, Value>(): SingleFlight<Key, Value> {
  const underWay = new Map<Key, Promise<Value>>();
  return {
    run(key, work) {
      const known = underWay.get(key);
      if (known !== undefined) return known;
      const started = work().finally(() => underWay.delete(key));
      underWay.set(key, started);
      return started;
    },
    find: (key) => underWay.get(key),
    count: () => underWay.size,
  };
}
