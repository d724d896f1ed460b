// §24.4: each request to a server where users log in themselves goes by one connection, from its first byte to its last.

import type { UpstreamConfig } from '../config/upstream-config.ts';
import type { Upstream, UpstreamCaller, UpstreamListener, UpstreamLogins } from '../upstream.ts';
import { GATEWAY_CALLER, type LoginAccess } from '../upstream.ts';
import { wrapUpstream } from '../wrap-upstream.ts';
import { type Logins, toLoginError } from './logins.ts';

/** Where the connection is missing or cannot be used, nothing is sent. */
export function bindConnections<Config extends UpstreamConfig>(
  upstream: Upstream<Config>,
  logins: Logins,
): Upstream<Config> {
  const { getAccess } = logins;
  const listenings = new Set<Listening>();

  /** @throws CredentialError */
  function bind(caller: UpstreamCaller, access: LoginAccess): UpstreamCaller {
    if (access.kind !== 'active') throw toLoginError(access);
    return bindCaller(caller, access.connectionId);
  }

  /** Where the connection is at hand, nothing is waited for. */
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
      noteChange(isAbout) {
        for (const { caller, restart } of listenings) if (isAbout(caller)) void restart();
      },
    } satisfies UpstreamLogins,
    request: (caller, request) => withBound(caller, (bound) => upstream.request(bound, request)),
    describe: (caller) => withBound(caller, (bound) => upstream.describe(bound)),
    peekDescription(caller) {
      if (caller === GATEWAY_CALLER || caller.connectionId !== undefined)
        return upstream.peekDescription(caller);
      const connectionId = logins.peekConnectionId(caller);
      return connectionId === undefined
        ? undefined
        : upstream.peekDescription(bindCaller(caller, connectionId));
    },
    listen,
    endSession: (caller) =>
      withBound(caller, (bound) => upstream.endSession(bound)).catch(() => {}),
  });
}

interface Listening {
  readonly caller: UpstreamCaller;
  restart(): Promise<void>;
}

export const bindCaller = (caller: UpstreamCaller, connectionId: string): UpstreamCaller => ({
  ...caller,
  connectionId,
});
