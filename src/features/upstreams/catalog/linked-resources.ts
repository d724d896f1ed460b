// §18.2, MCP "Resource Links": results may name resources that no list has. They are read from the
// server whose result it was, by the session that got it.
import type { Clock } from '../../../core/clock.ts';
import { isObject, type JsonObject } from '../../../core/json.ts';
import type { Log } from '../../../core/log.ts';
import type { Seal } from '../../../core/seal/seal.ts';
import { hashSha256 } from '../../../core/sha256.ts';
import { buildResourceLinkKey } from '../../../core/store/keys.ts';
import type { Store } from '../../../core/store/store.ts';

export interface LinkedResources {
  /** Notes that the server named these in a result for the session. Never throws. */
  remember(sessionId: string, server: string, uris: readonly string[]): Promise<void>;
  /** The server that named the URI in this session. */
  find(sessionId: string, uri: string): Promise<string | undefined>;
  /** The session has ended. */
  forget(sessionId: string): void;
}

export interface LinkedResourcesDeps {
  readonly store: Pick<Store, 'get' | 'set' | 'delete'>;
  readonly getSeal: () => Promise<Seal>;
  readonly clock: Clock;
  readonly log: Log;
  readonly sessionKeyPrefix: string;
  /** Of a session that is not used. */
  readonly sessionTtlSeconds: number;
}

interface SavedLink {
  readonly server: string;
  readonly at: number;
}

/** Of a session; the oldest is forgotten first. */
const MAX_LINKS = 100;
/** Sessions whose links are counted; beyond them the store forgets by itself. */
const MAX_SESSIONS = 10_000;
/** Characters of a URI that is remembered. */
const MAX_URI = 4_096;

export function createLinkedResources(deps: LinkedResourcesDeps): LinkedResources {
  const { store, getSeal, clock, log, sessionKeyPrefix, sessionTtlSeconds } = deps;
  /** Oldest first: which keys each session has in the store. */
  const sessions = new Map<string, Map<string, SavedLink>>();
  const toKey = (sessionId: string, uri: string) =>
    buildResourceLinkKey(sessionKeyPrefix, sessionId, hashSha256(uri));

  async function save(sessionId: string, key: string, server: string): Promise<void> {
    const links = sessions.get(sessionId) ?? new Map<string, SavedLink>();
    const now = clock.monotonic();
    const saved = links.get(key);
    if (saved?.server === server && now - saved.at < (sessionTtlSeconds * 1000) / 2) return;
    const seal = await getSeal();
    await store.set(key, seal.seal(key, server), sessionTtlSeconds);
    links.delete(key);
    links.set(key, { server, at: now });
    sessions.delete(sessionId);
    sessions.set(sessionId, links);
    dropFirst(sessions, MAX_SESSIONS);
    const dropped = dropFirst(links, MAX_LINKS);
    if (dropped !== undefined) await store.delete(dropped);
  }

  return {
    async remember(sessionId, server, uris) {
      const keys = uris
        .filter((uri) => uri.length <= MAX_URI)
        .slice(0, MAX_LINKS)
        .map((uri) => toKey(sessionId, uri));
      try {
        for (const key of keys) await save(sessionId, key, server);
      } catch (cause) {
        log.warn('A resource that a result links to could not be noted; reading it will fail.', {
          server,
          cause,
        });
      }
    },
    async find(sessionId, uri) {
      if (uri.length > MAX_URI) return undefined;
      const key = toKey(sessionId, uri);
      const sealed = await store.get(key);
      if (sealed === undefined) return undefined;
      return (await getSeal()).open(key, sealed);
    },
    forget: (sessionId) => void sessions.delete(sessionId),
  };
}

/** The key that was dropped. */
function dropFirst(map: Map<string, unknown>, max: number): string | undefined {
  const [first] = map.keys();
  if (map.size <= max || first === undefined) return undefined;
  map.delete(first);
  return first;
}

/** URIs that the result of a tool, or a prompt, names: links and embedded resources. */
export function listLinkedUris({ content, messages }: JsonObject): readonly string[] {
  const items: unknown[] = Array.isArray(content) ? [...content] : [];
  if (Array.isArray(messages)) {
    for (const message of messages) if (isObject(message)) items.push(message.content);
  }
  return items.flatMap(readLinkedUri);
}

function readLinkedUri(item: unknown): readonly string[] {
  if (!isObject(item)) return [];
  const uri =
    item.type === 'resource_link'
      ? item.uri
      : item.type === 'resource' && isObject(item.resource)
        ? item.resource.uri
        : undefined;
  return typeof uri === 'string' ? [uri] : [];
}
