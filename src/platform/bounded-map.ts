// Maps for what anybody may make more of: when one is full, the entry that was used longest ago goes.
import { LRUCache } from 'lru-cache';
import { CAPACITY } from './memory/capacity.ts';

/** `get` counts as using an entry, `peek` does not. */
export type BoundedMap<Key extends {}, Value extends {}> = Pick<
  LRUCache<Key, Value>,
  'get' | 'peek' | 'set' | 'delete' | 'clear' | 'values'
>;

/** A row of {@link CAPACITY}, or a number that a setting says. */
type Capacity = keyof typeof CAPACITY | number;

export const createBoundedMap = <Key extends {}, Value extends {}>(
  capacity: Capacity,
): BoundedMap<Key, Value> =>
  // For entries that have a size the package takes the room of those that are there; with `max` it takes all at once.
  new LRUCache<Key, Value>({
    maxSize: typeof capacity === 'number' ? capacity : CAPACITY[capacity],
    sizeCalculation: () => 1,
  });

export const createSizedMap = <Key extends {}, Value extends {}>({
  maxSize,
  measure,
  onRemove,
}: {
  /** The sum over all entries. One that is larger alone is not taken. */
  readonly maxSize: number;
  measure(key: Key): number;
  /** It is no longer there, for whatever reason. */
  onRemove(value: Value, key: Key): void;
}): BoundedMap<Key, Value> =>
  new LRUCache<Key, Value>({
    maxSize,
    sizeCalculation: (_, key) => measure(key),
    dispose: onRemove,
  });

/** Values that end at a point in time. The one that was set longest ago goes first, however often it is read. */
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
    /** `endsAt` in milliseconds, as `getNow` counts them. What has ended is not kept. */
    set(key: string, value: Value, endsAt: number) {
      if (endsAt > getNow()) entries.set(key, { value, endsAt });
      else entries.delete(key);
    },
    delete: (key: string) => void entries.delete(key),
  };
}

/**
 * Values in the order in which they were added, for what comes and goes with every call.
 *
 * A Set or a Map replaces its table each time that it has grown or was emptied, and an old table refers to the next one. Once the
 * garbage collector has moved one of them to the old generation, that keeps all later ones, and what is in them, until a full
 * collection. Here nothing is left behind.
 */
export class LinkedList<Value> implements Iterable<Value> {
  /** The number of entries. */
  size = 0;
  /** The oldest. */
  private first: Link<Value> | undefined;
  private last: Link<Value> | undefined;

  /** At the end. What is returned takes it out again. */
  add(value: Value): Link<Value> {
    const link = new Link(this, value);
    link.previous = this.last;
    if (this.last === undefined) this.first = link;
    else this.last.next = link;
    this.last = link;
    this.size += 1;
    return link;
  }

  /** Takes it out if it is in this list; {@link Link.remove} does so whichever list it is in. */
  remove(link: Link<Value> | undefined): void {
    if (link?.list !== this) return;
    const { previous, next } = link;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.last = previous;
    else next.previous = previous;
    link.list = link.previous = link.next = undefined;
    this.size -= 1;
  }

  /** The oldest for which `isMeant` is true. */
  find(isMeant: (value: Value) => boolean): Value | undefined {
    let link = this.first;
    while (link !== undefined && !isMeant(link.value)) link = link.next;
    return link?.value;
  }

  /** The oldest first. Of what is removed meanwhile, it may only be the value at hand: else go through a copy. */
  *[Symbol.iterator](): Iterator<Value> {
    let link = this.first;
    while (link !== undefined) {
      const { next, value } = link;
      yield value;
      link = next;
    }
  }
}

/** The place of a value in a list. */
export class Link<Value> {
  readonly value: Value;
  /** Undefined once it was removed. */
  list: LinkedList<Value> | undefined;
  previous: Link<Value> | undefined = undefined;
  next: Link<Value> | undefined = undefined;

  constructor(list: LinkedList<Value>, value: Value) {
    this.list = list;
    this.value = value;
  }

  /** Out of the list that it is in. */
  remove(): void {
    this.list?.remove(this);
  }
}
