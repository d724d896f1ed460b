// §22.4: the lock has hashes only. Of what is no longer as it was approved, what this process saw approved is kept, so that
// operators can compare.
import type { RawItem } from '../../mcp/catalog/catalog.ts';
import type { Lock } from '../lock/lock.ts';
import { LOCKED_ITEMS, type LockedItemKind } from '../lock/lock-file.ts';
import type { FetchedList } from './fetch-list.ts';

/** Keyed by own name or URI. */
export type LastApproved = ReadonlyMap<string, RawItem>;

export const NONE_APPROVED: LastApproved = new Map();

/** Holds only items of `next` that are not approved, so that there are never more than the server lists. */
export function findLastApproved(
  kind: LockedItemKind,
  lists: { readonly next: FetchedList; readonly before: FetchedList | undefined },
  known: LastApproved,
  isApproved: (item: RawItem) => boolean,
): LastApproved {
  const { key } = LOCKED_ITEMS[kind];
  const hidden = lists.next.items.filter((item) => !isApproved(item));
  if (hidden.length === 0) return NONE_APPROVED;
  const before = new Map(
    (lists.before?.items ?? []).filter(isApproved).map((item) => [String(item[key]), item]),
  );
  return new Map(
    hidden.flatMap((one) => {
      const name = String(one[key]);
      const item = before.get(name) ?? known.get(name);
      return item === undefined ? [] : [[name, item] as const];
    }),
  );
}

export const createIsApproved =
  (server: string, kind: LockedItemKind, lock: Lock) =>
  (item: RawItem): boolean =>
    lock.check(server, kind, item) === 'approved';
