// §22.4: what is hidden because the lock did not approve it, for operators: what it says now, and what was approved.
import { toCanonicalJson } from '../../platform/canonical-json.ts';
import {
  LOCKED_ITEM_KINDS,
  LOCKED_ITEMS,
  type LockedItemKind,
  type LockedKind,
  selectMembers,
} from '../lock/fingerprint.ts';
import type { Lock } from '../lock/lock.ts';
import { GATEWAY_CALLER } from '../upstream.ts';
import { findItemProblem } from './check-item.ts';
import type { PlannedServer } from './plan.ts';
import { selectTools } from './prepare-list.ts';

export interface LockDifferences {
  /** How many there are. */
  readonly total: number;
  /** Servers that have some, and how many. */
  readonly servers: readonly { readonly server: string; readonly total: number }[];
  /** Some of them, server by server. */
  readonly differences: readonly ShownDifference[];
  /** Servers whose lists differ between users: what of them is hidden is not known here. */
  readonly personal: readonly string[];
}

export interface ShownDifference {
  readonly server: string;
  readonly kind: LockedKind;
  /** The server's own; undefined for instructions. */
  readonly name: string | undefined;
  readonly change: 'new' | 'changed';
  /** Of what is new all, otherwise those that changed. */
  readonly members: readonly MemberDifference[];
  /** Whether `before` is known: the lock has only hashes, and this process may never have seen what was approved. */
  readonly isFormerKnown: boolean;
}

export interface MemberDifference {
  /** Such as `description`. */
  readonly name: string;
  /** As it was approved; undefined where there was none, or it is not known. */
  readonly before?: unknown;
  /** Undefined where there is none any more. */
  readonly now?: unknown;
}

/** Something that is not approved. */
export interface Hidden {
  readonly server: string;
  readonly kind: LockedKind;
  readonly name: string | undefined;
  readonly change: 'new' | 'changed';
  readonly item: unknown;
  readonly former: unknown;
}

/** Those from `skip` on, `limit` at most. No server is asked: it is what they said last. */
export function listLockDifferences(
  servers: Iterable<PlannedServer>,
  lock: Lock,
  { skip, limit }: { readonly skip: number; readonly limit: number },
): LockDifferences {
  const all = [...servers];
  const byServer = all
    .filter(({ server }) => !server.isPersonal)
    .map((planned) => ({ planned, items: findHidden(planned, lock) }))
    .filter(({ items }) => items.length > 0);
  const hidden = byServer.flatMap(({ items }) => items);
  return {
    total: hidden.length,
    servers: byServer.map(({ planned, items }) => ({
      server: planned.config.name,
      total: items.length,
    })),
    differences: hidden.slice(skip, skip + limit).map((one) => describeHidden(one, lock)),
    personal: all.filter(({ server }) => server.isPersonal).map(({ config }) => config.name),
  };
}

function findHidden({ config, server }: PlannedServer, lock: Lock): readonly Hidden[] {
  const selected = selectTools(config.tools);
  const { lists } = server;
  const instructions = lists.peekDescription(GATEWAY_CALLER)?.instructions;
  const isSilent = typeof instructions !== 'string' || instructions.trim() === '';

  function judge(kind: LockedKind, item: unknown, name?: string, former?: unknown): Hidden[] {
    const verdict = lock.check(config.name, kind, item);
    if (verdict === 'approved') return [];
    return [{ server: config.name, kind, name, change: verdict, item, former }];
  }

  function judgeList(kind: LockedItemKind): Hidden[] {
    const { list, key } = LOCKED_ITEMS[kind];
    const seen = new Set<string>();
    return (lists.peek(list, GATEWAY_CALLER)?.items ?? []).flatMap((item) => {
      const name = String(item[key]);
      if (findItemProblem(list, item) !== undefined || seen.has(name)) return [];
      if (list === 'tools' && !selected.has(name)) return [];
      seen.add(name);
      return judge(kind, item, name, lists.peekApproved(list, name));
    });
  }

  return [
    ...(isSilent ? [] : judge('instructions', instructions)),
    ...LOCKED_ITEM_KINDS.flatMap(judgeList),
  ];
}

/**
 * What changed is told by the short hashes of the lock where what was approved is not known here. A server can find a
 * text with the same short hash as another: `isWhole` shows such members, too, and whoever approves has to see them.
 */
export function describeHidden(hidden: Hidden, lock: Lock, isWhole = false): ShownDifference {
  const { server, kind, name, change, item } = hidden;
  const now = selectMembers(kind, item);
  // What was approved under this name may have been approved in another form since.
  const isFormerKnown = hidden.former !== undefined && change === 'changed';
  const before = isFormerKnown ? selectMembers(kind, hidden.former) : {};
  const all = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  const shown = all.filter((one) => one !== 'name');
  function listChanged(): readonly string[] {
    if (isFormerKnown) return shown.filter((one) => !isSame(before[one], now[one]));
    const told = change === 'changed' ? lock.findChanges(server, kind, item) : [];
    return isWhole ? [...new Set([...told, ...shown])] : told;
  }
  const changed = listChanged();
  const names = changed.length > 0 ? changed : shown;
  return {
    server,
    kind,
    name,
    change,
    isFormerKnown,
    members: names.map((one) => ({ name: one, before: before[one], now: now[one] })),
  };
}

function isSame(before: unknown, now: unknown): boolean {
  try {
    return toCanonicalJson(before) === toCanonicalJson(now);
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}
