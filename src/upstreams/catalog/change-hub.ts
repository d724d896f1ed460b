// §18.2: who is told when lists change.

import { createCountedBus } from '../../platform/counted-bus.ts';
import { createThrottle } from '../../platform/throttle.ts';
import { LIST_NAMES, type ListName } from '../../protocol/list-kinds.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { UpstreamCaller } from '../upstream.ts';
import type { Server } from './server.ts';

export interface ChangeHub {
  /** Until the result is called. */
  add(listener: ListListener): () => void;
  /** True if the session has a stream at this replica on which it gets changes. */
  hasStream(sessionId: string): boolean;
  /** A list of the server has changed: for this audience, or for everybody. */
  announce(server: Server, list: ListName, audience: string | undefined): void;
  /** The same for some callers. */
  announceTo(server: Server, list: ListName, isAbout: (caller: UpstreamCaller) => boolean): void;
  /** Servers have come or gone. */
  announceServers(): void;
}

export interface ListListener {
  readonly caller: UpstreamCaller;
  /** True if the client gets a notification at once. */
  readonly isStream: boolean;
  hears(server: Server): boolean;
  listChanged(list: ListName): void;
  serversChanged(): void;
}

/** A server may say so a thousand times a second; each client hears of it once. */
const MIN_DISTANCE_MS = 1_000;
/** All listen to all servers: which they hear changes with the configuration file. */
const ALL = 'all';

export function createChangeHub({ clock, log }: Pick<Runtime, 'clock' | 'log'>): ChangeHub {
  const bus = createCountedBus<typeof ALL, ListListener>({
    onError: (cause) => log.error('A listener failed; please report this.', { cause }),
  });

  /** Sessions with such a listener, and how many they have. */
  const streams = new Map<string, number>();

  function countStreams({ caller, isStream }: ListListener, change: 1 | -1): void {
    const { sessionId } = caller;
    if (!isStream || sessionId === undefined) return;
    const count = (streams.get(sessionId) ?? 0) + change;
    if (count === 0) streams.delete(sessionId);
    else streams.set(sessionId, count);
  }

  return {
    hasStream: (sessionId) => streams.has(sessionId),
    add(listener) {
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
    announce(server, list, audience) {
      bus.publish(ALL, ({ caller, hears, listChanged }) => {
        const isForAll = audience === undefined || audience === server.lists.getAudience(caller);
        if (isForAll && hears(server)) listChanged(list);
      });
    },
    announceTo(server, list, isAbout) {
      bus.publish(ALL, ({ caller, hears, listChanged }) => {
        if (isAbout(caller) && hears(server)) listChanged(list);
      });
    },
    announceServers() {
      bus.publish(ALL, ({ serversChanged, listChanged }) => {
        // The client is told whatever an author's catalogue, which is listened to anew, throws.
        for (const list of LIST_NAMES) listChanged(list);
        serversChanged();
      });
    },
  };
}
