// §18.2, MCP "Resource Links": results may link to unlisted resources. A client that got such a result reads the resource from the
// server that sent it.

import type { UpstreamCaller } from '../mcp/upstream/upstream.ts';
import { createBoundedMap } from '../platform/bounded-map.ts';
import { hashSha256 } from '../platform/ids.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildResourceLinkKey, nameOwner } from '../store/keys.ts';
import { createRecords, textFormat } from '../store/records.ts';
import { isAppUri, toMovedUri } from './apps/app-tools.ts';
import { BUILT_IN } from './prepare-list.ts';
import type { View } from './view.ts';

type LinkedResources = ReturnType<typeof createLinkedResources>;

/** The store keys of links, oldest first, and when each was written. */
type SavedLinks = Map<string, number>;

/** Limit for each server in a session; the oldest link is dropped first. No server can push out the links of another. */
const MAX_LINKS = 100;
/** Maximum length of a remembered URI, in characters. */
const MAX_URI = 4_096;

/** The owner of links: a session; or, for callers without one, a user and client in one view (`''` for `/mcp`). */
export const nameLinkOwner = (
  { sessionId, user, clientId }: UpstreamCaller,
  viewName: string,
): string =>
  sessionId ??
  `caller:${hashSha256(JSON.stringify([viewName, user && nameOwner(user), clientId]))}`;

export function createLinkedResources({
  config,
  clock,
  log,
  store,
  getSeal,
}: Pick<Runtime, 'config' | 'clock' | 'log' | 'store' | 'getSeal'>) {
  const { keyPrefix, ttlSeconds } = config.mcp.sessions;
  const firstServers = createRecords(store, textFormat, getSeal);
  /** Keyed by server: the links that this process has written to the store for each. */
  const owners = createBoundedMap<string, Map<string, SavedLinks>>('linkOwners');
  const toKey = (owner: string, uri: string) =>
    buildResourceLinkKey(keyPrefix, owner, hashSha256(uri));

  async function save(owner: string, key: string, server: string): Promise<void> {
    const servers = owners.get(owner) ?? new Map<string, SavedLinks>();
    const links: SavedLinks = servers.get(server) ?? new Map();
    const now = clock.monotonic();
    const savedAt = links.get(key);
    if (savedAt !== undefined && now - savedAt < (ttlSeconds * 1000) / 2) return;
    const isFirst = await firstServers.update(key, (first = server) =>
      first === server ? { value: server, ttlSeconds, result: true } : { result: false },
    );
    // Another server was the first to link to this URI, possibly on another replica.
    if (!isFirst) return;
    links.delete(key);
    links.set(key, now);
    servers.set(server, links);
    owners.set(owner, servers);
    const [oldest] = links.keys();
    if (links.size <= MAX_LINKS || oldest === undefined) return;
    links.delete(oldest);
    await store.delete(oldest);
  }

  return {
    /**
     * Records the links in a result of the server; a URI that another server linked to first stays with that server. Never
     * throws.
     */
    async remember(owner: string, server: string, uris: readonly string[]): Promise<void> {
      const keys = uris
        .filter((uri) => uri.length <= MAX_URI)
        .slice(0, MAX_LINKS)
        .map((uri) => toKey(owner, uri));
      try {
        for (const key of keys) await save(owner, key, server);
      } catch (cause) {
        log.warn('A resource that a result links to could not be noted; reading it will fail.', {
          server,
          cause,
        });
      }
    },
    /** The server that was the first to link to the URI. */
    find: async (owner: string, uri: string): Promise<string | undefined> =>
      uri.length > MAX_URI ? undefined : firstServers.get(toKey(owner, uri)),
    /** Called when the session has ended. */
    forget: (owner: string) => void owners.delete(owner),
  };
}

// §18.2: finds the server of a URI: the server that linked to it, that lists it, or that has a matching template.

export function createResolveResource(
  view: View,
  joined: View,
  links: LinkedResources,
): View['findResource'] {
  /**
   * A URI that a server gave to a client is sent only to that server, since it may contain a secret. URIs that another server
   * listed at that time are not remembered as links.
   */
  return async function resolveResource(uri, who) {
    const listed = await view.findListed(uri, who);
    if (listed?.server === BUILT_IN) return listed;
    // The URI itself names its server.
    if (isAppUri(uri)) return view.findResource(uri, who);
    const linker = await links
      .find(nameLinkOwner(who.upstream, view.name), uri)
      .catch((error: unknown) => {
        // A listed resource can be read even if the store is unavailable.
        if (listed === undefined) throw error;
        return undefined;
      });
    if (linker === undefined) return listed ?? view.findResource(uri, who);
    if (view.findServer(linker) === undefined) return listed;
    // If another server lists the resource on /mcp, it is not this server's: the rules about it apply to the other server.
    const other = view === joined ? undefined : await joined.findListed(uri, who);
    const isOther = other !== undefined && other.server !== linker;
    const shown = isOther ? toMovedUri(linker, uri) : uri;
    const linked = { server: linker, ownUri: uri, uri: shown, annotations: {} };
    return view.includes(linked) ? linked : listed;
  };
}
