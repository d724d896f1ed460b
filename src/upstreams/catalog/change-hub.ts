// §18.2: who is told when lists change.

import type { Clock } from '../../platform/clock.ts';
import { createCountedBus } from '../../platform/counted-bus.ts';
import type { Log } from '../../platform/log.ts';
import { createThrottle } from '../../platform/throttle.ts';
import { LIST_NAMES, type ListName } from '../../protocol/list-kinds.ts';
import type { UpstreamCaller } from '../upstream.ts';
import type { Server } from './server.ts';

export interface ChangeHub {
  /** Until the result is called. */
  add(listener: ListListener): () => void;
  /** A list of the server has changed: for this audience, or for everybody. */
  announce(server: Server, list: ListName, audience: string | undefined): void;
  /** The same for some callers. */
  announceTo(server: Server, list: ListName, isAbout: (caller: UpstreamCaller) => boolean): void;
  /** Servers have come or gone. */
  announceServers(): void;
}

export interface ListListener {
  readonly caller: UpstreamCaller;
  hears(server: Server): boolean;
  listChanged(list: ListName): void;
  serversChanged(): void;
}

/** A server may say so a thousand times a second; each client hears of it once. */
const MIN_DISTANCE_MS = 1_000;
/** All listen to all servers: which they hear changes with the configuration file. */
const ALL = 'all';

export function createChangeHub({
  clock,
  log,
}: {
  readonly clock: Clock;
  readonly log: Log;
}): ChangeHub {
  const bus = createCountedBus<typeof ALL, ListListener>({
    onError: (cause) => log.error('A listener failed; please report this.', { cause }),
  });

  return {
    add(listener) {
      let isListening = true;
      const listChanged = createThrottle<ListName>(clock, MIN_DISTANCE_MS, (list) => {
        if (isListening) listener.listChanged(list);
      });
      const stop = bus.subscribe(ALL, { ...listener, listChanged });
      return () => {
        isListening = false;
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
