// §18.3: what changes is told to those who listen: lists, and the resources that they subscribed to.
import type { Caller, Catalog, CatalogListener } from '../../mcp/catalog/catalog.ts';
import type { Access } from './access.ts';
import { toUsedResource } from './access.ts';
import type { ChangeHub } from './change-hub.ts';
import { canSubscribe } from './describe-view.ts';
import { BUILT_IN } from './entry.ts';
import type { Identify } from './identify.ts';
import type { Plan } from './plan.ts';
import type { ResolveResource } from './resolve-resource.ts';
import type { Server } from './server.ts';
import type { FoundResource, View, Who } from './view.ts';
import { createWatchedUris } from './watched-uris.ts';

export interface WatchingDeps {
  readonly view: View;
  readonly access: Access;
  readonly hub: ChangeHub;
  readonly identify: Identify;
  readonly resolveResource: ResolveResource;
  getPlan(): Plan;
}

type Watching = Required<Pick<Catalog, 'canWatch' | 'watchResources' | 'setWatched' | 'listen'>> & {
  /** The session has ended. */
  forget(sessionId: string): void;
};

export function createWatching(deps: WatchingDeps): Watching {
  const { view, access, identify, resolveResource, getPlan } = deps;
  const watched = createWatchedUris();
  const getBuiltIn = () => (view.shown === 'joined' ? getPlan().builtIn?.catalog : undefined);

  function mayUse(uri: string, found: FoundResource, who: Who): boolean {
    try {
      access.checkUse('resources', toUsedResource(uri, found), who);
      return true;
    } catch {
      return false;
    }
  }

  async function canWatch(uri: string, caller: Caller): Promise<boolean> {
    const who = await identify(caller);
    if (await getBuiltIn()?.canWatch(uri, caller)) {
      return mayUse(uri, { server: BUILT_IN, ownUri: uri, uri, annotations: {} }, who);
    }
    const found = await resolveResource(uri, who, undefined);
    const server = found && view.findServer(found.server);
    if (!server || !mayUse(uri, found, who)) return false;
    const description = await server.describe(who.upstream);
    return description !== undefined && canSubscribe(description.capabilities);
  }

  return {
    canWatch,
    watchResources: (changed) => getBuiltIn()?.watchResources(changed) ?? (() => {}),

    async setWatched(uri, isWatched, caller) {
      const builtIn = getBuiltIn();
      if (await builtIn?.canWatch(uri, caller))
        return builtIn?.setWatched?.(uri, isWatched, caller);
      const who = await identify(caller);
      const found = await resolveResource(uri, who, undefined);
      const server = found && view.findServer(found.server);
      if (!server) return;
      const description = await server.describe(who.upstream);
      if (description?.era === 'stateless') {
        watched.set(who.upstream.sessionId, server.config.name, found.ownUri, isWatched);
        return;
      }
      await server.upstream.request(who.upstream, {
        method: isWatched ? 'resources/subscribe' : 'resources/unsubscribe',
        params: { uri: found.ownUri },
        name: found.ownUri,
        signal: AbortSignal.timeout(server.config.timeoutMs),
        trace: {},
        logLevel: undefined,
      });
    },

    listen: (caller, listener, uris = []) =>
      openListener(deps, watched, mayUse, caller, listener, uris),
    forget: watched.forget,
  };
}

type MayUse = (uri: string, found: FoundResource, who: Who) => boolean;

/** One stream of a client: it listens to each server of the view, also to those that come later. */
function openListener(
  deps: WatchingDeps,
  watched: ReturnType<typeof createWatchedUris>,
  mayUse: MayUse,
  caller: Caller,
  listener: CatalogListener,
  uris: readonly string[],
): () => void {
  const { view, hub, identify, resolveResource, getPlan } = deps;
  const builtIn = view.shown === 'joined' ? getPlan().builtIn?.catalog : undefined;
  const stops = new Map<Server, () => void>();
  const ownStops: (() => void)[] = [];
  let isOpen = true;
  const stopBuiltIn = builtIn?.listen?.(caller, listener, uris);
  if (stopBuiltIn) ownStops.push(stopBuiltIn);

  async function open(): Promise<void> {
    const who = await identify(caller);
    if (!isOpen) return;
    ownStops.push(
      hub.add({
        caller: who.upstream,
        hears: (server) => view.findServer(server.config.name) === server,
        listChanged: listener.listChanged,
        serversChanged: () => void listenToServers(who),
      }),
    );
    const { sessionId } = who.upstream;
    if (sessionId !== undefined) {
      ownStops.push(watched.onChange(sessionId, (name) => listenAgain(name, who)));
    }
    await listenToServers(who);
  }

  async function listenToServers(who: Who): Promise<void> {
    const wanted = await groupByServer(who);
    if (!isOpen) return;
    const servers = view.listServers();
    for (const [server, stop] of stops) {
      if (servers.includes(server)) continue;
      stop();
      stops.delete(server);
    }
    for (const server of servers) {
      const own = wanted.get(server.config.name) ?? [];
      if (!stops.has(server)) listenTo(server, who, own);
    }
  }

  function listenTo(server: Server, who: Who, own: readonly string[]): void {
    const description = server.peekDescription(who.upstream);
    // Everybody shares its lists, and the gateway itself hears when they change.
    const tellsMore = description === undefined || canSubscribe(description.capabilities);
    if (!server.isPersonal && !tellsMore) return;
    const { sessionId } = who.upstream;
    const ofSession = sessionId === undefined ? [] : watched.list(sessionId, server.config.name);
    const stop = server.upstream.listen(
      who.upstream,
      {
        listChanged(list) {
          if (server.isPersonal) server.invalidate(list, who.upstream);
        },
        resourceUpdated: (ownUri) => void tellOfResource(server, ownUri, who).catch(() => {}),
      },
      [...own, ...ofSession],
    );
    stops.set(server, stop);
  }

  function listenAgain(name: string, who: Who): void {
    const server = view.findServer(name);
    if (!isOpen || server === undefined) return;
    stops.get(server)?.();
    listenTo(server, who, []);
  }

  async function groupByServer(who: Who): Promise<ReadonlyMap<string, readonly string[]>> {
    const groups = new Map<string, string[]>();
    for (const uri of uris) {
      const found = await resolveResource(uri, who, undefined);
      if (!found || found.server === BUILT_IN || !mayUse(uri, found, who)) continue;
      groups.set(found.server, [...(groups.get(found.server) ?? []), found.ownUri]);
    }
    return groups;
  }

  /** By the URI that clients know; never of what is not theirs to read. */
  async function tellOfResource(server: Server, ownUri: string, who: Who): Promise<void> {
    const { name } = server.config;
    for (const uri of [ownUri, `${name}+${ownUri}`]) {
      const found = await resolveResource(uri, who, undefined);
      if (found?.server !== name || found.ownUri !== ownUri) continue;
      if (isOpen && mayUse(uri, found, who)) listener.resourceUpdated(uri);
      return;
    }
  }

  // What fails here is missed by the client, and nothing else: it reads what it needs.
  open().catch(() => {});
  return () => {
    isOpen = false;
    for (const stop of [...ownStops, ...stops.values()]) stop();
  };
}
