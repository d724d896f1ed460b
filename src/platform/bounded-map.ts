// Maps for what anybody may make more of: when one is full, the entry that was used longest ago goes.
import { LRUCache } from 'lru-cache';

/** `get` counts as using an entry, `peek` does not. */
export type BoundedMap<Key extends {}, Value extends {}> = Pick<
  LRUCache<Key, Value>,
  'get' | 'peek' | 'set' | 'delete' | 'clear' | 'values'
>;

export const createBoundedMap = <Key extends {}, Value extends {}>(
  maxEntries: number,
): BoundedMap<Key, Value> =>
  // Of entries that have a size the package takes the room of those that are there; by `max` it takes all at once.
  new LRUCache<Key, Value>({ maxSize: maxEntries, sizeCalculation: () => 1 });

interface SizedMapOptions<Key, Value> {
  /** Of all entries together. One that is larger alone is not taken. */
  readonly maxSize: number;
  measure(key: Key): number;
  /** It is no longer there, for whatever reason. */
  onRemove(value: Value, key: Key): void;
}

export const createSizedMap = <Key extends {}, Value extends {}>({
  maxSize,
  measure,
  onRemove,
}: SizedMapOptions<Key, Value>): BoundedMap<Key, Value> =>
  new LRUCache<Key, Value>({
    maxSize,
    sizeCalculation: (_, key) => measure(key),
    dispose: onRemove,
  });

/** Values that end at a point in time. The one that was set longest ago goes first, however often it is read. */
export interface ExpiringMap<Value> {
  get(key: string): Value | undefined;
  /** `endsAt` in milliseconds, as `getNow` counts them. What has ended is not kept. */
  set(key: string, value: Value, endsAt: number): void;
  delete(key: string): void;
}

export function createExpiringMap<Value>(
  maxEntries: number,
  getNow: () => number,
): ExpiringMap<Value> {
  const entries = createBoundedMap<string, { readonly value: Value; readonly endsAt: number }>(
    maxEntries,
  );
  return {
    get(key) {
      const entry = entries.peek(key);
      if (entry === undefined || entry.endsAt > getNow()) return entry?.value;
      entries.delete(key);
      return undefined;
    },
    set(key, value, endsAt) {
      if (endsAt > getNow()) entries.set(key, { value, endsAt });
      else entries.delete(key);
    },
    delete: (key) => void entries.delete(key),
  };
}
