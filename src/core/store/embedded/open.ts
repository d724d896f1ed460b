// The embedded store: lmdb in DATA_DIR. What was answered is on disk before the answer.
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { createListeners } from '../listeners.ts';
import type { Store } from '../store.ts';
import { openDataFolder } from './folder.ts';
import { createEmbeddedSessions } from './sessions.ts';
import { createSlidingWindows } from './sliding-windows.ts';
import { createEmbeddedValues } from './values.ts';

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** @throws DataDirError when the folder is in use or cannot be written. */
export async function openEmbeddedStore(options: EmbeddedOptions): Promise<Store> {
  const { sessionKeyPrefix, clock, log } = options;
  const { close, ...folder } = await openDataFolder(options.dataDir);
  const { sweep: sweepValues, ...values } = createEmbeddedValues({ ...folder, clock });
  const { readSessionSync, ...sessions } = createEmbeddedSessions({
    ...folder,
    sessionKeyPrefix,
    clock,
  });
  const slidingWindows = createSlidingWindows();
  /** One process per DATA_DIR: all listeners are here. */
  const listeners = createListeners(log);

  return {
    ...values,
    ...sessions,

    async countRequestAndReadSession(windows, sessionId) {
      const now = clock.now();
      const verdict = slidingWindows.countRequest(windows, now);
      return {
        verdict,
        entry: verdict?.isAdmitted ? String(now) : undefined,
        session: sessionId === undefined ? undefined : readSessionSync(sessionId),
      };
    },
    async uncountRequest(key, entry) {
      slidingWindows.uncountRequest(key, Number(entry));
    },

    async sweepSessions() {
      slidingWindows.sweep(clock.now());
      await sweepValues();
      return sessions.sweepSessions();
    },

    async publish(channel, message) {
      folder.ensureOpen();
      setImmediate(listeners.prepareDelivery(channel), message);
    },
    subscribe: listeners.add,

    async ping() {},
    close() {
      listeners.clear();
      return close();
    },
  };
}
