// §18.3, §18.4: one server behind the gateway: its connection, and what it lists.

import { LIST_NAMES, type ListKind, type ListName } from '../mcp/protocol/list-kinds.ts';
import type { Era } from '../mcp/protocol/revisions.ts';
import type { ConnectionOwner } from '../mcp/upstream/connections.ts';
import {
  bindCaller,
  createUsage,
  GATEWAY_CALLER,
  isCallerOf,
  type LoginAccess,
  type Upstream,
  type UpstreamCaller,
  type UpstreamLogins,
  type Usage,
} from '../mcp/upstream/upstream.ts';
import type { UpstreamFacts } from '../mcp/upstream/upstream-config.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { FetchedList } from './fetch-list.ts';
import type { Patience } from './list-cache.ts';
import { createServerLists, type ListsOwner, type ServerLists } from './server-lists.ts';

export interface Server {
  readonly name: string;
  readonly upstream: Upstream;
  /** True if each user has lists of its own. */
  readonly isPersonal: boolean;
  readonly lists: ServerLists;
  /** It was tried, and could not be reached. */
  isDown(): boolean;
  /** For operators. */
  describe(): ServerState;
  /** §24: a connection was made, ended, or needs a login: those whose it is have other lists now. */
  noteConnectionChange(owner: ConnectionOwner): void;
  /** Until work that it runs is done the server is not let go: it may be more than one request. */
  readonly usage: Pick<Usage, 'run' | 'runAndFinish'>;
  /** Stops listening; what is under way ends, for `graceMs` at most. */
  close(graceMs: number): Promise<void>;
}

export interface ServerState {
  /** Undefined until it was tried. */
  readonly isUp: boolean | undefined;
  /** When that was found, in epoch milliseconds; undefined until it was tried. */
  readonly since: number | undefined;
  /** Why it is not up. */
  readonly reason: string | undefined;
  readonly era: Era | undefined;
  /** True if each user has lists of their own. */
  readonly isPersonal: boolean;
  /** Undefined where they are not known, or differ between users. */
  readonly tools: number | undefined;
}

/** The catalogues that serve a server. */
interface ServerOwner extends Omit<ListsOwner, 'onChange'> {
  /** A list that clients may have is not the same any more; for everybody unless it says for whom. */
  onListChange(server: Server, list: ListName, isAbout?: (caller: UpstreamCaller) => boolean): void;
}

export function createServer(
  runtime: Pick<Runtime, 'config' | 'clock' | 'log'>,
  upstream: Upstream,
  owner: ServerOwner,
): Server {
  const { clock } = runtime;
  const { config } = upstream;
  const isPersonal = upstream.facts.personalBy !== undefined;
  const closing = new AbortController();
  const usage = createUsage(clock);
  let reason: string | undefined;
  let since: number | undefined;
  const scope = { isPersonal, signal: closing.signal };
  const ownLists = createServerLists(runtime, upstream, scope, {
    ...owner,
    onChange: (list, audience) =>
      owner.onListChange(server, list, (caller) => audience === lists.getAudience(caller)),
  });
  const { logins } = upstream;
  const lists: ServerLists =
    logins === undefined ? ownLists : createListsByConnection(ownLists, logins, upstream.facts);
  const server: Server = {
    name: config.name,
    upstream,
    isPersonal,
    lists,
    isDown: () => upstream.isUp === false,
    usage,
    describe: () => ({
      isUp: upstream.isUp,
      since,
      reason,
      era: upstream.era,
      isPersonal,
      tools: lists.countTools(),
    }),
    noteConnectionChange(whose) {
      if (logins === undefined) return;
      const isAbout = (caller: UpstreamCaller) => isCallerOf(logins, caller, whose);
      lists.forget(isAbout);
      logins.noteChange(whose);
      for (const list of LIST_NAMES) owner.onListChange(server, list, isAbout);
    },
    async close(graceMs) {
      stopListening();
      closing.abort();
      await usage.end(graceMs);
      await upstream.close(graceMs);
    },
  };

  upstream.onStateChange((isUp, why) => {
    reason = isUp ? undefined : why;
    const isFirst = since === undefined;
    since = clock.now();
    if (isUp) lists.refresh();
    // That one user was the first to reach it changes nothing for those who have yet to log in at it.
    if (isUp && isFirst && logins !== undefined) return;
    for (const list of LIST_NAMES) owner.onListChange(server, list);
  });
  const stopListening = isPersonal
    ? () => {}
    : upstream.listen(GATEWAY_CALLER, {
        listChanged: (list) => lists.invalidate(list, GATEWAY_CALLER),
        listMayHaveChanged: (list) => lists.lookAgain(list, GATEWAY_CALLER),
        // Nobody subscribes for the gateway itself.
        resourceUpdated() {},
      });
  if (!isPersonal) lists.refresh();
  return server;
}

// §24.3, §24.4: the lists of a server where users log in themselves: of the caller's own connection, and before there is one
// those that anybody gets, or none.

/** `lists` are kept by connection. */
function createListsByConnection(
  lists: ServerLists,
  { getAccess, peekConnectionId, findOwner }: UpstreamLogins,
  { connection }: Pick<UpstreamFacts, 'connection'>,
): ServerLists {
  const isOpenToAll = connection?.auth.list === 'anonymous';

  /** Undefined for who sees nothing of the server yet. */
  function chooseCaller(caller: UpstreamCaller, access: LoginAccess): UpstreamCaller | undefined {
    if (access.kind === 'active') return bindCaller(caller, access.connectionId);
    // A connection that cannot be had for a while is served as it was.
    return access.kind === 'unavailable' ? peekCaller(caller) : withoutLogin();
  }

  function peekCaller(caller: UpstreamCaller): UpstreamCaller | undefined {
    const connectionId = peekConnectionId(caller);
    return connectionId === undefined ? withoutLogin() : bindCaller(caller, connectionId);
  }

  const withoutLogin = () => (isOpenToAll ? GATEWAY_CALLER : undefined);

  function load(kind: ListKind, caller: UpstreamCaller, access: LoginAccess, patience: Patience) {
    const chosen = chooseCaller(caller, access);
    if (chosen !== undefined) {
      const loading = lists.load(kind, chosen, patience);
      if (chosen !== GATEWAY_CALLER) return loading;
      // A server that lists to nobody without a login after all is shown as any other.
      return loading instanceof Promise
        ? loading.then((list) => list ?? NOT_CONNECTED[kind])
        : (loading ?? NOT_CONNECTED[kind]);
    }
    if (access.kind === 'impossible') return NEVER_CONNECTED[kind];
    return access.kind === 'unavailable' ? undefined : NOT_CONNECTED[kind];
  }

  const peekBy = <Answer>(
    caller: UpstreamCaller,
    peek: (chosen: UpstreamCaller) => Answer,
  ): Answer | undefined => {
    const chosen = peekCaller(caller);
    return chosen && peek(chosen);
  };

  return {
    ...lists,
    load(kind, caller, patience) {
      const access = getAccess(caller);
      return access instanceof Promise
        ? access.then((later) => load(kind, caller, later, patience))
        : load(kind, caller, access, patience);
    },
    async waitIfQuick(kind, caller) {
      const chosen = chooseCaller(caller, await getAccess(caller));
      if (chosen !== undefined) await lists.waitIfQuick(kind, chosen);
    },
    peek(kind, caller) {
      const chosen = peekCaller(caller);
      if (chosen !== undefined) return lists.peek(kind, chosen);
      return findOwner(caller) === undefined ? NEVER_CONNECTED[kind] : NOT_CONNECTED[kind];
    },
    hadResource: (uri, caller) =>
      peekBy(caller, (chosen) => lists.hadResource(uri, chosen)) === true,
    async describe(caller, patience) {
      const chosen = chooseCaller(caller, await getAccess(caller));
      return chosen && lists.describe(chosen, patience);
    },
    peekDescription: (caller) => peekBy(caller, lists.peekDescription),
    peekProblem: (caller) => peekBy(caller, lists.peekProblem),
    invalidate: (list, caller) => peekBy(caller, (chosen) => lists.invalidate(list, chosen)),
    getAudience: (caller) => lists.getAudience(peekCaller(caller) ?? GATEWAY_CALLER),
  };
}

/** Nothing of the server. Each kind has its own, as what is made of a list is found by it. */
function createNoLists(
  needsLogin: 'possible' | 'impossible',
): Readonly<Record<ListKind, FetchedList>> {
  const createNoList = (): FetchedList => ({
    items: [],
    ttlMs: 1_000,
    fingerprint: '',
    bytes: 0,
    cut: undefined,
    needsLogin,
  });
  return {
    tools: createNoList(),
    prompts: createNoList(),
    resources: createNoList(),
    templates: createNoList(),
    skills: createNoList(),
  };
}

const NOT_CONNECTED = createNoLists('possible');
const NEVER_CONNECTED = createNoLists('impossible');
