// Values that can also be listed: an index beside them, by the time at which they expire.
import type { Database } from 'lmdb';
import type { Clock } from '../../clock.ts';
import type { Store } from '../store.ts';
import type { DataFolder } from './folder.ts';
import { readKeyPage } from './key-page.ts';
import type { ValueRecords } from './values.ts';

export interface ListedValuesOptions extends Pick<DataFolder, 'root' | 'write' | 'ensureOpen'> {
  readonly records: ValueRecords;
  readonly clock: Clock;
}

type ListedKey = [list: string, expiresAt: number, key: string];

/** Entries of values that have expired, which each new one clears away. */
const CLEARED_AT_ONCE = 100;

export function createListedValues({
  root,
  write,
  ensureOpen,
  records,
  clock,
}: ListedValuesOptions): Pick<Store, 'setListed' | 'deleteListed' | 'readListed'> {
  const entries: Database<true, ListedKey> = root.openDB({ name: 'listed-values' });

  function clearExpired(list: string): void {
    const range = { start: [list, 0], end: [list, clock.now() + 1], limit: CLEARED_AT_ONCE };
    for (const entry of [...entries.getKeys(range)]) entries.remove(entry);
  }

  return {
    setListed: (list, key, value, ttlSeconds) =>
      write(() => {
        const expiresAt = clock.now() + ttlSeconds * 1000;
        entries.remove([list, records.readExpiry(key), key]);
        clearExpired(list);
        records.put(key, value, expiresAt);
        entries.put([list, expiresAt, key], true);
      }),
    deleteListed: (list, key) =>
      write(() => {
        const wasThere = records.read(key) !== undefined;
        entries.remove([list, records.readExpiry(key), key]);
        records.remove(key);
        return wasThere;
      }),
    async readListed(list, request) {
      ensureOpen();
      const page = readKeyPage(entries, [list], request);
      const items = page.entries.flatMap(({ id: key, time: expiresAt }) => {
        const value = records.readExpiry(key) === expiresAt ? records.read(key) : undefined;
        return value === undefined ? [] : [{ key, value, expiresAt }];
      });
      return { items, next: page.next };
    },
  };
}
