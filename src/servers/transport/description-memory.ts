// §18.4: a server's descriptions of itself, one for each audience. An LRU cache.

import { isDeepStrictEqual } from 'node:util';
import type { UpstreamDescription } from '../../mcp/upstream/upstream.ts';
import { CAPACITY } from '../../platform/memory/capacity.ts';

interface Kept {
  readonly description: UpstreamDescription;
  readonly bytes: number;
  /** The value of `generation` when the server last gave this description; `NEVER` once it is expired. */
  generation: number;
}

/** Before the first generation. */
const NEVER = -1;

export function createDescriptionMemory() {
  /** Least recently used first. */
  const kept = new Map<string, Kept>();
  let bytes = 0;
  let generation = 0;

  function forget(owner: string) {
    bytes -= kept.get(owner)?.bytes ?? 0;
    kept.delete(owner);
  }

  return {
    find(owner: string) {
      const known = kept.get(owner);
      if (known === undefined) return undefined;
      kept.delete(owner);
      kept.set(owner, known);
      return known.description;
    },
    note(owner: string, description: UpstreamDescription) {
      const known = kept.get(owner);
      if (known !== undefined && isDeepStrictEqual(known.description, description)) {
        known.generation = generation;
        return;
      }
      forget(owner);
      const added = { description, bytes: JSON.stringify(description).length, generation };
      kept.set(owner, added);
      bytes += added.bytes;
      for (const oldest of kept.keys()) {
        // The last entry is kept, whatever its size.
        if (
          kept.size === 1 ||
          (kept.size <= CAPACITY.descriptions && bytes <= CAPACITY.descriptionBytes)
        )
          return;
        forget(oldest);
      }
    },
    forget,
    /** The description may be out of date, but is used until the server gives another. */
    expire(owner: string) {
      const known = kept.get(owner);
      if (known !== undefined) known.generation = NEVER;
    },
    /** Expires all entries, since a different server may have taken its place. */
    expireAll() {
      generation += 1;
    },
    isExpired: (owner: string) => (kept.get(owner)?.generation ?? generation) < generation,
  };
}
