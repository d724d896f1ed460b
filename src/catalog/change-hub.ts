// §18.2: tells clients when lists change.

import {
  LIST_KINDS,
  LIST_NAMES,
  type ListKind,
  type ListName,
} from '../mcp/protocol/list-kinds.ts';
import type { UpstreamCaller } from '../mcp/upstream/upstream.ts';
import { createCountedBus } from '../platform/counted-bus.ts';
import type { ClockAndLog } from '../platform/log.ts';
import { CAPACITY } from '../platform/memory/capacity.ts';
import { createThrottle } from '../platform/throttle.ts';
import { nameOwner } from '../store/keys.ts';
import type { Server } from './server.ts';
import type { View } from './view.ts';

type ChangeHub = ReturnType<typeof createChangeHub>;

interface ListListener {
  readonly caller: UpstreamCaller;
  /** True if the client is notified at once. */
  readonly isStream: boolean;
  hears(server: Server): boolean;
  listChanged(list: ListName): void;
  serversChanged(): void;
}

/** Throttle: a server may announce a thousand changes a second, and each client is notified once. */
const MIN_DISTANCE_MS = 1_000;
/** All listeners share this topic, because the set of servers that each listens to changes with the configuration file. */
const ALL = 'all';

export function createChangeHub({ clock, log }: ClockAndLog) {
  const bus = createCountedBus<typeof ALL, ListListener>({
    onError: (cause) => log.error('A listener failed; please report this.', { cause }),
  });

  /** Sessions with a stream, and the number of their streams. */
  const streams = new Map<string, number>();

  function countStreams({ caller, isStream }: ListListener, change: 1 | -1): void {
    const { sessionId } = caller;
    if (!isStream || sessionId === undefined) return;
    const count = (streams.get(sessionId) ?? 0) + change;
    if (count === 0) streams.delete(sessionId);
    else streams.set(sessionId, count);
  }

  return {
    /** True if the session has a stream on this replica that delivers changes. */
    hasStream: (sessionId: string) => streams.has(sessionId),
    /** Adds the listener until the returned function is called. */
    add(listener: ListListener): () => void {
      let isListening = true;
      countStreams(listener, 1);
      const listChanged = createThrottle<ListName>(clock, MIN_DISTANCE_MS, (list) => {
        if (isListening) listener.listChanged(list);
      });
      const stop = bus.subscribe(ALL, { ...listener, listChanged });
      return () => {
        if (!isListening) return;
        isListening = false;
        countStreams(listener, -1);
        stop();
      };
    },
    /** Announces that a list of the server has changed, for these callers or for all. */
    announce(server: Server, list: ListName, isAbout?: (caller: UpstreamCaller) => boolean) {
      bus.publish(ALL, ({ caller, hears, listChanged }) => {
        if (isAbout?.(caller) !== false && hears(server)) listChanged(list);
      });
    },
    /** Announces that servers were added or removed. */
    announceServers() {
      bus.publish(ALL, ({ serversChanged, listChanged }) => {
        // The client is notified even if an author's catalogue throws an error when the gateway subscribes again.
        for (const list of LIST_NAMES) listChanged(list);
        serversChanged();
      });
    },
  };
}

// §18.4: sessions that got a list without the entries of a server. Once these are available, the session is notified in the
// response to its next call, since most sessions have no stream.

const MAX_OF_USER = 20;

interface Missed {
  /** Undefined without authentication, where there are no limits per user. */
  readonly owner: string | undefined;
  /** The kinds of which the session has not had a complete list yet. */
  readonly kinds: Set<ListKind>;
  readonly changed: Set<ListName>;
  stop(): void;
}

export function createMissedLists(hub: ChangeHub) {
  /** Keyed by session, oldest first. */
  const missed = new Map<string, Missed>();

  function forget(sessionId: string): void {
    missed.get(sessionId)?.stop();
    missed.delete(sessionId);
  }

  function open(sessionId: string, caller: UpstreamCaller, view: View): Missed {
    const owner = caller.user && nameOwner(caller.user);
    const own = owner === undefined ? [] : [...missed].filter(([, one]) => one.owner === owner);
    const [oldest] = missed.size >= CAPACITY.changedSessions ? missed.keys() : [];
    const [oldestOwn] = own.length >= MAX_OF_USER ? own.map(([known]) => known) : [];
    const dropped = oldestOwn ?? oldest;
    if (dropped !== undefined) forget(dropped);
    const changed = new Set<ListName>();
    const stop = hub.add({
      caller,
      isStream: false,
      hears: (server) => view.findServer(server.name) === server,
      listChanged: (list) => changed.add(list),
      serversChanged() {},
    });
    const opened = { owner, kinds: new Set<ListKind>(), changed, stop };
    missed.set(sessionId, opened);
    return opened;
  }

  return {
    sessions: missed,
    /** Records a list that the caller's session got. Callers without a session are not recorded. */
    note(kind: ListKind, caller: UpstreamCaller, view: View, isComplete: boolean): void {
      const { sessionId } = caller;
      if (sessionId === undefined) return;
      const known = missed.get(sessionId);
      if (isComplete) {
        known?.kinds.delete(kind);
        if (known?.kinds.size === 0) forget(sessionId);
        return;
      }
      // The session is notified on its stream instead.
      if (hub.hasStream(sessionId)) return;
      const { kinds, changed } = known ?? open(sessionId, caller, view);
      if (kinds.has(kind)) return;
      kinds.add(kind);
      // The missing list may have arrived in the meantime.
      const hasCome = view.listServers().every(({ lists }) => lists.peek(kind, caller));
      if (hasCome) changed.add(LIST_KINDS[kind].list);
    },
    /** The lists that have changed since. Each change is reported once. */
    take(sessionId: string): readonly ListName[] {
      const { kinds, changed } = missed.get(sessionId) ?? NOTHING;
      const lists = LIST_NAMES.filter(
        (list) => changed.has(list) && [...kinds].some((kind) => LIST_KINDS[kind].list === list),
      );
      changed.clear();
      return lists;
    },
    forget,
  };
}

const NOTHING = { kinds: new Set<ListKind>(), changed: new Set<ListName>() };
