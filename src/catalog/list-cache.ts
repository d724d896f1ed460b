// §18.4: one list, served from memory while it is fetched anew.
import type { Clock } from '../platform/clock.ts';
import type { FetchedList } from './fetch-list.ts';

/**
 * Decides how long to wait for a server that has not listed yet. `told`: the client gets `list_changed` later. `untold`: it can
 * only list again. `forCall`: a call of a name that may be the server's.
 */
export type Patience = 'told' | 'untold' | 'forCall';

export type ListCache = ReturnType<typeof createListCache>;

interface ListSource {
  fetch(): Promise<FetchedList>;
  /** For how many milliseconds the first list is waited for. */
  countLeftMs(patience: Patience): number;
  /** A wait for the first list ended without it, so many milliseconds after the list was requested. */
  onWaitedInVain(ms: number): void;
  /** True if a list that has changed must not be served while the new one cannot be had. */
  isStrict(): boolean;
  /** The list is another than the one that was served last. */
  onChange(): void;
  /** Another list than before is kept, also where it is the first. */
  onOther(): void;
}

/** Milliseconds for which a changed list is waited for before the old one is served. */
const CHANGED_WAIT_MS = 15_000;
/** A server that takes longer is not waited for again so soon, however often it says that its list has changed. */
const QUICK_MS = 1_000;
const WAIT_AGAIN_MS = 300_000;
/** From one look to the next; twice as long after each that found the same list. */
const LOOK_MS = 1_000;
const MAX_LOOK_MS = 60_000;
/** Nobody asks again so soon after a failure. */
const RETRY_MS = 1_000;

interface Flight {
  /** Those that came before it was asked for; undefined while it waits for the one before it. */
  reasons: number | undefined;
  done: Promise<void>;
  readonly startedAt: number;
}

export function createListCache(clock: Clock, source: ListSource) {
  const { fetch, isStrict, onChange } = source;
  let list: FetchedList | undefined;
  let expiresAt = 0;
  let retryAt = Number.NEGATIVE_INFINITY;
  let wasMissed = false;
  /** Counts the changes; a list counts as current if none came after it was asked for. */
  let changes = 0;
  let changesSeen = 0;
  /** Counts what a list must have been asked for after: changes, and what may be some. */
  let reasons = 0;
  let changedWait: { readonly time: WaitingTime; readonly startedAt: number } | undefined;
  let flight: Flight | undefined;
  let lookEveryMs = LOOK_MS;
  let nextLookAt = Number.NEGATIVE_INFINITY;
  let isLookPlanned = false;

  const isCurrent = () => list !== undefined && changesSeen === changes;

  function getServable(): FetchedList | undefined {
    const servable = isCurrent() || !isStrict() ? list : undefined;
    if (servable === undefined) wasMissed = true;
    return servable;
  }

  const waitedMs = () =>
    changedWait === undefined ? 0 : clock.monotonic() - changedWait.startedAt;

  async function run(own: Flight, before: Promise<void> | undefined): Promise<void> {
    await before;
    const changesBefore = changes;
    own.reasons = reasons;
    try {
      const fetched = await fetch();
      const isOther = list?.fingerprint !== fetched.fingerprint;
      const isNews = wasMissed || (isOther && list !== undefined);
      // The same object as long as it is the same list: what was made of it is found by it.
      if (isOther) list = fetched;
      changesSeen = changesBefore;
      expiresAt = clock.monotonic() + fetched.ttlMs;
      wasMissed = false;
      if (waitedMs() < QUICK_MS) changedWait = undefined;
      if (isNews) onChange();
      if (isOther) source.onOther();
    } catch {
      // Whoever fetches says why; here is only known that nothing came.
      retryAt = clock.monotonic() + RETRY_MS;
    } finally {
      if (flight === own) flight = undefined;
    }
  }

  /** One at a time, and one that waits: of those who wait for the same list, all wait for the same answer. */
  function refresh(): Promise<void> {
    if (flight === undefined || (flight.reasons !== undefined && flight.reasons !== reasons)) {
      const own: Flight = {
        reasons: undefined,
        done: Promise.resolve(),
        startedAt: clock.monotonic(),
      };
      own.done = run(own, flight?.done);
      flight = own;
    }
    return flight.done;
  }

  async function look(): Promise<void> {
    isLookPlanned = false;
    nextLookAt = clock.monotonic() + lookEveryMs;
    const before = list?.fingerprint;
    await refresh();
    const isSame = list?.fingerprint === before;
    lookEveryMs = isSame ? Math.min(2 * lookEveryMs, MAX_LOOK_MS) : LOOK_MS;
  }

  async function wait(patience: Patience): Promise<FetchedList | undefined> {
    changedWait ??= { time: createWaitingTime(clock), startedAt: clock.monotonic() };
    const leftMs =
      list === undefined ? source.countLeftMs(patience) : changedWait.time.left(CHANGED_WAIT_MS);
    await waitAtMost(clock, leftMs, refresh());
    if (list === undefined && flight !== undefined)
      source.onWaitedInVain(clock.monotonic() - flight.startedAt);
    return getServable();
  }

  return {
    /**
     * At once where there is one, else when it has come. Undefined while there is none: the server failed, or takes
     * longer than is waited for.
     */
    load(patience: Patience): FetchedList | undefined | Promise<FetchedList | undefined> {
      const now = clock.monotonic();
      if (isCurrent()) {
        if (now >= Math.max(expiresAt, retryAt)) void refresh();
        return list;
      }
      return now < retryAt ? getServable() : wait(patience);
    },
    /** The list at hand, however old. */
    peek: () => list,
    /** It has changed: it is asked for before anybody gets it again. */
    invalidate() {
      changes += 1;
      reasons += 1;
      if (waitedMs() >= WAIT_AGAIN_MS) changedWait = undefined;
      retryAt = Number.NEGATIVE_INFINITY;
    },
    /** It may have changed, or can be had now: it is asked for at once, and nobody waits. */
    refresh() {
      retryAt = Number.NEGATIVE_INFINITY;
      void refresh();
    },
    /**
     * It may have changed, says somebody who could say so without end: it is asked for soon, and what there is goes on being
     * served. The less often that was true, the later.
     */
    lookAgain() {
      reasons += 1;
      if (isLookPlanned) return;
      const waitMs = nextLookAt - clock.monotonic();
      isLookPlanned = waitMs > 0;
      if (isLookPlanned) clock.after(waitMs, () => void look());
      else void look();
    },
  };
}

/** Resolves when the work has ended, in whichever way, or after `ms` milliseconds. How it fails is left to others. */
export function waitAtMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = ms > 0 ? clock.after(ms, resolve) : resolve;
    const end = () => {
      cancel();
      resolve();
    };
    work.then(end, end);
    if (ms <= 0) resolve();
  });
}

/** The time that a first answer may be waited for, shared by all who wait for it together. */
export type WaitingTime = ReturnType<typeof createWaitingTime>;

export function createWaitingTime(clock: Clock) {
  let startedAt: number | undefined;
  return {
    /** Milliseconds that are left of so many; the time begins with the first call. */
    left(ms: number): number {
      startedAt ??= clock.monotonic();
      return Math.max(0, startedAt + ms - clock.monotonic());
    },
    /** There is a reason to wait again. */
    restart(): void {
      startedAt = undefined;
    },
  };
}
