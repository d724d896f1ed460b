// §18.2: who is told when lists change.
import type { Clock } from '../../platform/clock.ts';
import type { ListName } from '../../protocol/list-kinds.ts';
import type { UpstreamCaller } from '../upstream.ts';
import type { Server } from './server.ts';

export interface ChangeHub {
  /** Until the result is called. */
  add(listener: ListListener): () => void;
  /** A list of the server has changed: for this audience, or for everybody. */
  announce(server: Server, list: ListName, audience: string | undefined): void;
  /** Servers have come or gone. */
  announceServers(): void;
}

export interface ListListener {
  readonly caller: UpstreamCaller;
  hears(server: Server): boolean;
  listChanged(list: ListName): void;
  serversChanged(): void;
}

const LISTS: readonly ListName[] = ['tools', 'prompts', 'resources'];

/** A server may say so a thousand times a second; each client hears of it once. */
const MIN_DISTANCE_MS = 1_000;

export function createChangeHub(clock: Clock): ChangeHub {
  const listeners = new Map<ListListener, (list: ListName) => void>();

  return {
    add(listener) {
      const tell = createThrottle(clock, (list) => {
        if (listeners.has(listener)) listener.listChanged(list);
      });
      listeners.set(listener, tell);
      return () => void listeners.delete(listener);
    },
    announce(server, list, audience) {
      for (const [listener, tell] of listeners) {
        if (!listener.hears(server)) continue;
        if (audience === undefined || audience === server.lists.getAudience(listener.caller))
          tell(list);
      }
    },
    announceServers() {
      for (const [listener, tell] of listeners) {
        listener.serversChanged();
        for (const list of LISTS) tell(list);
      }
    },
  };
}

/** At once, then at most once in a while; the last change is always told. */
function createThrottle(clock: Clock, tell: (list: ListName) => void) {
  const waiting = new Map<ListName, { hasChanged: boolean }>();

  return function tellInTime(list: ListName): void {
    const known = waiting.get(list);
    if (known) {
      known.hasChanged = true;
      return;
    }
    const state = { hasChanged: false };
    waiting.set(list, state);
    clock.after(MIN_DISTANCE_MS, () => {
      waiting.delete(list);
      if (state.hasChanged) tellInTime(list);
    });
    tell(list);
  };
}
