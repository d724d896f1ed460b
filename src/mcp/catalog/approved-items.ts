// §18.7: tools, prompts, skills and instructions stay as they were approved: what the catalogues and the lock say to each other.

import type { ListKind } from '../protocol/list-kinds.ts';
import type { RawItem } from './catalog.ts';

/** In the order in which they are told. */
export const LOCKED_ITEM_KINDS = ['prompt', 'skill', 'tool'] as const;

/** Items that servers list. Resources come and go. */
export type LockedItemKind = (typeof LOCKED_ITEM_KINDS)[number];

export type LockedKind = LockedItemKind | 'instructions';

/** The list of each kind, and the member by which an item is found. */
export const LOCKED_ITEMS = {
  prompt: { list: 'prompts', key: 'name' },
  skill: { list: 'skills', key: 'uri' },
  tool: { list: 'tools', key: 'name' },
} as const satisfies Readonly<
  Record<LockedItemKind, { readonly list: ListKind; readonly key: string }>
>;

export type LockedList = (typeof LOCKED_ITEMS)[LockedItemKind]['list'];

/** Undefined for what is not locked. */
export const findLockedKind = (list: ListKind): LockedItemKind | undefined =>
  LOCKED_ITEM_KINDS.find((kind) => LOCKED_ITEMS[kind].list === list);

export type LockVerdict = 'approved' | 'new' | 'changed';

export interface Lock {
  /**
   * True if what the server says was approved. `item` as the server wrote it: a member of its list (by its own
   * name), or the text of its instructions. The answer for an object is remembered with it: items are not changed.
   */
  check(server: string, kind: LockedKind, item: unknown): LockVerdict;
  /** True if anything was approved under this own name of the server. */
  knows(server: string, kind: LockedItemKind, name: string): boolean;
  /** The members that were changed, such as `description`. None where the lock does not say. */
  findChanges(server: string, kind: LockedKind, item: unknown): readonly string[];
}

/** Without a lock file everything is approved. */
export const NO_LOCK: Lock = { check: () => 'approved', knows: () => true, findChanges: () => [] };

/** The rest of a sentence that begins with the name of what is hidden. */
export const LOCKED = {
  new: 'is not in postern.lock. See what is new with postern lock --check; approve it with postern lock',
  changed:
    'is no longer what postern.lock approved. See what changed with postern lock --check; approve it with postern lock',
} as const;

/** The parts of a server that are approved, as it wrote them. */
export interface ServerContent
  extends Readonly<Record<LockedList, { readonly items: readonly RawItem[] }>> {
  /** Undefined where it has none. */
  readonly instructions: string | undefined;
}

/** §22.4, §22.6: a server, as operators approve it. */
export interface ApprovableServer {
  readonly name: string;
  /** Each user has lists of their own: then nothing can be approved for all. */
  readonly isPersonal: boolean;
  /** As it was last told; no server is asked. */
  peek(): ServerContent;
  /** False for an item that clients do not see, whatever was approved. */
  isUsable(list: LockedList, item: RawItem): boolean;
  /** The item of that name, or URI, as it was approved when last listed so; undefined where it still is, or was never seen so. */
  peekApproved(list: LockedList, ownName: string): RawItem | undefined;
  /**
   * The server is asked what it says now. Lists that are served are asked for anew where they are no longer that.
   *
   * @throws UpstreamError
   */
  read(signal: AbortSignal): Promise<ServerContent>;
}
