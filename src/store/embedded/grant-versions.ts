// The versions of grants, each asked for at every call of its user: read from memory, since a grant may have 20 KB, and
// lmdb gives a value as a whole.
import { createBoundedMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { GRANT_VERSION_LENGTH, type GrantLookup, NO_GRANT } from '../store.ts';
import type { ExpiringRecord } from './expiring-records.ts';

export interface GrantVersions {
  lookUp(key: string): GrantLookup;
  /** To be called as values are changed: what was known of them holds no more. Settles as the change does. */
  forget<Result>(keys: readonly string[], changing: Promise<Result>): Promise<Result>;
}

interface KnownVersion {
  readonly version: string;
  readonly expiresAt: number;
}

/** A few megabytes. */
const MAX_KNOWN = 10_000;

/** `read` may throw, and gives records whose time is over, too: that is for the clock to say at each call. */
export function createGrantVersions(
  read: (key: string) => ExpiringRecord<string> | undefined,
  clock: Clock,
): GrantVersions {
  const known = createBoundedMap<string, KnownVersion>(MAX_KNOWN);
  /** How many changes of a key are under way: until they are on disk, reads give what was there before. */
  const changes = new Map<string, number>();

  function find(key: string): KnownVersion | undefined {
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;
    const record = read(key);
    if (record === undefined) return undefined;
    const { value, expiresAt } = record;
    const found = { version: value.slice(0, GRANT_VERSION_LENGTH), expiresAt };
    if (!changes.has(key)) known.set(key, found);
    return found;
  }

  function endChange(key: string): void {
    const left = (changes.get(key) ?? 0) - 1;
    if (left > 0) changes.set(key, left);
    else changes.delete(key);
  }

  return {
    lookUp(key) {
      try {
        const found = find(key);
        return found === undefined || found.expiresAt <= clock.now() || found.version === ''
          ? NO_GRANT
          : { version: found.version };
      } catch (failure) {
        return { failure };
      }
    },
    forget(keys, changing) {
      for (const key of keys) {
        known.delete(key);
        changes.set(key, (changes.get(key) ?? 0) + 1);
      }
      return changing.finally(() => {
        for (const key of keys) endChange(key);
      });
    },
  };
}
