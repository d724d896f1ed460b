// §18.7: the interface between catalogues and the lock, which pins tools, prompts, skills and instructions to their approved
// state.

import type { ListKind } from '../protocol/list-kinds.ts';
import type { RawItem } from './catalog.ts';

/** In the order of reports. */
export const LOCKED_ITEM_KINDS = ['prompt', 'skill', 'tool'] as const;

/** Kinds of items that are locked. Resources are not: they come and go. */
export type LockedItemKind = (typeof LOCKED_ITEM_KINDS)[number];

export type LockedKind = LockedItemKind | 'instructions';

/** The list of each kind, and the member that identifies an item. */
export const LOCKED_ITEMS = {
  prompt: { list: 'prompts', key: 'name' },
  skill: { list: 'skills', key: 'uri' },
  tool: { list: 'tools', key: 'name' },
} as const satisfies Readonly<
  Record<LockedItemKind, { readonly list: ListKind; readonly key: string }>
>;

export type LockedList = (typeof LOCKED_ITEMS)[LockedItemKind]['list'];

/** Undefined for a list without a lock. */
export const findLockedKind = (list: ListKind): LockedItemKind | undefined =>
  LOCKED_ITEM_KINDS.find((kind) => LOCKED_ITEMS[kind].list === list);

export type LockVerdict = 'approved' | 'new' | 'changed';

export interface Lock {
  /**
   * Compares an item with its approved state. `item` is as the server wrote it: an item of its list (with its own name), or the
   * text of its instructions. Verdicts are memoized by object, since items are never modified.
   */
  check(server: string, kind: LockedKind, item: unknown): LockVerdict;
  /** True if any item was approved under this name, as the server wrote it. */
  knows(server: string, kind: LockedItemKind, name: string): boolean;
  /** The changed members, such as `description`; empty if the lock does not contain them. */
  findChanges(server: string, kind: LockedKind, item: unknown): readonly string[];
}

/** Without a lock file, everything is approved. */
export const NO_LOCK: Lock = { check: () => 'approved', knows: () => true, findChanges: () => [] };

/** Completes a sentence that begins with the name of the hidden item. */
export const LOCKED = {
  new: 'is not in postern.lock. See what is new with postern lock --check; approve it with postern lock',
  changed:
    'is no longer what postern.lock approved. See what changed with postern lock --check; approve it with postern lock',
} as const;

/** The parts of a server that need approval, as it wrote them. */
export interface ServerContent
  extends Readonly<Record<LockedList, { readonly items: readonly RawItem[] }>> {
  /** Undefined if it has none. */
  readonly instructions: string | undefined;
}

/** §22.4, §22.6: a server, as operators approve it. */
export interface ApprovableServer {
  readonly name: string;
  /** True if each user has different lists, so no approval can cover all users. */
  readonly isPersonal: boolean;
  /** The last known content, without a request to the server. */
  peek(): ServerContent;
  /** False for an item that clients never see, whether or not it is approved. */
  isUsable(list: LockedList, item: RawItem): boolean;
  /**
   * The last approved version of an item, by its name or URI; undefined if the current version is approved, or no approved one
   * was seen.
   */
  peekApproved(list: LockedList, ownName: string): RawItem | undefined;
  /**
   * Requests the current content from the server. Refetches served lists that differ from it.
   *
   * @throws UpstreamError
   */
  read(signal: AbortSignal): Promise<ServerContent>;
}
