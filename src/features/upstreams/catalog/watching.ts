// §18.3: resources that tell when they change, and those who subscribe to them.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { IdentifiedCaller, ServedCatalog } from '../../mcp/catalog/served-catalog.ts';
import { UpstreamError } from '../upstream.ts';
import { canSubscribe } from './describe-view.ts';
import { BUILT_IN } from './entry.ts';
import { toWho } from './identify.ts';
import { type ListenDeps, listenToServers } from './listen-to-servers.ts';

type Watching = Pick<ServedCatalog, 'canWatch' | 'watchResources' | 'setWatched' | 'listen'>;

export function createWatching(deps: ListenDeps): Watching {
  const { view, access, resolveResource, getPlan } = deps;
  const getBuiltIn = () => (view.shown === 'joined' ? getPlan().builtIn?.catalog : undefined);

  async function canWatch(uri: string, caller: IdentifiedCaller): Promise<boolean> {
    const who = toWho(caller);
    if (await getBuiltIn()?.canWatch(uri, caller)) {
      return access.mayRead({ server: BUILT_IN, ownUri: uri, uri, annotations: {} }, who);
    }
    const found = await resolveResource(uri, who, undefined);
    const server = found && view.findServer(found.server);
    if (!server || !access.mayRead(found, who)) return false;
    const description = await server.lists.describe(who.upstream);
    return description !== undefined && canSubscribe(description.capabilities);
  }

  return {
    canWatch,
    watchResources: (changed) => getBuiltIn()?.watchResources(changed) ?? (() => {}),

    async setWatched(uri, isWatched, caller) {
      const builtIn = getBuiltIn();
      if (await builtIn?.canWatch(uri, caller)) return builtIn?.setWatched(uri, isWatched, caller);
      const who = toWho(caller);
      const found = await resolveResource(uri, who, undefined);
      const server = found && view.findServer(found.server);
      // What the server says of a resource that the caller may not read would tell that there is one.
      if (!server || !access.mayRead(found, who)) return;
      await server.upstream
        .request(who.upstream, {
          method: isWatched ? 'resources/subscribe' : 'resources/unsubscribe',
          params: { uri: found.ownUri },
          name: found.ownUri,
          // It ends by the server's own time-out.
          signal: new AbortController().signal,
          trace: {},
          logLevel: undefined,
        })
        .catch((error: unknown) => failWithUpstreamError(error, server.name));
    },

    listen: (caller, listener, uris) => listenToServers(deps, caller, listener, uris),
  };
}

/** @throws GatewayError with the error of the server, or one that says how it failed. */
function failWithUpstreamError(error: unknown, server: string): never {
  if (!(error instanceof UpstreamError)) throw error;
  const message = `${server} could not be told of it: ${error.message}.`;
  return fail('upstream_error', { jsonRpc: error.jsonRpcError ?? { code: -32603, message } });
}
