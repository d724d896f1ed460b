// §18.4: the lists of one server, shared or one set per user: fetched, checked and judged once, then served from memory while they
// are fetched anew.

import { findLockedKind, type Lock } from '../mcp/catalog/approved-items.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { ALL_KINDS, LIST_KINDS, type ListKind, type ListName } from '../mcp/protocol/list-kinds.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  type UpstreamDescription,
  UpstreamError,
} from '../mcp/upstream/upstream.ts';
import { createNameAudience } from '../mcp/upstream/wrap-upstream.ts';
import { type Clock, createTurns } from '../platform/clock.ts';
import { hashSha256 } from '../platform/ids.ts';
import { CAPACITY } from '../platform/memory/capacity.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { LastApproved } from './approved-content.ts';
import { findItemProblem } from './check-item.ts';
import { type FetchedList, fetchList } from './fetch-list.ts';
import { ListCache, type Patience, WaitingTime, waitAtMost } from './list-cache.ts';
import type { ListJudgement } from './list-guards.ts';

type ListsRuntime = Pick<Runtime, 'config' | 'clock' | 'log'>;

interface ListsScope {
  /** Each user has lists of their own. */
  readonly isPersonal: boolean;
  /** Users whose lists are kept; 1,000 by default. */
  readonly maxUsers?: number;
  /** Aborts all requests. */
  readonly signal: AbortSignal;
}

export interface ListsOwner {
  /** Undefined if nothing is locked. */
  getLock(): Lock | undefined;
  /** Asks the guards about items as the server wrote them (§26.2). Never rejects. Left out if no guard looks at lists. */
  judgeItems?(kind: ListKind, items: readonly RawItem[]): Promise<ListJudgement>;
  onChange(list: ListName, audience: string): void;
  /** Another list than before is kept, for any audience. */
  onOther?(kind: ListKind): void;
}

/** §18.4: a first `npx -y` downloads. */
const CALL_WAIT_MS = 15_000;
/** Clients give up after 10 s. */
const UNTOLD_WAIT_MS = 8_000;
/** For a list that is known to take longer; and for any list if another server may have the requested name. */
const QUICK_WAIT_MS = 1_000;
/** The number of users with lists of their own whose lists are requested again when the server is back. */
const MAX_REFRESHED = 10;
/** Approximate size of one hash of a former resource. */
const FORMER_BYTES = 100;
/** A guard that failed is asked again after this time. */
const UNSURE_TTL_MS = 5_000;

/** Everything that is kept for one audience: one user, or all. */
interface Holder {
  /** The last caller of this audience; lists are fetched with its token. */
  caller: UpstreamCaller;
  readonly lists: Readonly<Record<ListKind, ListCache>>;
  readonly firstWait: WaitingTime;
  readonly quickWait: WaitingTime;
  /** Lists that are known to be late for this audience, so that each is reported once. */
  readonly missing: Set<ListKind>;
  readonly formerResources: Set<string>;
  problem: string | undefined;
}

export class ServerLists {
  readonly lastApproved: LastApproved;
  private readonly runtime: ListsRuntime;
  private readonly upstream: Upstream;
  private readonly scope: ListsScope;
  private readonly owner: ListsOwner;
  private readonly nameAudience: (caller: UpstreamCaller) => string;
  private readonly waitMs: Readonly<Record<Patience, number>>;
  private readonly quickMs: number;
  /** Least recently used first. */
  private readonly holders = new Map<string, Holder>();
  /** That of a server which is the same for all callers. */
  private readonly shared: Holder | undefined;
  /** For each list the milliseconds that the last caller waited, so that others do not wait in vain for the same list. */
  private readonly slownesses = new Map<ListKind, number>();
  /** Lists for which a warning was logged. */
  private readonly reported = new Set<ListKind>();

  constructor(runtime: ListsRuntime, upstream: Upstream, scope: ListsScope, owner: ListsOwner) {
    const { listWaitMs } = runtime.config.upstreams;
    this.runtime = runtime;
    this.upstream = upstream;
    this.scope = scope;
    this.owner = owner;
    this.lastApproved = new LastApproved(upstream.config.name);
    this.nameAudience = createNameAudience(scope.isPersonal);
    this.waitMs = {
      told: listWaitMs,
      untold: Math.max(listWaitMs, UNTOLD_WAIT_MS),
      forCall: Math.max(listWaitMs, CALL_WAIT_MS),
    };
    this.quickMs = Math.min(QUICK_WAIT_MS, listWaitMs / 5);
    this.shared = scope.isPersonal ? undefined : this.openHolder(GATEWAY_CALLER);
  }

  /** The list, if it is at hand and no change of it was announced; waits for nothing. */
  findCurrent(kind: ListKind, caller: UpstreamCaller): FetchedList | undefined {
    return (this.shared ?? this.findHolder(caller)).lists[kind].findCurrent();
  }

  /** See `ListCache.load`. */
  async load(
    kind: ListKind,
    caller: UpstreamCaller,
    patience: Patience,
  ): Promise<FetchedList | undefined> {
    return this.findHolder(caller).lists[kind].load(patience);
  }

  /** Waits for the first list for a second at most, once: as long as a list takes that comes quickly. */
  async waitIfQuick(kind: ListKind, caller: UpstreamCaller): Promise<void> {
    const { lists, quickWait } = this.findHolder(caller);
    if (lists[kind].list !== undefined) return;
    await waitAtMost(
      this.runtime.clock,
      quickWait.left(QUICK_WAIT_MS),
      lists[kind].load('forCall'),
    );
  }

  /** The last list, however old; nothing is requested. */
  peek(kind: ListKind, caller: UpstreamCaller): FetchedList | undefined {
    return this.findHolder(caller).lists[kind].list;
  }

  /** True if the server used to list the resource and no longer does. */
  hadResource(uri: string, caller: UpstreamCaller): boolean {
    return this.findHolder(caller).formerResources.has(hashSha256(uri));
  }

  /** The server's description of itself; undefined if it did not come in time. */
  async describe(
    caller: UpstreamCaller,
    patience: Patience,
  ): Promise<UpstreamDescription | undefined> {
    const { upstream } = this;
    const { firstWait, caller: asking } = this.findHolder(caller);
    const known = upstream.peekDescription(asking);
    // A known description may be out of date: it is requested again, without waiting.
    const leftMs = known === undefined ? firstWait.left(this.waitMs[patience]) : 0;
    await waitAtMost(this.runtime.clock, leftMs, upstream.describe(asking));
    return upstream.peekDescription(asking);
  }

  /** The same, as far as it is known. */
  peekDescription(caller: UpstreamCaller): UpstreamDescription | undefined {
    return this.upstream.peekDescription(this.findHolder(caller).caller);
  }

  /** Why the last request for its lists failed. */
  peekProblem(caller: UpstreamCaller): string | undefined {
    return this.findHolder(caller).problem;
  }

  /** The server says that a list has changed: for this caller, or for all. */
  invalidate(list: ListName, caller: UpstreamCaller): void {
    for (const one of this.findLists(list, caller)) one.invalidate();
    this.owner.onChange(list, this.nameAudience(caller));
  }

  /** The list may have changed: it is fetched while the old one is still served, and clients are notified only if it differs. */
  lookAgain(list: ListName, caller: UpstreamCaller): void {
    for (const one of this.findLists(list, caller)) one.lookAgain();
  }

  /** Requests everything again that was used lately. */
  refresh(): void {
    for (const holder of [...this.holders.values()].slice(-MAX_REFRESHED)) {
      holder.firstWait.restart();
      holder.quickWait.restart();
      for (const kind of ALL_KINDS) holder.lists[kind].refresh();
    }
  }

  /** All kept lists of all audiences. */
  listKept(): readonly { readonly kind: ListKind; readonly items: readonly RawItem[] }[] {
    return [...this.holders.values()].flatMap(({ lists }) =>
      ALL_KINDS.flatMap((kind) => {
        const items = lists[kind].list?.items;
        return items === undefined ? [] : [{ kind, items }];
      }),
    );
  }

  /** The number of tools; undefined if they are unknown, or differ between users. */
  countTools(): number | undefined {
    return this.shared?.lists.tools.list?.items.length;
  }

  /** The audience of the lists: the same for all callers who share them. */
  getAudience(caller: UpstreamCaller): string {
    return this.nameAudience(caller);
  }

  /** Drops the lists of these callers, who lost access to them. */
  forget(isAbout: (caller: UpstreamCaller) => boolean): void {
    for (const [audience, { caller }] of this.holders)
      if (isAbout(caller)) this.holders.delete(audience);
  }

  private findLists(list: ListName, caller: UpstreamCaller): readonly ListCache[] {
    const { lists } = this.findHolder(caller);
    return ALL_KINDS.filter((kind) => LIST_KINDS[kind].list === list).map((kind) => lists[kind]);
  }

  private findHolder(caller: UpstreamCaller): Holder {
    if (this.shared !== undefined) return this.shared;
    const audience = this.nameAudience(caller);
    const known = this.holders.get(audience);
    if (known === undefined) {
      const opened = this.openHolder(caller);
      this.dropOldHolders(opened);
      return opened;
    }
    known.caller = caller;
    this.holders.delete(audience);
    this.holders.set(audience, known);
    return known;
  }

  private openHolder(caller: UpstreamCaller): Holder {
    const { owner, slownesses, waitMs, quickMs } = this;
    const { clock } = this.runtime;
    const audience = this.nameAudience(caller);
    const firstWait = new WaitingTime(clock);
    const quickWait = new WaitingTime(clock);
    const createList = (kind: ListKind): ListCache =>
      new ListCache(clock, {
        countLeftMs(patience) {
          const leftMs = firstWait.left(waitMs[patience]);
          const quickLeftMs = quickWait.left(quickMs);
          const isSlow = (slownesses.get(kind) ?? 0) >= waitMs[patience];
          return isSlow ? Math.min(leftMs, quickLeftMs) : leftMs;
        },
        onWaitedInVain: (ms) => this.noteWaitedInVain(holder, kind, ms),
        isStrict: () => owner.getLock() !== undefined,
        fetch: () => this.fetch(holder, kind),
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
    this.holders.set(audience, holder);
    return holder;
  }

  private dropOldHolders(kept: Holder): void {
    if (this.shared !== undefined) return;
    const { maxUsers = CAPACITY.userLists } = this.scope;
    let bytes = 0;
    for (const holder of this.holders.values()) bytes += countBytes(holder);
    for (const [audience, holder] of this.holders) {
      if (this.holders.size <= maxUsers && bytes <= CAPACITY.userListBytes) return;
      if (holder === kept) continue;
      this.holders.delete(audience);
      bytes -= countBytes(holder);
    }
  }

  private async fetch(holder: Holder, kind: ListKind): Promise<FetchedList> {
    const { upstream, owner } = this;
    const { clock, config, log } = this.runtime;
    const { name } = upstream.config;
    const startedAt = clock.monotonic();
    try {
      const fetched = await fetchList(upstream, kind, holder.caller, this.scope.signal);
      await checkItems(clock, kind, fetched.items, this.createLockCheck(kind));
      const list = addJudgement(fetched, await owner.judgeItems?.(kind, fetched.items));
      if (kind === 'resources') noteFormer(holder, list);
      const lock = owner.getLock();
      const locked = findLockedKind(kind);
      // Not for each user: operators do not see lists that only one user gets.
      if (lock !== undefined && locked !== undefined && !this.scope.isPersonal)
        this.lastApproved.note(lock, locked, holder.lists[kind].list?.items, list.items);
      this.dropOldHolders(holder);
      holder.problem = undefined;
      holder.missing.delete(kind);
      const tookMs = clock.monotonic() - startedAt;
      this.slownesses.set(kind, tookMs);
      if (tookMs < config.upstreams.listWaitMs) this.reported.delete(kind);
      return list;
    } catch (error) {
      if (error instanceof UpstreamError) holder.problem = error.message;
      log.debug(`Server ${name}: its ${kind} could not be listed.`, { cause: error });
      throw error;
    }
  }

  private createLockCheck(kind: ListKind): (item: RawItem) => void {
    const { name } = this.upstream.config;
    const lock = this.owner.getLock();
    const locked = findLockedKind(kind);
    return lock === undefined || locked === undefined
      ? () => {}
      : (item) => void lock.check(name, locked, item);
  }

  /** The server's transport logs why a server is down. */
  private noteWaitedInVain({ missing }: Holder, kind: ListKind, ms: number): void {
    // A list that has just been requested again is not late yet: the request before it may have failed at once.
    if (ms < this.quickMs || missing.has(kind)) return;
    missing.add(kind);
    this.slownesses.set(kind, Math.max(this.slownesses.get(kind) ?? 0, ms));
    if (this.reported.has(kind) || this.upstream.isUp === false) return;
    this.reported.add(kind);
    const { name } = this.upstream.config;
    this.runtime.log.warn(
      `Server ${name} has not listed its ${kind} for ${Math.round(ms / 1000)} s. Lists go out without them until it does.`,
      { server: name },
    );
  }
}

/** Checks each item before the list is served, in turns of the event loop; the findings are remembered with each item. */
async function checkItems(
  clock: Clock,
  kind: ListKind,
  items: readonly RawItem[],
  checkLock: (item: RawItem) => void,
): Promise<void> {
  const work = createTurns(clock);
  for (const item of items) {
    const isUsable = findItemProblem(kind, item) === undefined;
    if (work.isOver()) await work.next();
    if (isUsable) checkLock(item);
    if (work.isOver()) await work.next();
  }
}

/** A list with another verdict counts as another list: clients are notified. */
const addJudgement = (list: FetchedList, judgement: ListJudgement | undefined): FetchedList =>
  judgement === undefined || judgement.digest === ''
    ? list
    : {
        ...list,
        fingerprint: `${list.fingerprint}${judgement.digest}`,
        ttlMs: judgement.hasFailed ? Math.min(list.ttlMs, UNSURE_TTL_MS) : list.ttlMs,
      };

const countBytes = ({ lists, formerResources }: Holder): number =>
  ALL_KINDS.reduce(
    (sum, kind) => sum + (lists[kind].list?.bytes ?? 0),
    FORMER_BYTES * formerResources.size,
  );

function noteFormer({ lists, formerResources }: Holder, next: FetchedList): void {
  const before = lists.resources.list;
  if (before === undefined || before.fingerprint === next.fingerprint) return;
  const kept = new Set(next.items.map(({ uri }) => uri));
  for (const item of before.items) {
    if (kept.has(item.uri) || findItemProblem('resources', item) !== undefined) continue;
    formerResources.add(hashSha256(String(item.uri)));
    const [oldest = ''] = formerResources;
    if (formerResources.size > CAPACITY.formerResources) formerResources.delete(oldest);
  }
}
