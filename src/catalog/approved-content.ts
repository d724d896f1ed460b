// §18.7, §22.4, §22.6: a server's content in the form that operators approve.

import {
  LOCKED_ITEMS,
  type Lock,
  type LockedItemKind,
  type LockedList,
  type ServerContent,
} from '../mcp/catalog/approved-items.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { type Upstream, type UpstreamCaller, UpstreamError } from '../mcp/upstream/upstream.ts';
import { type FetchedList, fetchList } from './fetch-list.ts';

/**
 * The server's current content, in the form in which it would be approved.
 *
 * @throws UpstreamError also for a list that was cut, which cannot be approved.
 */
export async function readServer(
  upstream: Upstream,
  caller: UpstreamCaller,
  signal: AbortSignal,
): Promise<ServerContent & Readonly<Record<LockedList, FetchedList>>> {
  const { instructions } = await upstream.describe(caller);
  const readWhole = async (name: LockedList) => {
    const list = await fetchList(upstream, name, caller, signal);
    if (list.cut !== undefined)
      throw new UpstreamError('invalid', `not all ${name} can be read: ${list.cut}`);
    return list;
  };
  const tools = await readWhole('tools');
  const prompts = await readWhole('prompts');
  const skills = await readWhole('skills');
  return { instructions: readInstructions(instructions), tools, prompts, skills };
}

/** Undefined for blank instructions. */
export const readInstructions = (text: string | undefined): string | undefined =>
  text?.trim() === '' ? undefined : text;

/**
 * §22.4: the lock contains only hashes. If an item differs from its approved version, the version that this process last saw
 * approved is kept, so that operators can compare both. No more items are kept than the server lists.
 */
export class LastApproved {
  private readonly server: string;
  /** Keyed by the item's own name or URI. */
  private readonly items = new Map<LockedList, ReadonlyMap<string, RawItem>>();

  constructor(server: string) {
    this.server = server;
  }

  /** Called when the list `before` is replaced by `next`. */
  note(
    lock: Lock,
    kind: LockedItemKind,
    before: readonly RawItem[] | undefined,
    next: readonly RawItem[],
  ): void {
    const { list, key } = LOCKED_ITEMS[kind];
    const isApproved = (item: RawItem) => lock.check(this.server, kind, item) === 'approved';
    const hidden = next.filter((item) => !isApproved(item));
    const known = this.items.get(list);
    const seen = hidden.length === 0 ? [] : (before ?? []).filter(isApproved);
    const approved = new Map(seen.map((item) => [String(item[key]), item]));
    this.items.set(
      list,
      new Map(
        hidden.flatMap((one) => {
          const name = String(one[key]);
          const item = approved.get(name) ?? known?.get(name);
          return item === undefined ? [] : [[name, item] as const];
        }),
      ),
    );
  }

  /** The last version seen approved; undefined if the item is still approved, or was never seen approved. */
  find(list: LockedList, ownName: string): RawItem | undefined {
    return this.items.get(list)?.get(ownName);
  }
}
