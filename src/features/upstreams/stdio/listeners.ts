// §18.3: who is told what changes at a server, and of which resources.
import type { ListName, UpstreamListener } from '../upstream.ts';
import type { ProcessKey } from './process-key.ts';
import { createSubscriptions, type Subscriptions } from './subscriptions.ts';

export interface Listeners {
  /** Until the result is called. */
  add(
    key: ProcessKey,
    sessionId: string | undefined,
    listener: UpstreamListener,
    uris: readonly string[],
  ): () => void;
  tellListChanged(key: ProcessKey, list: ListName): void;
  tellAllListsChanged(key: ProcessKey): void;
  /** To those who subscribed to it. */
  tellUpdated(key: ProcessKey, uri: string): void;
  /** Of the process of this key. */
  findSubscriptions(key: ProcessKey): Subscriptions;
  /** Whether somebody subscribed to a resource of it. */
  hasSubscriptions(key: ProcessKey): boolean;
}

interface Listening {
  readonly sessionId: string | undefined;
  readonly listener: UpstreamListener;
}

interface Room {
  readonly listening: Set<Listening>;
  readonly subscriptions: Subscriptions;
}

export function createListeners(): Listeners {
  const rooms = new Map<string, Room>();

  function findRoom({ id }: ProcessKey): Room {
    dropEmpty();
    const room = rooms.get(id) ?? { listening: new Set(), subscriptions: createSubscriptions() };
    rooms.set(id, room);
    return room;
  }

  function dropEmpty(): void {
    if (rooms.size < MANY) return;
    for (const [id, { listening, subscriptions }] of rooms) {
      const { count, isConnected } = subscriptions;
      if (listening.size === 0 && count === 0 && !isConnected) rooms.delete(id);
    }
  }

  function tellListChanged({ id }: ProcessKey, list: ListName): void {
    for (const { listener } of rooms.get(id)?.listening ?? []) listener.listChanged(list);
  }

  return {
    add(key, sessionId, listener, uris) {
      const { listening, subscriptions } = findRoom(key);
      const entry = { sessionId, listener };
      listening.add(entry);
      // What the server does not agree to is not told of.
      for (const uri of uris) subscriptions.add(entry, uri).catch(() => {});
      return () => {
        listening.delete(entry);
        subscriptions.removeAll(entry);
      };
    },
    tellListChanged,
    tellAllListsChanged(key) {
      for (const list of LISTS) tellListChanged(key, list);
    },
    tellUpdated(key, uri) {
      const room = rooms.get(key.id);
      for (const entry of room?.listening ?? []) {
        const owners = [entry, ...(entry.sessionId === undefined ? [] : [entry.sessionId])];
        const isWanted = owners.some((owner) => room?.subscriptions.isWanted(owner, uri));
        if (isWanted) entry.listener.resourceUpdated(uri);
      }
    },
    findSubscriptions: (key) => findRoom(key).subscriptions,
    hasSubscriptions: ({ id }) => (rooms.get(id)?.subscriptions.count ?? 0) > 0,
  };
}

const LISTS: readonly ListName[] = ['tools', 'prompts', 'resources'];

/** Rooms; with so many it is worth looking for empty ones. */
const MANY = 100;
