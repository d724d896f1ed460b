// §18.4: the lists of one server, for everybody or for each user, and what it says of itself.

import {
  findLockedKind,
  LOCKED_ITEMS,
  type Lock,
  type LockedItemKind,
  type LockedList,
} from '../mcp/catalog/approved-items.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { ALL_KINDS, LIST_KINDS, type ListKind, type ListName } from '../mcp/protocol/list-kinds.ts';
import {
  createNameAudience,
  EVERYBODY,
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  type UpstreamDescription,
  UpstreamError,
} from '../mcp/upstream/upstream.ts';
import { hashSha256 } from '../platform/ids.ts';
import { CAPACITY } from '../platform/memory/capacity.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { findItemProblem } from './check-item.ts';
import { type FetchedList, fetchList, readItems } from './fetch-list.ts';
import {
  createListCache,
  createWaitingTime,
  type ListCache,
  type Patience,
  type WaitingTime,
  waitAtMost,
} from './list-cache.ts';
import { type ListJudgement, NOTHING_SAID } from './list-guards.ts';

export type ServerLists = ReturnType<typeof createServerLists>;

export interface ListsOwner {
  /** Undefined where nothing is locked. */
  getLock(): Lock | undefined;
  /** Asks the guards about items as the server wrote them (§26.2). Never rejects. Left out where nobody looks at lists. */
  judgeItems?(kind: ListKind, items: readonly RawItem[]): Promise<ListJudgement>;
  onChange(list: ListName, audience: string): void;
  /** Another list than before is kept, of whomever. Left out where nobody looks at what is kept. */
  onOther?(kind: ListKind): void;
}

/** §18.4: a first `npx -y` downloads. */
const CALL_WAIT_MS = 15_000;
/** Clients give up after 10 s. */
const UNTOLD_WAIT_MS = 8_000;
/** For a list of which is known that it takes longer; and for any, where another server may have what is looked for. */
const QUICK_WAIT_MS = 1_000;
/** The number of users with lists of their own whose lists are asked for anew when the server is back. */
const MAX_REFRESHED = 10;
/** About what one of them takes. */
const FORMER_BYTES = 100;

/** Everything that is kept for one user, or for all. */
interface Holder {
  /** The last that came; with its token lists are fetched. */
  caller: UpstreamCaller;
  readonly lists: Readonly<Record<ListKind, ListCache>>;
  readonly firstWait: WaitingTime;
  readonly quickWait: WaitingTime;
  /** Lists known not to have come to this holder: said once, as others may have got theirs since. */
  readonly missing: Set<ListKind>;
  readonly formerResources: Set<string>;
  problem: string | undefined;
}

export function createServerLists(
  { config, clock, log }: Pick<Runtime, 'config' | 'clock' | 'log'>,
  upstream: Upstream,
  {
    isPersonal,
    maxUsers = CAPACITY.userLists,
    signal,
  }: {
    /** Each user has lists of their own. */
    readonly isPersonal: boolean;
    /** Users whose lists are kept; 1,000 unless given. */
    readonly maxUsers?: number;
    /** Ends all that is asked for. */
    readonly signal: AbortSignal;
  },
  owner: ListsOwner,
) {
  const { listWaitMs } = config.upstreams;
  const waitMs: Readonly<Record<Patience, number>> = {
    told: listWaitMs,
    untold: Math.max(listWaitMs, UNTOLD_WAIT_MS),
    forCall: Math.max(listWaitMs, CALL_WAIT_MS),
  };
  const quickMs = Math.min(QUICK_WAIT_MS, listWaitMs / 5);
  /** Least recently used first. */
  const holders = new Map<string, Holder>();
  /** For each list the milliseconds that the last caller waited, so that others do not wait in vain for the same. */
  const slownesses = new Map<ListKind, number>();
  /** Lists for which the log has a warning already. */
  const reported = new Set<ListKind>();

  /**
   * §22.4: the lock has hashes only. Of what is no longer as it was approved, what this process saw approved is kept, so that
   * operators can compare. Keyed by own name or URI.
   */
  const lastApproved = new Map<LockedList, ReadonlyMap<string, RawItem>>();

  const getAudience = createNameAudience(isPersonal);

  function findLists(list: ListName, caller: UpstreamCaller) {
    const { lists } = findHolder(caller);
    return ALL_KINDS.filter((kind) => LIST_KINDS[kind].list === list).map((kind) => lists[kind]);
  }

  function findHolder(caller: UpstreamCaller): Holder {
    const audience = getAudience(caller);
    const asking = isPersonal ? caller : GATEWAY_CALLER;
    const known = holders.get(audience);
    const holder = known ?? createHolder(audience, asking);
    holder.caller = asking;
    // A server that is the same for all has one holder: there is no order to keep.
    if (isPersonal || known === undefined) {
      holders.delete(audience);
      holders.set(audience, holder);
    }
    if (known === undefined) dropOldHolders(holder);
    return holder;
  }

  function createHolder(audience: string, caller: UpstreamCaller): Holder {
    const firstWait = createWaitingTime(clock);
    const quickWait = createWaitingTime(clock);
    const createList = (kind: ListKind): ListCache =>
      createListCache(clock, {
        countLeftMs(patience) {
          const leftMs = firstWait.left(waitMs[patience]);
          const quickLeftMs = quickWait.left(quickMs);
          const isSlow = (slownesses.get(kind) ?? 0) >= waitMs[patience];
          return isSlow ? Math.min(leftMs, quickLeftMs) : leftMs;
        },
        onWaitedInVain: (ms) => noteWaitedInVain(holder, kind, ms),
        isStrict: () => owner.getLock() !== undefined,
        fetch: () => fetchFor(holder, kind),
        onChange: () => owner.onChange(LIST_KINDS[kind].list, audience),
        onOther: () => owner.onOther?.(kind),
      });
    const holder: Holder = {
      caller,
      firstWait,
      quickWait,
      missing: new Set(),
      formerResources: new Set(),
      problem: undefined,
      lists: {
        tools: createList('tools'),
        prompts: createList('prompts'),
        resources: createList('resources'),
        templates: createList('templates'),
        skills: createList('skills'),
      },
    };
    return holder;
  }

  async function fetchFor(holder: Holder, kind: ListKind): Promise<FetchedList> {
    const startedAt = clock.monotonic();
    try {
      const fetched = await fetchList(upstream, kind, holder.caller, signal);
      await readItems(clock, upstream.config.name, kind, fetched.items, owner.getLock());
      const list = addJudgement(fetched, await owner.judgeItems?.(kind, fetched.items));
      if (kind === 'resources') noteFormer(holder, list);
      const locked = findLockedKind(kind);
      if (locked !== undefined) noteApproved(holder, locked, list);
      dropOldHolders(holder);
      holder.problem = undefined;
      holder.missing.delete(kind);
      const tookMs = clock.monotonic() - startedAt;
      slownesses.set(kind, tookMs);
      if (tookMs < listWaitMs) reported.delete(kind);
      return list;
    } catch (error) {
      if (error instanceof UpstreamError) holder.problem = error.message;
      log.debug(`Server ${upstream.config.name}: its ${kind} could not be listed.`, {
        cause: error,
      });
      throw error;
    }
  }

  /**
   * Only of items of `next` that are not approved, so that there are never more than the server lists. Not for each user: operators
   * do not see what one user alone sees.
   */
  function noteApproved({ lists }: Holder, kind: LockedItemKind, next: FetchedList): void {
    const lock = owner.getLock();
    if (isPersonal || lock === undefined) return;
    const { list, key } = LOCKED_ITEMS[kind];
    const isApproved = (item: RawItem) =>
      lock.check(upstream.config.name, kind, item) === 'approved';
    const hidden = next.items.filter((item) => !isApproved(item));
    const known = lastApproved.get(list);
    const seen = hidden.length === 0 ? [] : (lists[list].peek()?.items ?? []).filter(isApproved);
    const before = new Map(seen.map((item) => [String(item[key]), item]));
    lastApproved.set(
      list,
      new Map(
        hidden.flatMap((one) => {
          const name = String(one[key]);
          const item = before.get(name) ?? known?.get(name);
          return item === undefined ? [] : [[name, item] as const];
        }),
      ),
    );
  }

  function dropOldHolders(kept: Holder): void {
    if (!isPersonal) return;
    let bytes = 0;
    for (const holder of holders.values()) bytes += countBytes(holder);
    for (const [audience, holder] of holders) {
      if (holders.size <= maxUsers && bytes <= CAPACITY.userListBytes) return;
      if (holder === kept) continue;
      holders.delete(audience);
      bytes -= countBytes(holder);
    }
  }

  /** Whoever waited does not know for whom. Why a server is down is said where that is noticed. */
  function noteWaitedInVain({ missing }: Holder, kind: ListKind, ms: number): void {
    // A list that has just been asked for again is not late yet: the one before it may have failed at once.
    if (ms < quickMs || missing.has(kind)) return;
    missing.add(kind);
    slownesses.set(kind, Math.max(slownesses.get(kind) ?? 0, ms));
    if (reported.has(kind) || upstream.isUp === false) return;
    reported.add(kind);
    const { name } = upstream.config;
    log.warn(
      `Server ${name} has not listed its ${kind} for ${Math.round(ms / 1000)} s. Lists go out without them until it does.`,
      { server: name },
    );
  }

  return {
    /** See `ListCache.load`. */
    load: (kind: ListKind, caller: UpstreamCaller, patience: Patience) =>
      findHolder(caller).lists[kind].load(patience),
    /** Waits for the first list as long as one takes that comes quickly: a second, once. */
    async waitIfQuick(kind: ListKind, caller: UpstreamCaller): Promise<void> {
      const { lists, quickWait } = findHolder(caller);
      if (lists[kind].peek() !== undefined) return;
      await waitAtMost(
        clock,
        quickWait.left(QUICK_WAIT_MS),
        Promise.resolve(lists[kind].load('forCall')),
      );
    },
    /** The list as it last was, however old; nothing is asked for. */
    peek: (kind: ListKind, caller: UpstreamCaller) => findHolder(caller).lists[kind].peek(),
    /** True if it listed the resource, and does so no longer. */
    hadResource: (uri: string, caller: UpstreamCaller) =>
      findHolder(caller).formerResources.has(hashSha256(uri)),
    /** The server's description of itself; undefined if it did not come in time. */
    async describe(
      caller: UpstreamCaller,
      patience: Patience,
    ): Promise<UpstreamDescription | undefined> {
      const { firstWait, caller: asking } = findHolder(caller);
      const known = upstream.peekDescription(asking);
      // A known description may be out of date; then it is asked for, and nobody waits.
      const leftMs = known === undefined ? firstWait.left(waitMs[patience]) : 0;
      await waitAtMost(clock, leftMs, upstream.describe(asking));
      return upstream.peekDescription(asking);
    },
    /** The same, as far as it is known. */
    peekDescription: (caller: UpstreamCaller) =>
      upstream.peekDescription(findHolder(caller).caller),
    /** The item of that name, or URI, as it was approved when last listed so; undefined where it still is, or was never seen so. */
    peekApproved: (kind: LockedList, ownName: string) => lastApproved.get(kind)?.get(ownName),
    /** Why its lists could not be had last. */
    peekProblem: (caller: UpstreamCaller) => findHolder(caller).problem,
    /** The server says that a list has changed: for this caller, or for all. */
    invalidate(list: ListName, caller: UpstreamCaller): void {
      for (const one of findLists(list, caller)) one.invalidate();
      owner.onChange(list, getAudience(caller));
    },
    /** It may have changed: it is fetched behind the one that is served, and clients are told only if it differs. */
    lookAgain(list: ListName, caller: UpstreamCaller): void {
      for (const one of findLists(list, caller)) one.lookAgain();
    },
    /** All that was used lately is asked for anew. */
    refresh() {
      if (!isPersonal) findHolder(GATEWAY_CALLER);
      for (const { lists, firstWait, quickWait } of [...holders.values()].slice(-MAX_REFRESHED)) {
        firstWait.restart();
        quickWait.restart();
        for (const kind of ALL_KINDS) lists[kind].refresh();
      }
    },
    /** All that is kept, of whomever. */
    listKept: () =>
      [...holders.values()].flatMap(({ lists }) =>
        ALL_KINDS.flatMap((kind) => {
          const items = lists[kind].peek()?.items;
          return items === undefined ? [] : [{ kind, items }];
        }),
      ),
    /** The number of tools; undefined where they are not known, or differ between users. */
    countTools: () =>
      isPersonal ? undefined : holders.get(EVERYBODY)?.lists.tools.peek()?.items.length,
    /** The audience of the lists: the same for all who share them. */
    getAudience,
    /** Forgets what is kept for these callers: it is theirs no longer. */
    forget(isAbout: (caller: UpstreamCaller) => boolean): void {
      for (const [audience, { caller }] of holders) if (isAbout(caller)) holders.delete(audience);
    },
  };
}

/** A guard that failed is asked again as soon. */
const UNSURE_TTL_MS = 5_000;

/** With another verdict it is another list: clients are told. */
const addJudgement = (
  list: FetchedList,
  { digest, hasFailed }: ListJudgement = NOTHING_SAID,
): FetchedList =>
  digest === ''
    ? list
    : {
        ...list,
        fingerprint: `${list.fingerprint}${digest}`,
        ttlMs: hasFailed ? Math.min(list.ttlMs, UNSURE_TTL_MS) : list.ttlMs,
      };

const countBytes = ({ lists, formerResources }: Holder): number =>
  ALL_KINDS.reduce(
    (sum, kind) => sum + (lists[kind].peek()?.bytes ?? 0),
    FORMER_BYTES * formerResources.size,
  );

function noteFormer({ lists, formerResources }: Holder, next: FetchedList): void {
  const before = lists.resources.peek();
  if (before === undefined || before.fingerprint === next.fingerprint) return;
  const kept = new Set(next.items.map(({ uri }) => uri));
  for (const item of before.items) {
    if (kept.has(item.uri) || findItemProblem('resources', item) !== undefined) continue;
    formerResources.add(hashSha256(String(item.uri)));
    const [oldest = ''] = formerResources;
    if (formerResources.size > CAPACITY.formerResources) formerResources.delete(oldest);
  }
}
