// §18.4: sessions that got a list in which a server was missing. Once that has come they are told, in the answer to their next
// call: most have no stream of their own.

import { LIST_KINDS, LIST_NAMES, type ListKind, type ListName } from '../../protocol/list-kinds.ts';
import { nameOwner } from '../../store/owner.ts';
import type { UpstreamCaller } from '../upstream.ts';
import type { ChangeHub } from './change-hub.ts';
import type { View } from './view.ts';

export interface MissedLists {
  /** Notes a list that the caller's session got; callers without a session are not kept. */
  note(kind: ListKind, caller: UpstreamCaller, view: View, isComplete: boolean): void;
  /** Those that have changed since. Each change is told once. */
  take(sessionId: string): readonly ListName[];
  forget(sessionId: string): void;
}

/** The oldest are forgotten first: their clients see what is new when they list again. */
const MAX_SESSIONS = 1_000;
const MAX_OF_USER = 20;

interface Missed {
  /** Undefined without authentication: then nothing is counted per user. */
  readonly owner: string | undefined;
  /** Of which it has no complete list yet. */
  readonly kinds: Set<ListKind>;
  readonly changed: Set<ListName>;
  stop(): void;
}

export function createMissedLists(hub: ChangeHub): MissedLists {
  /** Keyed by session; the oldest first. */
  const missed = new Map<string, Missed>();

  function forget(sessionId: string): void {
    missed.get(sessionId)?.stop();
    missed.delete(sessionId);
  }

  function open(sessionId: string, caller: UpstreamCaller, view: View): Missed {
    const owner = caller.user && nameOwner(caller.user);
    makeRoom(owner);
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

  function makeRoom(owner: string | undefined): void {
    const own = owner === undefined ? [] : [...missed].filter(([, one]) => one.owner === owner);
    const [oldest] = missed.size >= MAX_SESSIONS ? missed.keys() : [];
    const [oldestOwn] = own.length >= MAX_OF_USER ? own.map(([sessionId]) => sessionId) : [];
    const dropped = oldestOwn ?? oldest;
    if (dropped !== undefined) forget(dropped);
  }

  return {
    note(kind, caller, view, isComplete) {
      const { sessionId } = caller;
      if (sessionId === undefined) return;
      const known = missed.get(sessionId);
      if (isComplete) {
        known?.kinds.delete(kind);
        if (known?.kinds.size === 0) forget(sessionId);
        return;
      }
      // It gets the notification there.
      if (hub.hasStream(sessionId)) return;
      const { kinds, changed } = known ?? open(sessionId, caller, view);
      if (kinds.has(kind)) return;
      kinds.add(kind);
      // It may have come in the moment since the list was made.
      const hasCome = view.listServers().every(({ lists }) => lists.peek(kind, caller));
      if (hasCome) changed.add(LIST_KINDS[kind].list);
    },
    take(sessionId) {
      const known = missed.size === 0 ? undefined : missed.get(sessionId);
      if (known === undefined || known.changed.size === 0) return NONE;
      const { kinds, changed } = known;
      const lists = LIST_NAMES.filter(
        (list) => changed.has(list) && [...kinds].some((kind) => LIST_KINDS[kind].list === list),
      );
      changed.clear();
      return lists;
    },
    forget,
  };
}

const NONE: readonly ListName[] = [];
