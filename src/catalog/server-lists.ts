// §18.4: the lists of one server, shared or one set per user: fetched, checked and judged once, then served from memory while they
// are refetched. If users log in to the server themselves (§24.3, §24.4), callers get the lists of their own connection; without a
// connection, the lists that the server shows to anyone, or none.

import { findLockedKind, type Lock } from '../mcp/catalog/approved-items.ts';
import {
  ALL_KINDS,
  forEachKind,
  LIST_KINDS,
  type ListKind,
  type ListName,
} from '../mcp/protocol/list-kinds.ts';
import {
  bindCaller,
  GATEWAY_CALLER,
  type LoginAccess,
  type Upstream,
  type UpstreamCaller,
  type UpstreamDescription,
  UpstreamError,
} from '../mcp/upstream/upstream.ts';
import { createNameAudience } from '../mcp/upstream/wrap-upstream.ts';
import { hashSha256 } from '../platform/ids.ts';
import { CAPACITY } from '../platform/memory/capacity.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { LastApproved } from './approved-content.ts';
import { checkItems, findItemProblem } from './check-item.ts';
import { type FetchedList, fetchList, NO_LIST } from './fetch-list.ts';
import { ListCache, type Patience, WaitingTime, waitAtMost } from './list-cache.ts';
import { addJudgement, type ListJudgement } from './list-guards.ts';

type ListsRuntime = Pick<Runtime, 'config' | 'clock' | 'log'>;

interface ListsScope {
  /** True if each user has their own lists. */
  readonly isPersonal: boolean;
  /** Maximum number of users whose lists are kept; 1,000 by default. */
  readonly maxUsers?: number;
  /** Aborts all requests for lists. */
  readonly signal: AbortSignal;
}

export interface ListsOwner {
  /** Undefined without a lock. */
  getLock(): Lock | undefined;
  /** Lets the guards check items as the server wrote them (§26.2). Never rejects. Absent if no guard checks lists. */
  judgeList?(list: FetchedList): Promise<ListJudgement>;
  onChange(list: ListName, audience: string): void;
  /** Called when a different list is kept, for any audience. */
  onOther?(kind: ListKind): void;
}

/** §18.4: the first `npx -y` run downloads packages. */
const CALL_WAIT_MS = 15_000;
/** Clients give up after 10 s. */
const UNTOLD_WAIT_MS = 8_000;
/** For a list that is known to take longer, and for any list while another server may have the requested name. */
const QUICK_WAIT_MS = 1_000;
/** Maximum number of users whose own lists are requested again when the server is back. */
const MAX_REFRESHED = 10;
/** Approximate size of the hash of a former resource. */
const FORMER_BYTES = 100;

/** Everything that is kept for one audience, which is one user or all users. */
interface Holder {
  /** The last caller of this audience; lists are fetched with its token. */
  caller: UpstreamCaller;
  readonly lists: Readonly<Record<ListKind, ListCache>>;
  readonly firstWait: WaitingTime;
  readonly quickWait: WaitingTime;
  /** Lists that are known to be late for this audience, kept so that each is reported once. */
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
  /** The holder for all callers of a server that is the same for everyone. */
  private readonly shared: Holder | undefined;
  /** The caller whose lists a user sees before logging in to the server; undefined if there are none. */
  private readonly withoutLogin: UpstreamCaller | undefined;
  /** For each list, how long the last caller waited in milliseconds, so that others do not wait needlessly. */
  private readonly slownesses = new Map<ListKind, number>();
  /** Lists that a warning has been logged for. */
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
    const isOpenToAll = upstream.facts.connection?.auth.list === 'anonymous';
    this.withoutLogin = isOpenToAll ? GATEWAY_CALLER : undefined;
  }

  /** The list, if it is cached and no change to it has been announced. Does not wait. */
  findCurrent(kind: ListKind, caller: UpstreamCaller): FetchedList | undefined {
    return (this.shared ?? this.findHolderAtHand(caller))?.lists[kind].findCurrent();
  }

  /** Loads the list like `ListCache.load`. */
  async load(
    kind: ListKind,
    caller: UpstreamCaller,
    patience: Patience,
  ): Promise<FetchedList | undefined> {
    const { logins } = this.upstream;
    const access = logins && (await logins.getAccess(caller));
    const chosen = this.choose(caller, access);
    if (chosen !== undefined) {
      const list = await this.findHolder(chosen).lists[kind].load(patience);
      // A server that turns out to list nothing without a login is shown like any other.
      return access === undefined || chosen !== GATEWAY_CALLER
        ? list
        : (list ?? NOT_CONNECTED[kind]);
    }
    if (access?.kind === 'impossible') return NEVER_CONNECTED[kind];
    return access?.kind === 'unavailable' ? undefined : NOT_CONNECTED[kind];
  }

  /** Waits for the first list once, and for at most a second: long enough for a list that arrives quickly. */
  async waitIfQuick(kind: ListKind, caller: UpstreamCaller): Promise<void> {
    const { logins } = this.upstream;
    const chosen = this.choose(caller, logins && (await logins.getAccess(caller)));
    if (chosen === undefined) return;
    const { lists, quickWait } = this.findHolder(chosen);
    if (lists[kind].list !== undefined) return;
    await waitAtMost(
      this.runtime.clock,
      quickWait.left(QUICK_WAIT_MS),
      lists[kind].load('forCall'),
    );
  }

  /** The list as it was last fetched, however old; nothing is requested. */
  peek(kind: ListKind, caller: UpstreamCaller): FetchedList | undefined {
    const holder = this.peekHolder(caller);
    if (holder !== undefined) return holder.lists[kind].list;
    const isPossible = this.upstream.logins?.findOwner(caller) !== undefined;
    return (isPossible ? NOT_CONNECTED : NEVER_CONNECTED)[kind];
  }

  /** True if the server used to list the resource and no longer does. */
  hadResource(uri: string, caller: UpstreamCaller): boolean {
    return this.peekHolder(caller)?.formerResources.has(hashSha256(uri)) === true;
  }

  /** The server's description of itself; undefined if it did not arrive in time. */
  async describe(
    caller: UpstreamCaller,
    patience: Patience,
  ): Promise<UpstreamDescription | undefined> {
    const { upstream } = this;
    const { logins } = upstream;
    const chosen = this.choose(caller, logins && (await logins.getAccess(caller)));
    if (chosen === undefined) return undefined;
    const { firstWait, caller: asking } = this.findHolder(chosen);
    const known = upstream.peekDescription(asking);
    // A known description may be out of date: it is requested again, but not waited for.
    const leftMs = known === undefined ? firstWait.left(this.waitMs[patience]) : 0;
    await waitAtMost(this.runtime.clock, leftMs, upstream.describe(asking));
    return upstream.peekDescription(asking);
  }

  /** Like `describe`, but only as far as the description is known. */
  peekDescription(caller: UpstreamCaller): UpstreamDescription | undefined {
    const holder = this.peekHolder(caller);
    return holder && this.upstream.peekDescription(holder.caller);
  }

  /** Why the last request for its lists failed. */
  peekProblem(caller: UpstreamCaller): string | undefined {
    return this.peekHolder(caller)?.problem;
  }

  /** Called when the server announces that a list has changed, for this caller or for all. */
  invalidate(list: ListName, caller: UpstreamCaller): void {
    const holder = this.peekHolder(caller);
    if (holder === undefined) return;
    for (const one of selectLists(holder, list)) one.invalidate();
    this.owner.onChange(list, this.nameAudience(holder.caller));
  }

  /**
   * Called when the list may have changed. It is fetched while the old one is still served, and clients are notified only if it
   * differs.
   */
  lookAgain(list: ListName, caller: UpstreamCaller): void {
    const holder = this.peekHolder(caller);
    if (holder !== undefined) for (const one of selectLists(holder, list)) one.lookAgain();
  }

  /** Requests everything again that was used recently. */
  refresh(): void {
    for (const holder of [...this.holders.values()].slice(-MAX_REFRESHED)) {
      holder.firstWait.restart();
      holder.quickWait.restart();
      for (const kind of ALL_KINDS) holder.lists[kind].refresh();
    }
  }

  /** All kept lists of all audiences. */
  listKept(): readonly FetchedList[] {
    return [...this.holders.values()].flatMap(({ lists }) =>
      ALL_KINDS.flatMap((kind) => lists[kind].list ?? []),
    );
  }

  /** The number of tools; undefined if they are unknown, or differ between users. */
  countTools(): number | undefined {
    return this.shared?.lists.tools.list?.items.length;
  }

  /** The audience of the lists; callers who share lists have the same audience. */
  getAudience(caller: UpstreamCaller): string {
    return this.nameAudience(this.peekCaller(caller) ?? GATEWAY_CALLER);
  }

  /** Drops the lists of these callers, who have lost access to them. */
  forget(isAbout: (caller: UpstreamCaller) => boolean): void {
    for (const [audience, { caller }] of this.holders)
      if (isAbout(caller)) this.holders.delete(audience);
  }

  // Chooses the lists that a caller gets.

  /**
   * The caller whose lists this caller gets; undefined if this caller cannot see the server's items yet. `access` is undefined if
   * users do not log in to the server themselves.
   */
  private choose(caller: UpstreamCaller, access: LoginAccess | undefined) {
    if (access === undefined) return caller;
    if (access.kind === 'active') return bindCaller(caller, access.connectionId);
    // While a connection is temporarily unavailable, the lists that it had are served.
    return access.kind === 'unavailable' ? this.peekCaller(caller) : this.withoutLogin;
  }

  /** Like `choose`, but only as far as the access is known. */
  private peekCaller(caller: UpstreamCaller) {
    const { logins } = this.upstream;
    if (logins === undefined) return caller;
    const connectionId = logins.peekConnectionId(caller);
    return connectionId === undefined ? this.withoutLogin : bindCaller(caller, connectionId);
  }

  private peekHolder(caller: UpstreamCaller) {
    const chosen = this.peekCaller(caller);
    return chosen && this.findHolder(chosen);
  }

  /** Also undefined if the access is not cached, which is rare: `load` then waits for it. */
  private findHolderAtHand(caller: UpstreamCaller) {
    const access = this.upstream.logins?.getAccess(caller);
    const chosen = access instanceof Promise ? undefined : this.choose(caller, access);
    return chosen && this.findHolder(chosen);
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
      lists: forEachKind(createList),
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
      const list = addJudgement(fetched, await owner.judgeList?.(fetched));
      if (kind === 'resources') noteFormer(holder, list);
      const lock = owner.getLock();
      const locked = findLockedKind(kind);
      // Not done per user, since operators do not see lists that only one user gets.
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
      if (error instanceof UpstreamError) holder.problem = error.reason;
      log.debug(`Server ${name}: its ${kind} could not be listed.`, { cause: error });
      throw error;
    }
  }

  private createLockCheck(kind: ListKind) {
    const { name } = this.upstream.config;
    const lock = this.owner.getLock();
    const locked = findLockedKind(kind);
    return lock === undefined || locked === undefined
      ? () => {}
      : (item: Parameters<Lock['check']>[2]) => void lock.check(name, locked, item);
  }

  /** Logs only that the list is late: the server's transport logs why a server is down. */
  private noteWaitedInVain({ missing }: Holder, kind: ListKind, ms: number): void {
    // A list that has just been requested again is not late yet, since the previous request may have failed at once.
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

const selectLists = ({ lists }: Holder, list: ListName) =>
  ALL_KINDS.filter((kind) => LIST_KINDS[kind].list === list).map((kind) => lists[kind]);

/** Empty lists. Each kind has its own object, since results derived from a list are looked up by that object. */
const createNoLists = (needsLogin: 'possible' | 'impossible') =>
  forEachKind((kind): FetchedList => ({ ...NO_LIST, kind, ttlMs: 1_000, needsLogin }));

const NOT_CONNECTED = createNoLists('possible');
const NEVER_CONNECTED = createNoLists('impossible');
