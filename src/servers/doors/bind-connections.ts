// §24.4: each request to a server where users log in themselves goes by one connection, from its first byte to its last.

import { nameConnectionOwner } from '../../mcp/upstream/connection.ts';
import {
  bindCaller,
  GATEWAY_CALLER,
  isCallerOf,
  type LoginAccess,
  type Upstream,
  type UpstreamCaller,
  type UpstreamListener,
  type UpstreamLogins,
} from '../../mcp/upstream/upstream.ts';

import { wrapUpstream } from '../../mcp/upstream/wrap-upstream.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { type Logins, toLoginError } from './logins.ts';

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
