// §24.4: each request to a server where users log in themselves goes by one connection, from its first byte to its last.

import type { FetchedList } from '../../catalog/fetch-list.ts';
import type { Patience } from '../../catalog/list-cache.ts';
import type { ServerLists } from '../../catalog/server-lists.ts';
import type { ListKind } from '../../mcp/protocol/list-kinds.ts';
import {
  GATEWAY_CALLER,
  type LoginAccess,
  type Upstream,
  type UpstreamCaller,
  type UpstreamListener,
  type UpstreamLogins,
} from '../../mcp/upstream/upstream.ts';
import type { UpstreamFacts } from '../../mcp/upstream/upstream-config.ts';
import { wrapUpstream } from '../../mcp/upstream/wrap-upstream.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { nameConnectionOwner } from '../records/place.ts';
import { isCallerOf, type Logins, toLoginError } from './logins.ts';

/** Nothing is sent if the connection is missing or cannot be used. */
export function bindConnections(upstream: Upstream, logins: Logins): Upstream {
  /** Keyed by owner. */
  const ids = createBoundedMap<string, string>(MAX_REMEMBERED);
  const listenings = new Set<Listening>();

  /** The last word about a connection is remembered: what is kept of the server is found by it. */
  function getAccess(caller: UpstreamCaller): LoginAccess | Promise<LoginAccess> {
    const access = logins.getAccess(caller);
    return access instanceof Promise
      ? access.then((later) => remember(caller, later))
      : remember(caller, access);
  }

  function remember(caller: UpstreamCaller, access: LoginAccess): LoginAccess {
    const owner = logins.findOwner(caller);
    if (owner === undefined || access.kind === 'unavailable') return access;
    const name = nameConnectionOwner(owner);
    if (access.kind === 'active') ids.set(name, access.connectionId);
    else ids.delete(name);
    return access;
  }

  function peekConnectionId(caller: UpstreamCaller): string | undefined {
    const owner = logins.findOwner(caller);
    return owner && ids.get(nameConnectionOwner(owner));
  }

  /** @throws CredentialError */
  function bind(caller: UpstreamCaller, access: LoginAccess): UpstreamCaller {
    if (access.kind !== 'active') throw toLoginError(access);
    return bindCaller(caller, access.connectionId);
  }

  /** Nothing is waited for if the connection is at hand. */
  function withBound<Result>(
    caller: UpstreamCaller,
    run: (bound: UpstreamCaller) => Promise<Result>,
  ): Promise<Result> {
    // The gateway itself asks only what anybody may ask; who is bound is by the list that it asks for.
    if (caller === GATEWAY_CALLER || caller.connectionId !== undefined) return run(caller);
    const access = getAccess(caller);
    if (access instanceof Promise) return access.then((later) => run(bind(caller, later)));
    return access.kind === 'active'
      ? run(bindCaller(caller, access.connectionId))
      : Promise.reject(toLoginError(access));
  }

  function listen(
    caller: UpstreamCaller,
    listener: UpstreamListener,
    uris: readonly string[] | undefined,
  ): () => void {
    const listening: Listening = { caller, restart };
    let isOpen = true;
    let stop = () => {};

    async function restart(): Promise<void> {
      stop();
      stop = () => {};
      const access = await getAccess(caller);
      if (!isOpen || access.kind !== 'active') return;
      stop();
      stop = upstream.listen(bindCaller(caller, access.connectionId), listener, uris);
    }

    listenings.add(listening);
    void restart();
    return () => {
      isOpen = false;
      listenings.delete(listening);
      stop();
    };
  }

  return wrapUpstream(upstream, {
    logins: {
      ...logins,
      getAccess,
      peekConnectionId,
      noteChange(owner) {
        ids.delete(nameConnectionOwner(owner));
        for (const { caller, restart } of listenings)
          if (isCallerOf(logins, caller, owner)) void restart();
      },
    } satisfies UpstreamLogins,
    request: (caller, request) => withBound(caller, (bound) => upstream.request(bound, request)),
    describe: (caller) => withBound(caller, (bound) => upstream.describe(bound)),
    peekDescription(caller) {
      if (caller === GATEWAY_CALLER || caller.connectionId !== undefined)
        return upstream.peekDescription(caller);
      const connectionId = peekConnectionId(caller);
      return connectionId === undefined
        ? undefined
        : upstream.peekDescription(bindCaller(caller, connectionId));
    },
    listen,
    endSession: (caller) =>
      withBound(caller, (bound) => upstream.endSession(bound)).catch(() => {}),
  });
}

/** Users of one server. */
const MAX_REMEMBERED = 10_000;

interface Listening {
  readonly caller: UpstreamCaller;
  restart(): Promise<void>;
}

const bindCaller = (caller: UpstreamCaller, connectionId: string): UpstreamCaller => ({
  ...caller,
  connectionId,
});

// §24.3, §24.4: the lists of a server where users log in themselves: of the caller's own connection, and before there is one
// those that anybody gets, or none.

/** `lists` are kept by connection. */
export function createListsByConnection(
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
    if (chosen === GATEWAY_CALLER) return loadWithoutLogin(kind, patience);
    if (chosen !== undefined) return lists.load(kind, chosen, patience);
    if (access.kind === 'impossible') return NEVER_CONNECTED[kind];
    return access.kind === 'unavailable' ? undefined : NOT_CONNECTED[kind];
  }

  /** A server that lists to nobody without a login after all is shown as any other. */
  function loadWithoutLogin(kind: ListKind, patience: Patience) {
    const loading = lists.load(kind, GATEWAY_CALLER, patience);
    return loading instanceof Promise
      ? loading.then((list) => list ?? NOT_CONNECTED[kind])
      : (loading ?? NOT_CONNECTED[kind]);
  }

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
    hadResource(uri, caller) {
      const chosen = peekCaller(caller);
      return chosen !== undefined && lists.hadResource(uri, chosen);
    },
    async describe(caller, patience) {
      const chosen = chooseCaller(caller, await getAccess(caller));
      return chosen && lists.describe(chosen, patience);
    },
    peekDescription(caller) {
      const chosen = peekCaller(caller);
      return chosen && lists.peekDescription(chosen);
    },
    peekProblem(caller) {
      const chosen = peekCaller(caller);
      return chosen && lists.peekProblem(chosen);
    },
    invalidate(list, caller) {
      const chosen = peekCaller(caller);
      if (chosen !== undefined) lists.invalidate(list, chosen);
    },
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
