// What takes long to find out of each item of a list, before anybody gets the list: while one server's is read, others have
// their turn.

import type { RawItem } from '../../mcp/catalog/catalog.ts';
import type { Clock } from '../../platform/clock.ts';
import { createTurns } from '../../platform/turns.ts';
import { LIST_KINDS, type ListKind } from '../../protocol/list-kinds.ts';
import type { Lock } from '../lock/lock.ts';
import { findItemProblem } from './check-item.ts';

export interface ReadItemsDeps {
  readonly clock: Clock;
  readonly lock: Lock | undefined;
}

/** What is found out is remembered with each item. */
export async function readItems(
  server: string,
  kind: ListKind,
  items: readonly RawItem[],
  { clock, lock }: ReadItemsDeps,
): Promise<void> {
  const { ruled } = LIST_KINDS[kind];
  const work = createTurns(clock);
  for (const item of items) {
    const isUsable = findItemProblem(kind, item) === undefined;
    if (work.isOver()) await work.next();
    if (isUsable && ruled !== 'resource') lock?.check(server, ruled, item);
    if (work.isOver()) await work.next();
  }
}
