// §18.2, MCP "Resource Links": results may name resources that no list has. They are read from the
// server whose result it was, by the client that got it.

import type { UpstreamCaller } from '../mcp/upstream/upstream.ts';
import { createBoundedMap } from '../platform/bounded-map.ts';
import { hashSha256 } from '../platform/ids.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildResourceLinkKey } from '../store/keys.ts';
import { nameOwner } from '../store/owner.ts';
import { createRecords, textFormat } from '../store/records.ts';
import { isAppUri, toMovedUri } from './apps/app-tools.ts';
import { BUILT_IN } from './prepare-list.ts';
import type { FoundResource, ResolveResource, View, Who } from './view.ts';

export interface LinkedResources {
  /** Notes that the server named these in a result; what another named before stays with that one. Never throws. */
  remember(owner: string, server: string, uris: readonly string[]): Promise<void>;
  /** The server that was the first to name the URI. */
  find(owner: string, uri: string): Promise<string | undefined>;
  /** The session has ended. */
  forget(owner: string): void;
}

/** Keys in the store, the oldest first, and when they were written. */
type SavedLinks = Map<string, number>;

/** For each server in a session; the oldest is forgotten first. No server can make another's forgotten. */
const MAX_LINKS = 100;
/** Sessions whose links are counted; beyond them the store forgets by itself. */
const MAX_OWNERS = 10_000;
/** Characters of a URI that is remembered. */
const MAX_URI = 4_096;

/** The owner of links: a session, or at one path (`''` for `/mcp`) a user and client without one. */
export const nameLinkOwner = (
  { sessionId, user, clientId }: UpstreamCaller,
  path: string,
): string =>
  sessionId ?? `caller:${hashSha256(JSON.stringify([path, user && nameOwner(user), clientId]))}`;

export function createLinkedResources(
  runtime: Pick<Runtime, 'config' | 'clock' | 'log' | 'store' | 'getSeal'>,
): LinkedResources {
  const { config, clock, log, store, getSeal } = runtime;
  const { keyPrefix, ttlSeconds } = config.mcp.sessions;
  const firstServers = createRecords(store, textFormat, getSeal);
  /** Keyed by server: what this process has put into the store for each. */
  const owners = createBoundedMap<string, Map<string, SavedLinks>>(MAX_OWNERS);
  const toKey = (owner: string, uri: string) =>
    buildResourceLinkKey(keyPrefix, owner, hashSha256(uri));

  async function save(owner: string, key: string, server: string): Promise<void> {
    const servers = owners.get(owner) ?? new Map<string, SavedLinks>();
    const links: SavedLinks = servers.get(server) ?? new Map();
    const now = clock.monotonic();
    const savedAt = links.get(key);
    if (savedAt !== undefined && now - savedAt < (ttlSeconds * 1000) / 2) return;
    if (!(await claim(key, server))) return;
    links.delete(key);
    links.set(key, now);
    servers.set(server, links);
    owners.set(owner, servers);
    const [oldest] = links.keys();
    if (links.size <= MAX_LINKS || oldest === undefined) return;
    links.delete(oldest);
    await store.delete(oldest);
  }

  /** False where another server was first, maybe at another replica. */
  const claim = (key: string, server: string): Promise<boolean> =>
    firstServers.update(key, (first = server) =>
      first === server ? { value: server, ttlSeconds, result: true } : { result: false },
    );

  return {
    async remember(owner, server, uris) {
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
    async find(owner, uri) {
      if (uri.length > MAX_URI) return undefined;
      return firstServers.get(toKey(owner, uri));
    },
    forget: (owner) => void owners.delete(owner),
  };
}

// §18.2: which server a URI is for: who linked to it, who lists it, or whose template fits it.

export function createResolveResource(
  view: View,
  joined: View,
  links: LinkedResources,
): ResolveResource {
  /**
   * A URI that a client was given by a server is for that server alone: it may hold a secret. Nobody was given by a link what
   * another server listed then.
   */
  return async function resolveResource(uri, who) {
    const listed = await view.findListed(uri, who);
    if (listed?.server === BUILT_IN) return listed;
    // It says itself whose it is.
    if (isAppUri(uri)) return view.findResource(uri, who);
    const linker = await findLinker(uri, who, listed);
    if (linker === undefined) return listed ?? view.findResource(uri, who);
    if (view.findServer(linker) === undefined) return listed;
    const linked = await toLinked(uri, linker, who);
    return view.includes(linked) ? linked : listed;
  };

  /** A listed resource can be read even if the store does not answer. */
  async function findLinker(uri: string, who: Who, listed: FoundResource | undefined) {
    try {
      return await links.find(nameLinkOwner(who.upstream, view.path), uri);
    } catch (error) {
      if (listed === undefined) throw error;
      return undefined;
    }
  }

  async function toLinked(uri: string, server: string, who: Who): Promise<FoundResource> {
    // A resource that another server lists at /mcp is not this server's: the rules about it are about the other.
    const other = view === joined ? undefined : await joined.findListed(uri, who);
    const isOther = other !== undefined && other.server !== server;
    return { server, ownUri: uri, uri: isOther ? toMovedUri(server, uri) : uri, annotations: {} };
  }
}
