// §24: distributed single flight: one of all replicas does the work at a time.

import { generateSecret } from '../platform/ids.ts';
import { createSingleFlight } from '../platform/single-flight.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildConnectionLockKey } from '../store/keys.ts';
import type { KeptConnections } from './kept-connections.ts';

interface ExclusiveWork<Result> {
  /** Names the work. */
  readonly hash: string;
  /**
   * Resolves to a result that is available without the work; undefined if the work is needed. `isElsewhere` is true while another
   * replica does it, in which case any result that is valid at the moment is enough.
   */
  look(isElsewhere: boolean): Promise<Result | undefined>;
  run(): Promise<Result>;
}

/** Exceeds the duration of the work: a replica that holds the lock longer has died. */
const LOCK_SECONDS = 45;
/** Timeout of a waiting call. */
const WAIT_MS = 20_000;
const POLL_MS = 100;

/** Another replica took longer than any call waits. */
export class StillUnderWay extends Error {
  override readonly name = 'StillUnderWay';
}

export function createRunExclusively<Result>(
  { store, clock }: Runtime,
  locks: KeptConnections['changes'],
) {
  /** Single flight within this process: one of the waiting callers polls the store. */
  const running = createSingleFlight<string, Result>();

  async function runInTurn({ hash, look, run }: ExclusiveWork<Result>): Promise<Result> {
    const key = buildConnectionLockKey(hash);
    const lock = generateSecret();
    const deadline = clock.monotonic() + WAIT_MS;
    let holder: string | undefined;
    let isReleased = false;
    let wake = () => {};
    const stopListening = locks.onRelease((released) => {
      if (released !== hash) return;
      isReleased = true;
      wake();
    });
    try {
      for (;;) {
        const found = await look(holder !== undefined);
        if (found !== undefined) return found;
        isReleased = false;
        holder = await store.getOrSet(key, lock, LOCK_SECONDS);
        if (holder === lock) break;
        if (!isReleased)
          await new Promise<void>((resolve) => {
            const cancel = clock.after(POLL_MS, resolve);
            wake = () => {
              cancel();
              resolve();
            };
          });
        if (clock.monotonic() >= deadline)
          throw new StillUnderWay('another replica has been at it for too long');
      }
    } finally {
      stopListening();
    }
    try {
      // Another replica may have done it between the look and the lock.
      return (await look(false)) ?? (await run());
    } finally {
      await store.compareAndDelete(key, lock).catch(() => {});
      locks.announceRelease(hash);
    }
  }

  /** @throws StillUnderWay, StoreUnavailable, and errors of the work. */
  return (work: ExclusiveWork<Result>) => running.run(work.hash, () => runInTurn(work));
}
