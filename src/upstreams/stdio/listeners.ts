// §18.3: who is told what changes at a server, and of which resources.

import { isObject, type JsonObject } from '../../platform/json.ts';
import type { ListName } from '../../protocol/list-kinds.ts';
import { toStatelessParams } from '../messages/envelope.ts';
import { routeToListener } from '../messages/route-notification.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import { GATEWAY_CALLER, type UpstreamListener } from '../upstream.ts';
import { GATEWAY_KEY, type ProcessKey } from './process-key.ts';
import type { RunningServer } from './server-run.ts';
import { createSubscriptions, type Subscriptions, type SubscriptionWire } from './subscriptions.ts';

export interface Listeners {
  /** Until the result is called. */
  add(
    key: ProcessKey,
    sessionId: string | undefined,
    listener: UpstreamListener,
    uris: readonly string[],
  ): () => void;
  /** A notification of the key's process that belongs to no request. */
  notify(key: ProcessKey, message: ServerNotification): void;
  /** A process for the same at another replica says that the resource has changed. */
  tellUpdate(keyId: string, uri: string): void;
  /** The key's process has started. */
  connect(key: ProcessKey, running: RunningServer, timeoutMs: number): void;
  disconnect(key: ProcessKey): void;
  /** Of the process of this key. */
  findSubscriptions(key: ProcessKey): Subscriptions;
  /** Whether somebody subscribed to a resource of it. */
  hasSubscriptions(key: ProcessKey): boolean;
  /** Clients' sessions that subscribed to something, whether they listen or not. */
  listSessions(): ReadonlySet<string>;
  /** The session has ended. */
  forgetSession(sessionId: string): void;
}

interface Listening {
  readonly sessionId: string | undefined;
  readonly listener: UpstreamListener;
}

interface Room {
  readonly listening: Set<Listening>;
  readonly subscriptions: Subscriptions;
  /** Whether there ever was a process. */
  wasConnected: boolean;
}

export function createListeners(): Listeners {
  const rooms = new Map<string, Room>();

  function findRoom({ id }: ProcessKey): Room {
    dropEmpty();
    const room = rooms.get(id) ?? createRoom();
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

  function toListener({ id }: Pick<ProcessKey, 'id'>): UpstreamListener {
    const { listening = [], subscriptions } = rooms.get(id) ?? {};
    return {
      listChanged(list) {
        for (const { listener } of listening) listener.listChanged(list);
      },
      resourceUpdated(uri) {
        for (const entry of listening) {
          const owners = entry.sessionId === undefined ? [entry] : [entry, entry.sessionId];
          const isWanted = owners.some((owner) => subscriptions?.isWanted(owner, uri));
          if (isWanted) entry.listener.resourceUpdated(uri);
        }
      },
      elicitationCompleted(elicitationId) {
        // A process that all share could ask nobody.
        if (id === GATEWAY_KEY.id) return;
        for (const { listener } of listening) listener.elicitationCompleted?.(elicitationId);
      },
    };
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
    notify: (key, message) => routeToListener(message, toListener(key)),
    tellUpdate: (id, uri) => toListener({ id }).resourceUpdated(uri),
    connect(key, running, timeoutMs) {
      const room = findRoom(key);
      const wasConnected = room.wasConnected;
      room.wasConnected = true;
      room.subscriptions.connect(createSubscriptionWire(running, timeoutMs));
      // What has changed while no process was there was missed.
      if (wasConnected)
        for (const list of findListsThatChange(running)) toListener(key).listChanged(list);
    },
    disconnect: ({ id }) => rooms.get(id)?.subscriptions.disconnect(),
    findSubscriptions: (key) => findRoom(key).subscriptions,
    hasSubscriptions: ({ id }) => (rooms.get(id)?.subscriptions.count ?? 0) > 0,
    listSessions: () =>
      new Set(
        [...rooms.values()].flatMap(({ subscriptions }) => [...subscriptions.listSessions()]),
      ),
    forgetSession(sessionId) {
      for (const { subscriptions } of rooms.values()) subscriptions.removeAll(sessionId);
    },
  };
}

const createRoom = (): Room => ({
  listening: new Set(),
  subscriptions: createSubscriptions(),
  wasConnected: false,
});

/** Rooms; with so many it is worth looking for empty ones. */
const MANY = 100;

// MCP "Resources", "Subscriptions": how a server of either era is told which changes are wanted.

const LISTS: readonly ListName[] = ['tools', 'prompts', 'resources'];

/** Lists of which the server says when they change. */
const findListsThatChange = ({ description }: RunningServer): readonly ListName[] =>
  LISTS.filter((list) => has(description.capabilities[list], 'listChanged'));

/** From now on it tells of its lists, too. */
const createSubscriptionWire = (running: RunningServer, timeoutMs: number): SubscriptionWire =>
  WIRES[running.description.era](running, timeoutMs);

const WIRES = { session: createSessionWire, stateless: createStatelessWire } as const;

function createSessionWire({ connection }: RunningServer, timeoutMs: number): SubscriptionWire {
  return {
    async subscribe(uri) {
      await connection.ask('resources/subscribe', { uri }, timeoutMs);
    },
    unsubscribe: (uri) =>
      void connection.ask('resources/unsubscribe', { uri }, timeoutMs).catch(() => {}),
  };
}

/** One subscription says all that is wanted; a change of it is a new one. */
function createStatelessWire(running: RunningServer): SubscriptionWire {
  const { connection } = running;
  const lists = findListsThatChange(running);
  const uris = new Set<string>();
  let cancel = () => {};
  let isOpening = false;

  function open(): void {
    isOpening = false;
    const notifications = {
      ...Object.fromEntries(lists.map((list) => [`${list}ListChanged`, true])),
      ...(uris.size > 0 && { resourceSubscriptions: [...uris] }),
    };
    const cancelFormer = cancel;
    cancel = Object.keys(notifications).length > 0 ? openWith({ notifications }) : () => {};
    cancelFormer();
  }

  const openWith = (params: JsonObject): (() => void) =>
    connection.openSubscription(
      toStatelessParams({ ...OWN_REQUEST, params }, 0, GATEWAY_CALLER.capabilities),
    );

  /** Several changes at once are one. */
  function openSoon(): void {
    if (isOpening) return;
    isOpening = true;
    queueMicrotask(open);
  }

  openSoon();
  return {
    async subscribe(uri) {
      uris.add(uri);
      openSoon();
    },
    unsubscribe(uri) {
      uris.delete(uri);
      openSoon();
    },
  };
}

const OWN_REQUEST = {
  method: 'subscriptions/listen',
  signal: new AbortController().signal,
  trace: {},
  logLevel: undefined,
};

const has = (capability: unknown, member: string): boolean =>
  isObject(capability) && capability[member] === true;
