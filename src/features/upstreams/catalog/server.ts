// §18.3, §18.4: one server: its connection, its lists for everybody or for each user, and what it says of itself.
import { hash } from 'node:crypto';
import type { Clock } from '../../../core/clock.ts';
import type { UpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';
import type { Log } from '../../../core/log.ts';
import {
  GATEWAY_CALLER,
  type ListName,
  type Upstream,
  type UpstreamCaller,
  type UpstreamDescription,
} from '../upstream.ts';
import { type FetchedList, fetchList } from './fetch-list.ts';
import { createListCache, type ListCache } from './list-cache.ts';
import { ALL_KINDS, LIST_KINDS, type ListKind } from './list-kinds.ts';
import { createWaitingTime, type WaitingTime, waitAtMost } from './wait-at-most.ts';

export interface Server {
  readonly config: UpstreamConfig;
  readonly upstream: Upstream;
  /** Whether each user has lists of its own. */
  readonly isPersonal: boolean;
  /** It was tried, and could not be reached. */
  isDown(): boolean;
  /** See `ListCache.load`. */
  load(
    kind: ListKind,
    caller: UpstreamCaller,
  ): FetchedList | undefined | Promise<FetchedList | undefined>;
  /** What it says of itself; undefined where it did not in time. */
  describe(caller: UpstreamCaller): Promise<UpstreamDescription | undefined>;
  /** The same, as far as it is known. */
  peekDescription(caller: UpstreamCaller): UpstreamDescription | undefined;
  /** The server says that a list has changed: for this caller, or for all. */
  invalidate(list: ListName, caller: UpstreamCaller): void;
  /** Whose lists they are: the same for all who share them. */
  getAudience(caller: UpstreamCaller): string;
  /** Stops listening; calls under way end, for `graceMs` at most. */
  close(graceMs: number): Promise<void>;
}

export interface ServerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly maxUsers: number;
  isLocked(): boolean;
  /** A list that clients may have is not the same any more; for everybody without an audience. */
  onListChange(server: Server, list: ListName, audience?: string): void;
}

/** §18.4: a first `npx -y` downloads. */
const FIRST_WAIT_MS = 15_000;
/** Of the lists of all users of a server, as JSON text. */
const MAX_USERS_BYTES = 67_108_864;

/** What is kept for one user, or for all. */
interface Holder {
  /** The last that came; with its token lists are fetched. */
  caller: UpstreamCaller;
  readonly lists: Readonly<Record<ListKind, ListCache>>;
  readonly firstWait: WaitingTime;
  description: UpstreamDescription | undefined;
}

export function createServer(upstream: Upstream, deps: ServerDeps): Server {
  const { config } = upstream;
  const { clock, log, maxUsers, isLocked } = deps;
  const isPersonal = dependsOnUser(config);
  const closing = new AbortController();
  /** Least recently used first. */
  const holders = new Map<string, Holder>();

  const getAudience = (caller: UpstreamCaller) => (isPersonal ? toUserKey(caller) : '');

  function findHolder(caller: UpstreamCaller): Holder {
    const key = getAudience(caller);
    const asking = isPersonal ? caller : GATEWAY_CALLER;
    const holder = holders.get(key) ?? createHolder(key, asking);
    holder.caller = asking;
    if (isPersonal) holders.delete(key);
    holders.set(key, holder);
    return holder;
  }

  function createHolder(audience: string, caller: UpstreamCaller): Holder {
    const firstWait = createWaitingTime(clock, FIRST_WAIT_MS);
    const createList = (kind: ListKind): ListCache =>
      createListCache({
        clock,
        firstWait,
        isStrict: isLocked,
        fetch: () => fetchFor(holder, kind),
        onChange: () => deps.onListChange(server, LIST_KINDS[kind].list, audience),
      });
    const holder: Holder = {
      caller,
      firstWait,
      description: undefined,
      lists: {
        tools: createList('tools'),
        prompts: createList('prompts'),
        resources: createList('resources'),
        templates: createList('templates'),
      },
    };
    return holder;
  }

  async function fetchFor(holder: Holder, kind: ListKind): Promise<FetchedList> {
    try {
      const list = await fetchList(upstream, kind, holder.caller, closing.signal);
      dropOldHolders(holder);
      return list;
    } catch (error) {
      log.debug(`Server ${config.name}: its ${kind} could not be listed.`, { cause: error });
      throw error;
    }
  }

  function dropOldHolders(kept: Holder): void {
    if (!isPersonal) return;
    let bytes = 0;
    for (const holder of holders.values()) bytes += countBytes(holder);
    for (const [key, holder] of holders) {
      if (holders.size <= maxUsers && bytes <= MAX_USERS_BYTES) return;
      if (holder === kept) continue;
      holders.delete(key);
      bytes -= countBytes(holder);
    }
  }

  async function readDescription(holder: Holder): Promise<void> {
    holder.description = await upstream.describe(holder.caller);
  }

  const server: Server = {
    config,
    upstream,
    isPersonal,
    isDown: () => upstream.isUp === false,
    load: (kind, caller) => findHolder(caller).lists[kind].load(),
    async describe(caller) {
      const holder = findHolder(caller);
      await waitAtMost(clock, holder.firstWait.left(), readDescription(holder));
      return holder.description;
    },
    peekDescription: (caller) => findHolder(caller).description,
    invalidate(list, caller) {
      const { lists } = findHolder(caller);
      for (const kind of ALL_KINDS) if (LIST_KINDS[kind].list === list) lists[kind].invalidate();
      deps.onListChange(server, list, getAudience(caller));
    },
    getAudience,
    async close(graceMs) {
      stopListening();
      closing.abort();
      await upstream.close(graceMs);
    },
  };

  /** Of those that were used lately: for all users at once it would be too much to ask for. */
  function refreshLists(): void {
    for (const { lists, firstWait } of [...holders.values()].slice(-MAX_REFRESHED)) {
      firstWait.restart();
      for (const kind of ALL_KINDS) lists[kind].refresh();
    }
  }

  upstream.onStateChange((isUp) => {
    if (isUp) refreshLists();
    for (const list of LISTS) deps.onListChange(server, list);
  });
  const stopListening = isPersonal
    ? () => {}
    : upstream.listen(GATEWAY_CALLER, {
        listChanged: (list) => server.invalidate(list, GATEWAY_CALLER),
        // Nobody subscribes for the gateway itself.
        resourceUpdated() {},
      });
  if (!isPersonal) for (const kind of ALL_KINDS) findHolder(GATEWAY_CALLER).lists[kind].refresh();
  return server;
}

const MAX_REFRESHED = 10;
const LISTS: readonly ListName[] = ['tools', 'prompts', 'resources'];

/** A process of one's own is listed by oneself, too: for the gateway alone there is none. */
const dependsOnUser = (config: UpstreamConfig): boolean =>
  config.kind === 'http' ? config.auth.type !== 'none' : config.isolation !== 'shared';

/** Users choose their names; as a hash all keys are of one length. */
const toUserKey = ({ user, clientId }: UpstreamCaller): string =>
  hash('sha256', JSON.stringify([user?.sub, clientId]), 'base64url');

const countBytes = ({ lists }: Holder): number =>
  ALL_KINDS.reduce((sum, kind) => sum + (lists[kind].peek()?.bytes ?? 0), 0);
