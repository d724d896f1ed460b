// §18.7: what a server says of its tools stays as it was approved.

import type { Policy } from '../mcp/calls/policy.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { isObject } from '../platform/json.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { findChangedMembers } from './compare.ts';
import {
  computeFingerprint,
  computeSha256,
  LOCKED_ITEMS,
  type LockedItemKind,
  type LockedKind,
  type LockedServer,
  type LockFile,
  parseLockFile,
} from './lock-file.ts';

type LockVerdict = 'approved' | 'new' | 'changed';

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
export const NO_LOCK: Lock = {
  check: () => 'approved',
  knows: () => true,
  findChanges: () => [],
};

/** @throws LockFileError for what is no lock file. */
export const readLock = (text: string): Lock => createLock(parseLockFile(text));

export function createLock({ servers }: LockFile): Lock {
  const remembered = new WeakMap<object, Map<string, LockVerdict>>();

  function judge(server: string, kind: LockedKind, item: unknown): LockVerdict {
    const approved = findApproved(servers.get(server), kind, item);
    if (approved === undefined) return 'new';
    const sha256 = computeSha256(kind, item);
    return approved.some((one) => one.sha256 === sha256) ? 'approved' : 'changed';
  }

  return {
    check(server, kind, item) {
      if (typeof item !== 'object' || item === null) return judge(server, kind, item);
      const key = `${kind} ${server}`;
      const verdicts = remembered.get(item) ?? new Map<string, LockVerdict>();
      const verdict = verdicts.get(key) ?? judge(server, kind, item);
      remembered.set(item, verdicts.set(key, verdict));
      return verdict;
    },
    knows: (server, kind, name) => findItems(servers.get(server), kind)?.has(name) === true,
    findChanges(server, kind, item) {
      const approved = findApproved(servers.get(server), kind, item);
      const found = computeFingerprint(kind, item);
      return approved === undefined || found === undefined
        ? []
        : findChangedMembers(approved, found);
    },
  };
}

function findApproved(server: LockedServer | undefined, kind: LockedKind, item: unknown) {
  if (kind === 'instructions') return server?.instructions;
  const name = readName(item, LOCKED_ITEMS[kind].key);
  return name === undefined ? undefined : findItems(server, kind)?.get(name);
}

const findItems = (server: LockedServer | undefined, kind: LockedItemKind) =>
  server?.[LOCKED_ITEMS[kind].list];

function readName(item: unknown, key: 'name' | 'uri'): string | undefined {
  const name = isObject(item) ? item[key] : undefined;
  return typeof name === 'string' ? name : undefined;
}

// §18.7: the lock as a policy: what was not approved is hidden from everybody.

/** Counts what it hides: each time that a list was read. */
export const createLockPolicy = (
  lock: Lock,
  metrics: Pick<Metrics, 'recordLockRefusal'>,
): Policy => ({
  findHidden(server, kind, said) {
    const verdict = lock.check(server, kind, said);
    if (verdict === 'approved') return undefined;
    metrics.recordLockRefusal(server, kind, verdict);
    return LOCKED[verdict];
  },
});

/** The rest of a sentence that begins with the name of what is hidden. */
export const LOCKED = {
  new: 'is not in postern.lock. See what is new with postern lock --check; approve it with postern lock',
  changed:
    'is no longer what postern.lock approved. See what changed with postern lock --check; approve it with postern lock',
} as const;

// §22.4: the lock has hashes only. Of what is no longer as it was approved, what this process saw approved is kept, so that
// operators can compare.

interface ListedItems {
  readonly items: readonly RawItem[];
}

/** Keyed by own name or URI. */
export type LastApproved = ReadonlyMap<string, RawItem>;

export const NONE_APPROVED: LastApproved = new Map();

/** Holds only items of `next` that are not approved, so that there are never more than the server lists. */
export function findLastApproved(
  kind: LockedItemKind,
  lists: { readonly next: ListedItems; readonly before: ListedItems | undefined },
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
