// §24: work that one of all replicas does at a time.

import { generateSecret } from '../platform/ids.ts';
import { createSingleFlight } from '../platform/single-flight.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildConnectionLockKey } from '../store/keys.ts';
import type { KeptConnections } from './kept-connections.ts';

export interface ExclusiveWork<Result> {
  /** Names the work. */
  readonly hash: string;
  /**
   * Resolves to the result that there is without the work; undefined where it is needed. `isElsewhere` while another replica does it: then whatever is
   * good for the moment will do.
   */
  look(isElsewhere: boolean): Promise<Result | undefined>;
  run(): Promise<Result>;
}

/** Longer than the work may take: a replica that holds the lock for longer has died. */
const LOCK_SECONDS = 45;
/** A call has no longer to wait. */
const WAIT_MS = 20_000;
const POLL_MS = 100;

/** Another replica was at it for longer than anybody waits. */
export class StillUnderWay extends Error {
  override readonly name = 'StillUnderWay';
}

export function createRunExclusively<Result>(
  { store, clock }: Runtime,
  locks: KeptConnections['changes'],
) {
  /** For this process: of many that wait for the same, one asks the store how far it is. */
  const running = createSingleFlight<string, Result>();

  async function runInTurn({ hash, look, run }: ExclusiveWork<Result>): Promise<Result> {
    const key = buildConnectionLockKey(hash);
    const lock = generateSecret();
    const deadline = clock.monotonic() + WAIT_MS;
    let holder: string | undefined;
    let isReleased = false;
    let wake = () => {};
    const stopListening = locks.onRelease(hash, () => {
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
      // Another may have done it between the look and the lock.
      return (await look(false)) ?? (await run());
    } finally {
      await store.compareAndDelete(key, lock).catch(() => {});
      locks.announceRelease(hash);
    }
  }

  /** @throws StillUnderWay, StoreUnavailable, and what the work throws. */
  return (work: ExclusiveWork<Result>) => running.run(work.hash, () => runInTurn(work));
}
