// §18.4: one list, served from memory while it is being refetched.
import type { Clock } from '../platform/clock.ts';
import type { FetchedList } from './fetch-list.ts';

/**
 * Determines the time to wait for a server that has not listed its entries yet. `told`: the client is notified by `list_changed`
 * later. `untold`: the client can only list again. `forCall`: for a call with a name that may be the server's.
 */
export type Patience = 'told' | 'untold' | 'forCall';

interface ListSource {
  fetch(): Promise<FetchedList>;
  /** Milliseconds that are left for waiting for the first list. */
  countLeftMs(patience: Patience): number;
  /** Called when a wait for the first list ended without it, this many milliseconds after the list was requested. */
  onWaitedInVain(ms: number): void;
  /** True if a list that has changed must not be served while the new one is unavailable. */
  isStrict(): boolean;
  /** Called when the list differs from the one that was last served. */
  onChange(): void;
  /** Called when a different list is kept, including the first one. */
  onOther(): void;
}

/** Milliseconds to wait for a changed list before the old one is served. */
const CHANGED_WAIT_MS = 15_000;
/** If a server takes longer, callers do not wait for it again for this long, however often it announces a change. */
const QUICK_MS = 1_000;
const WAIT_AGAIN_MS = 300_000;
/** Backoff between two checks: doubled after each one that found the same list. */
const LOOK_MS = 1_000;
const MAX_LOOK_MS = 60_000;
/** After a failure, no request is sent for this long. */
const RETRY_MS = 1_000;

interface Flight {
  /** The value of `reasons` when the flight began; undefined while it waits for the previous flight. */
  reasons: number | undefined;
  done: Promise<void>;
  readonly startedAt: number;
}

export class ListCache {
  /** The cached list, however old. */
  list: FetchedList | undefined = undefined;
  private readonly clock: Clock;
  private readonly source: ListSource;
  private expiresAt = 0;
  private retryAt = Number.NEGATIVE_INFINITY;
  private wasMissed = false;
  /** Counts announced changes. A list is current if none came after it was requested. */
  private changes = 0;
  private changesSeen = 0;
  /** Counts the reasons to request the list again: changes, and possible changes. */
  private reasons = 0;
  private changedWait: { readonly time: WaitingTime; readonly startedAt: number } | undefined =
    undefined;
  private flight: Flight | undefined = undefined;
  private lookEveryMs = LOOK_MS;
  private nextLookAt = Number.NEGATIVE_INFINITY;
  private isLookPlanned = false;

  constructor(clock: Clock, source: ListSource) {
    this.clock = clock;
    this.source = source;
  }

  /** The list, if no change to it has been announced. An expired list is refetched in the background. */
  findCurrent(): FetchedList | undefined {
    if (this.list === undefined || this.changesSeen !== this.changes) return undefined;
    const now = this.clock.monotonic();
    if (now >= this.expiresAt && now >= this.retryAt) void this.fetchAnew();
    return this.list;
  }

  /**
   * Resolves at once if there is a list, otherwise when it arrives. Undefined if there is none: the server failed, or takes longer
   * than the caller waits.
   */
  async load(patience: Patience): Promise<FetchedList | undefined> {
    const current = this.findCurrent();
    if (current !== undefined) return current;
    if (this.clock.monotonic() >= this.retryAt) await this.wait(patience);
    const isCurrent = this.changesSeen === this.changes;
    const servable = isCurrent || !this.source.isStrict() ? this.list : undefined;
    if (servable === undefined) this.wasMissed = true;
    return servable;
  }

  /** Called when the list has changed: it is requested before any caller gets it again. */
  invalidate(): void {
    this.changes += 1;
    this.reasons += 1;
    if (this.countWaitedMs() >= WAIT_AGAIN_MS) this.changedWait = undefined;
    this.retryAt = Number.NEGATIVE_INFINITY;
  }

  /** Called when the list may have changed, or may be available now: it is requested at once, without waiting. */
  refresh(): void {
    this.retryAt = Number.NEGATIVE_INFINITY;
    void this.fetchAnew();
  }

  /**
   * Called when the list may have changed, according to a caller who could claim so endlessly. The list is requested soon, and the
   * cached one is served in the meantime. The more often such claims were false, the longer the delay.
   */
  lookAgain(): void {
    this.reasons += 1;
    if (this.isLookPlanned) return;
    const waitMs = this.nextLookAt - this.clock.monotonic();
    this.isLookPlanned = waitMs > 0;
    if (this.isLookPlanned) this.clock.after(waitMs, () => void this.look());
    else void this.look();
  }

  private countWaitedMs(): number {
    return this.changedWait === undefined ? 0 : this.clock.monotonic() - this.changedWait.startedAt;
  }

  private async wait(patience: Patience): Promise<void> {
    const { clock, source } = this;
    this.changedWait ??= { time: new WaitingTime(clock), startedAt: clock.monotonic() };
    const leftMs =
      this.list === undefined
        ? source.countLeftMs(patience)
        : this.changedWait.time.left(CHANGED_WAIT_MS);
    await waitAtMost(clock, leftMs, this.fetchAnew());
    if (this.list === undefined && this.flight !== undefined)
      source.onWaitedInVain(clock.monotonic() - this.flight.startedAt);
  }

  /** Single flight, with at most one more flight waiting: concurrent callers who want the same list share one request. */
  private fetchAnew(): Promise<void> {
    const { flight } = this;
    if (flight !== undefined && (flight.reasons === undefined || flight.reasons === this.reasons))
      return flight.done;
    const own: Flight = {
      reasons: undefined,
      done: Promise.resolve(),
      startedAt: this.clock.monotonic(),
    };
    own.done = this.run(own, flight?.done);
    this.flight = own;
    return own.done;
  }

  private async run(own: Flight, before: Promise<void> | undefined): Promise<void> {
    await before;
    const changesBefore = this.changes;
    own.reasons = this.reasons;
    try {
      const fetched = await this.source.fetch();
      const isOther = this.list?.fingerprint !== fetched.fingerprint;
      const isNews = this.wasMissed || (isOther && this.list !== undefined);
      // Keeps the same object as long as the list is the same, since everything derived from the list is looked up by it.
      if (isOther) this.list = fetched;
      this.changesSeen = changesBefore;
      this.expiresAt = this.clock.monotonic() + fetched.ttlMs;
      this.wasMissed = false;
      if (this.countWaitedMs() < QUICK_MS) this.changedWait = undefined;
      if (isNews) this.source.onChange();
      if (isOther) this.source.onOther();
    } catch {
      // The reason is logged by the source.
      this.retryAt = this.clock.monotonic() + RETRY_MS;
    } finally {
      if (this.flight === own) this.flight = undefined;
    }
  }

  private async look(): Promise<void> {
    this.isLookPlanned = false;
    this.nextLookAt = this.clock.monotonic() + this.lookEveryMs;
    const before = this.list?.fingerprint;
    await this.fetchAnew();
    const isSame = this.list?.fingerprint === before;
    this.lookEveryMs = isSame ? Math.min(2 * this.lookEveryMs, MAX_LOOK_MS) : LOOK_MS;
  }
}

/** Resolves when the work has ended, successfully or not, or after `ms` milliseconds. */
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

/** A limited time to wait for a first answer, shared by all callers who wait for it together. */
export class WaitingTime {
  private readonly clock: Clock;
  private startedAt: number | undefined = undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Milliseconds left of `ms`, which begin with the first call. */
  left(ms: number): number {
    this.startedAt ??= this.clock.monotonic();
    return Math.max(0, this.startedAt + ms - this.clock.monotonic());
  }

  /** Called when there is a reason to wait again. */
  restart(): void {
    this.startedAt = undefined;
  }
}
