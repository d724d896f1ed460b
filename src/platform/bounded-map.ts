// Collections that do not grow without bound: maps for entries that callers can create at will, which evict their least recently
// used entry when full; lists that leave nothing behind; and values that live as long as their keys.
import { LRUCache } from 'lru-cache';
import { CAPACITY } from './memory/capacity.ts';

/** `get` counts as using an entry, `peek` does not. */
export type BoundedMap<Key extends {}, Value extends {}> = Pick<
  LRUCache<Key, Value>,
  'get' | 'peek' | 'set' | 'delete' | 'clear' | 'values' | 'size'
>;

/** A row of {@link CAPACITY}, or a number from a setting. */
type Capacity = keyof typeof CAPACITY | number;

export const createBoundedMap = <Key extends {}, Value extends {}>(
  capacity: Capacity,
): BoundedMap<Key, Value> =>
  // With a size per entry, the package allocates memory as entries are added; with `max`, it allocates everything at once.
  new LRUCache<Key, Value>({
    maxSize: typeof capacity === 'number' ? capacity : CAPACITY[capacity],
    sizeCalculation: () => 1,
  });

export const createSizedMap = <Key extends {}, Value extends {}>({
  maxSize,
  measure = () => 1,
  onRemove,
}: {
  /** Maximum sum of the sizes of all entries. A single entry larger than this is not stored. */
  readonly maxSize: number;
  /** Returns the size of an entry. Default: 1. */
  measure?(key: Key): number;
  /** Called when an entry is removed, evicted or replaced. */
  onRemove(value: Value, key: Key): void;
}): BoundedMap<Key, Value> =>
  new LRUCache<Key, Value>({
    maxSize,
    sizeCalculation: (_, key) => measure(key),
    dispose: onRemove,
  });

/** A map of values with an expiry time. A full map evicts the oldest value first, however often that is read. */
export function createExpiringMap<Value>(capacity: Capacity, getNow: () => number) {
  const entries = createBoundedMap<string, { readonly value: Value; readonly endsAt: number }>(
    capacity,
  );
  return {
    get(key: string): Value | undefined {
      const entry = entries.peek(key);
      if (entry === undefined || entry.endsAt > getNow()) return entry?.value;
      entries.delete(key);
      return undefined;
    },
    /** `endsAt` in milliseconds, on the clock of `getNow`. An expired value is not stored. */
    set(key: string, value: Value, endsAt: number) {
      if (endsAt > getNow()) entries.set(key, { value, endsAt });
      else entries.delete(key);
    },
    delete: (key: string) => void entries.delete(key),
  };
}

/**
 * Values in insertion order, for entries that come and go with every call.
 *
 * A Set or a Map replaces its table whenever it grows or is emptied, and an old table refers to the next one. Once the garbage
 * collector has promoted such a table to the old generation, it keeps all later tables and their entries alive until a full
 * collection. A linked list leaves nothing behind.
 */
export class LinkedList<Value> implements Iterable<Value> {
  /** The number of entries. */
  size = 0;
  /** The oldest entry; read only. */
  first: Link<Value> | undefined = undefined;
  private last: Link<Value> | undefined = undefined;

  /** Appends the value. */
  add(value: Value): Link<Value> {
    const link: Link<Value> = { value, list: this, previous: this.last, next: undefined };
    if (this.last === undefined) this.first = link;
    else this.last.next = link;
    this.last = link;
    this.size += 1;
    return link;
  }

  /** Removes the link if it is in this list. */
  remove(link: Link<Value> | undefined): void {
    if (link?.list !== this) return;
    const { previous, next } = link;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.last = previous;
    else next.previous = previous;
    // A link that is still referenced must not keep its neighbours alive.
    link.list = link.previous = link.next = undefined;
    this.size -= 1;
  }

  /** The oldest value that satisfies the condition. */
  find(isRight: (value: Value) => boolean): Value | undefined {
    for (let link = this.first; link !== undefined; link = link.next)
      if (isRight(link.value)) return link.value;
    return undefined;
  }

  /** Oldest first. Only the current value may be removed during iteration; otherwise iterate over a copy. */
  *[Symbol.iterator](): Iterator<Value> {
    let link = this.first;
    while (link !== undefined) {
      const { next, value } = link;
      yield value;
      link = next;
    }
  }
}

/** The position of a value in a list. */
export interface Link<Value> {
  readonly value: Value;
  /** Undefined once the value is removed. */
  list: LinkedList<Value> | undefined;
  previous: Link<Value> | undefined;
  next: Link<Value> | undefined;
}

/** Calls `compute` once per object. The value lives as long as the object. */
export function computeOnce<Key extends object, Value>(
  compute: (key: Key) => Value,
): (key: Key) => Value {
  const values = new WeakMap<Key, Value>();

  return function getComputed(key) {
    const known = values.get(key);
    if (known !== undefined) return known;
    const value = compute(key);
    values.set(key, value);
    return value;
  };
}
