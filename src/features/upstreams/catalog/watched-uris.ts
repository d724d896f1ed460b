// §18.3: what sessions watch at servers of the stateless era: there it is part of listening.

export interface WatchedUris {
  set(sessionId: string | undefined, server: string, uri: string, isWatched: boolean): void;
  list(sessionId: string, server: string): readonly string[];
  /** Called with the server, until the result is called. */
  onChange(sessionId: string, changed: (server: string) => void): () => void;
  forget(sessionId: string): void;
}

/** Of a session at one server; sessions: the oldest is forgotten first. */
const MAX_URIS = 100;
const MAX_SESSIONS = 10_000;

export function createWatchedUris(): WatchedUris {
  const sessions = new Map<string, Map<string, Set<string>>>();
  const listeners = new Map<string, (server: string) => void>();

  function findUris(sessionId: string, server: string): Set<string> {
    const servers = sessions.get(sessionId) ?? new Map<string, Set<string>>();
    sessions.set(sessionId, servers);
    const [oldest] = sessions.keys();
    if (sessions.size > MAX_SESSIONS && oldest !== undefined) sessions.delete(oldest);
    const uris = servers.get(server) ?? new Set<string>();
    servers.set(server, uris);
    return uris;
  }

  return {
    set(sessionId, server, uri, isWatched) {
      if (sessionId === undefined) return;
      const uris = findUris(sessionId, server);
      if (!isWatched) uris.delete(uri);
      else if (uris.size < MAX_URIS) uris.add(uri);
      listeners.get(sessionId)?.(server);
    },
    list: (sessionId, server) => [...(sessions.get(sessionId)?.get(server) ?? [])],
    onChange(sessionId, changed) {
      listeners.set(sessionId, changed);
      return () => {
        if (listeners.get(sessionId) === changed) listeners.delete(sessionId);
      };
    },
    forget: (sessionId) => void sessions.delete(sessionId),
  };
}
