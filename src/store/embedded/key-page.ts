// Keys that end with a time and a name, page by page, the latest first.
import type { Database } from 'lmdb';
import { findNextPlace, type TimedEntry } from '../page.ts';
import type { PagePlace, PageRequest } from '../store.ts';

/** What stands before the time, if anything, then the time, and what the key is of. */
export type TimedKey = (string | number)[];

export interface KeyPage {
  readonly entries: readonly TimedEntry[];
  readonly next: PagePlace | undefined;
}

/** Of the keys that begin with `prefix`. */
export function readKeyPage<Key extends TimedKey>(
  database: Database<true, Key>,
  prefix: readonly string[],
  request: PageRequest,
): KeyPage {
  const { from, limit } = request;
  const range = {
    reverse: true,
    start: [...prefix, from?.time ?? Number.MAX_VALUE, AFTER_ALL_NAMES],
    end: [...prefix, 0],
    offset: from?.skip ?? 0,
    limit,
  };
  const entries = [...database.getKeys(range)].map((key) => ({
    id: String(key.at(-1)),
    time: Number(key.at(-2)),
  }));
  return { entries, next: findNextPlace(entries, request) };
}

const AFTER_ALL_NAMES = '\uffff';
