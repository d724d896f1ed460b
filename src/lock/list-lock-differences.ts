// §22.4: what is hidden because the lock did not approve it, for operators: what it says now, and what was approved.

import { findItemProblem } from '../catalog/check-item.ts';
import type { PlannedServer } from '../catalog/plan.ts';
import { selectTools } from '../catalog/prepare-list.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { LIST_KINDS } from '../mcp/protocol/list-kinds.ts';
import { GATEWAY_CALLER, UpstreamError } from '../mcp/upstream/upstream.ts';
import type { Clock, Turns } from '../platform/clock.ts';
import { hashSha256 } from '../platform/ids.ts';
import { toCanonicalJson } from '../platform/json.ts';
import { findDifferences } from './compare.ts';
import type { Lock } from './lock.ts';
import {
  type Fingerprint,
  LOCKED_ITEM_KINDS,
  LOCKED_ITEMS,
  type LockedItemKind,
  type LockedKind,
  type LockedServer,
  type LockFile,
  selectMembers,
} from './lock-file.ts';
import { indexItems, type ReadServer, readServer, toLockedServer } from './read-server.ts';

export interface LockDifferences {
  /** The number of all. */
  readonly total: number;
  /** Servers that have some, and how many. */
  readonly servers: readonly { readonly server: string; readonly total: number }[];
  /** Some of them, server by server. */
  readonly differences: readonly ShownDifference[];
  /** Servers whose lists differ between users: what of them is hidden is not known here. */
  readonly personal: readonly string[];
}

interface ShownDifference {
  readonly server: string;
  readonly kind: LockedKind;
  /** The server's own; undefined for instructions. */
  readonly name: string | undefined;
  readonly change: 'new' | 'changed';
  /** All of a new item, otherwise those that changed. */
  readonly members: readonly MemberDifference[];
  /** True if `before` is known: the lock has only hashes, and this process may never have seen what was approved. */
  readonly isFormerKnown: boolean;
}

interface MemberDifference {
  /** Such as `description`. */
  readonly name: string;
  /** As it was approved; undefined where there was none, or it is not known. */
  readonly before?: unknown;
  /** Undefined where there is none any more. */
  readonly now?: unknown;
}

/** Something that is not approved. */
interface Hidden {
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
 * Changes are told by the short hashes of the lock where what was approved is not known here. A server can find a
 * text with the same short hash as another: `isWhole` shows such members, too, and whoever approves has to see them.
 */
function describeHidden(hidden: Hidden, lock: Lock, isWhole = false): ShownDifference {
  const { server, kind, name, change, item } = hidden;
  const now = selectMembers(kind, item);
  // The item approved under this name may have been approved in another form since.
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

// §22.6: what approving a server would change in postern.lock: as it answers now, not as it was last listed.

export interface ServerReview {
  readonly server: string;
  /** Hash of what was approved and of what the server says now: another one means that either has changed. */
  readonly digest: string;
  /** All that `postern lock` would change of this server; also what clients do not see for other reasons. */
  readonly changes: readonly ReviewedChange[];
  /** As it would be approved. */
  readonly found: LockedServer;
}

export interface ReviewedChange
  extends Omit<ShownDifference, 'change' | 'isFormerKnown' | 'members'> {
  readonly change: ShownDifference['change'] | 'gone';
}

/** With what it says now, and what was approved. */
export interface ReviewedDifference extends Omit<ShownDifference, 'change'> {
  readonly change: ReviewedChange['change'];
}

/** A server as it answered. */
export interface AnsweredServer {
  readonly planned: PlannedServer;
  readonly read: ReadServer;
  readonly found: LockedServer;
}

/** An operator waits for the answer, so a server gets no more time than this. */
const READ_LIMIT_MS = 15_000;

/** Lists that are served are asked for anew where they are no longer what the server says. @throws UpstreamError */
export async function askServer(planned: PlannedServer, clock: Clock): Promise<AnsweredServer> {
  const ending = new AbortController();
  let cancel = () => {};
  const tooLate = new Promise<never>((_, reject) => {
    cancel = clock.after(READ_LIMIT_MS, () => {
      reject(new UpstreamError('timeout', `it did not answer within ${READ_LIMIT_MS / 1000} s`));
      ending.abort();
    });
  });
  async function readNow(): Promise<ReadServer> {
    const { usage, upstream } = planned.server;
    const read = await usage.run(() => readServer(upstream, GATEWAY_CALLER, ending.signal));
    await renewServed(planned, read);
    return read;
  }

  try {
    const read = await Promise.race([readNow(), tooLate]);
    return { planned, read, found: await toLockedServer(read, clock) };
  } finally {
    cancel();
  }
}

async function renewServed({ server }: PlannedServer, read: ReadServer): Promise<void> {
  const { lists } = server;
  for (const kind of LOCKED_ITEM_KINDS) {
    const { list } = LOCKED_ITEMS[kind];
    const served = lists.peek(list, GATEWAY_CALLER);
    if (served === undefined || served.fingerprint === read[list].fingerprint) continue;
    lists.invalidate(LIST_KINDS[list].list, GATEWAY_CALLER);
    await lists.load(list, GATEWAY_CALLER, 'forCall');
  }
}

export function reviewServer({ planned, found }: AnsweredServer, approved: LockFile): ServerReview {
  const { name } = planned.config;
  const former = selectServer(name, approved.servers.get(name));
  const next = selectServer(name, found);
  return {
    server: name,
    digest: hashSha256(
      JSON.stringify([name, ...[approved.servers.get(name), found].map(listHashes)]),
    ),
    changes: findDifferences(former, next, () => false).map(({ kind, name: own, change }) => ({
      server: name,
      kind,
      name: own,
      change: CHANGES[change],
    })),
    found,
  };
}

/** All that decides, and less than half of what the file has: a server may have thousands of tools. */
const listHashes = (server: LockedServer | undefined): unknown =>
  server && [
    server.instructions && sortHashes(server.instructions),
    ...[server.prompts, server.skills, server.tools].map((items) =>
      [...items]
        .map(([name, all]) => [name, ...sortHashes(all)])
        .sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
    ),
  ];

const sortHashes = (all: readonly Fingerprint[]): readonly string[] =>
  all.map(({ sha256 }) => sha256).sort();

const CHANGES = { added: 'new', changed: 'changed', removed: 'gone' } as const;

/** Takes long for a server with many tools. */
export async function describeReview(
  answered: AnsweredServer,
  { changes }: ServerReview,
  { lock, work }: { readonly lock: Lock; readonly work: Turns },
): Promise<readonly ReviewedDifference[]> {
  const describe = createDescribe(answered, lock);
  const differences: ReviewedDifference[] = [];
  for (const one of changes) {
    const { kind, name, change } = one;
    differences.push(
      change === 'gone'
        ? { ...one, isFormerKnown: false, members: [] }
        : describe(kind, name, change),
    );
    if (work.isOver()) await work.next();
  }
  return differences;
}

const selectServer = (name: string, server: LockedServer | undefined): LockFile => ({
  servers: new Map(server && [[name, server]]),
});

type Describe = (
  kind: LockedKind,
  name: string | undefined,
  change: ShownDifference['change'],
) => ShownDifference;

const mapKinds = <Value>(
  toValue: (kind: LockedItemKind) => Value,
): Readonly<Record<LockedItemKind, Value>> => ({
  prompt: toValue('prompt'),
  skill: toValue('skill'),
  tool: toValue('tool'),
});

function createDescribe({ planned, read }: AnsweredServer, lock: Lock): Describe {
  const { config, server } = planned;
  const indexServed = (kind: LockedItemKind) =>
    indexItems(kind, server.lists.peek(LOCKED_ITEMS[kind].list, GATEWAY_CALLER)?.items ?? []);
  const indexNow = (kind: LockedItemKind) => indexItems(kind, read[LOCKED_ITEMS[kind].list].items);
  const now = mapKinds(indexNow);
  const served = mapKinds(indexServed);

  /** The item of that name as it was approved, where this process has seen it. */
  function findFormer(kind: LockedItemKind, name: string): RawItem | undefined {
    const { list } = LOCKED_ITEMS[kind];
    const seen = [served[kind].get(name), server.lists.peekApproved(list, name)];
    return seen.find((one) => one && lock.check(config.name, kind, one) === 'approved');
  }

  return function describe(kind, name, change) {
    const shared = { server: config.name, kind, name, change };
    const hidden =
      kind === 'instructions' || name === undefined
        ? { ...shared, item: read.instructions, former: undefined }
        : { ...shared, item: now[kind].get(name), former: findFormer(kind, name) };
    return describeHidden(hidden, lock, true);
  };
}
