// When the key set is fetched (§5.2): one fetch at a time, and few, however many callers want one.
import { type Clock, computePauseMs } from '../../platform/clock.ts';

export type RefreshOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly cause: unknown };

export interface KeySetRefresher {
  /** Fetches now, unless a fetch is running; its outcome decides when the next one is due. */
  refresh(): Promise<RefreshOutcome>;
  /** A fetch that begins after this call: it sees what the provider knows from now on. */
  refreshLater(): Promise<RefreshOutcome>;
  /** The fetch that is running now. */
  readonly running: Promise<RefreshOutcome> | undefined;
  /** When it fetches by itself again: epoch milliseconds; undefined while it does. */
  readonly nextAt: number | undefined;
  close(): void;
}

const REFRESH_EVERY_MS = 600_000;
/** However many unknown key ids arrive: at most one fetch in this time. */
const COOL_DOWN_MS = 2000;
/** A service without keys is not ready: it must notice soon that the provider is back. */
const BACK_OFF = { firstMs: 2 * COOL_DOWN_MS, longestMs: 10_000 };

/** What `load` throws is the cause of a failure. */
export function createKeySetRefresher(
  clock: Clock,
  load: () => Promise<void>,
  onOutcome: (outcome: RefreshOutcome) => void,
): KeySetRefresher {
  let lastStart = Number.NEGATIVE_INFINITY;
  let lastOutcome: RefreshOutcome | undefined;
  let failures = 0;
  let running: Promise<RefreshOutcome> | undefined;
  let next: Promise<RefreshOutcome> | undefined;
  let nextAt: number | undefined;
  let cancelRefresh = () => {};
  let isClosed = false;

  async function tryLoad(): Promise<RefreshOutcome> {
    lastStart = clock.monotonic();
    try {
      await load();
      return { ok: true };
    } catch (cause) {
      return { ok: false, cause };
    }
  }

  function refresh(): Promise<RefreshOutcome> {
    running ??= tryLoad().then((outcome) => {
      running = undefined;
      lastOutcome = outcome;
      // That it was ended by a stop is nobody's alarm.
      if (!isClosed) onOutcome(outcome);
      failures = outcome.ok ? 0 : failures + 1;
      cancelRefresh();
      const waitMs = outcome.ok ? REFRESH_EVERY_MS : computePauseMs(BACK_OFF, failures);
      nextAt = clock.now() + waitMs;
      if (!isClosed) cancelRefresh = clock.after(waitMs, refresh);
      return outcome;
    });
    return running;
  }

  return {
    refresh,
    refreshLater() {
      const sinceLast = clock.monotonic() - lastStart;
      if (lastOutcome?.ok === false && sinceLast < COOL_DOWN_MS) {
        return Promise.resolve(lastOutcome);
      }
      next ??= new Promise<void>((due) => {
        clock.after(Math.max(0, COOL_DOWN_MS - sinceLast), due);
      }).then(() => {
        next = undefined;
        return refresh();
      });
      return next;
    },
    get running() {
      return running;
    },
    get nextAt() {
      return running === undefined ? nextAt : undefined;
    },
    close() {
      isClosed = true;
      cancelRefresh();
    },
  };
}
