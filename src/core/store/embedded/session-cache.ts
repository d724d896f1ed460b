// Sessions that were read lately, so that a call needs not read and decode its session's record.

/** Bounded; forgets those that were not read for long. */
export interface SessionCache<Cached> {
  get(id: string): Cached | undefined;
  /** `key` is a number that stands for the id. */
  put(id: string, key: number, cached: Cached): void;
  delete(id: string): void;
}

/** Some 5 MB in each generation. */
const GENERATION = 5000;

/** How many of those that were read once are remembered. A power of two. */
const READ_ONCE = 16_384;

/**
 * In two generations: when the younger is full, it becomes the older, whose entries are forgotten
 * unless they are read again. Reading one of the younger writes nothing, as moving it to the end of
 * a list would.
 */
export function createSessionCache<Cached>(): SessionCache<Cached> {
  let younger = new Map<string, Cached>();
  let older = new Map<string, Cached>();
  const readOnce = new Float64Array(READ_ONCE);

  function add(id: string, cached: Cached): void {
    if (younger.size >= GENERATION) {
      older = younger;
      younger = new Map();
    }
    younger.set(id, cached);
  }

  return {
    get(id) {
      const young = younger.get(id);
      if (young !== undefined) return young;
      const old = older.get(id);
      if (old !== undefined) add(id, old);
      return old;
    },
    // Only what is read again soon is kept: of more sessions than have room, each would only be in the
    // garbage collector's way.
    put(id, key, cached) {
      const at = (key >>> 0) % READ_ONCE;
      if (readOnce[at] === key) add(id, cached);
      else readOnce[at] = key;
    },
    delete(id) {
      younger.delete(id);
      older.delete(id);
    },
  };
}
