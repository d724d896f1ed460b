// §24.3, §24.4: the lists of a server where users log in themselves: of the caller's own connection, and before there is one
// those that anybody gets, or none.

import type { ListKind } from '../mcp/protocol/list-kinds.ts';
import {
  bindCaller,
  GATEWAY_CALLER,
  type LoginAccess,
  type UpstreamCaller,
  type UpstreamLogins,
} from '../mcp/upstream/upstream.ts';
import type { UpstreamFacts } from '../mcp/upstream/upstream-config.ts';
import type { FetchedList } from './fetch-list.ts';
import type { Patience } from './list-cache.ts';
import type { ServerLists } from './server-lists.ts';

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
