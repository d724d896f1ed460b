// §8.7: RATE_LIMIT_COUNTING=leased. The shares of windows that this process has leased, so that it needs Redis only for the next
// share.
import { createSizedMap } from '../../platform/bounded-map.ts';
import { createSecondTimer, type Moment, takeMoment } from '../../platform/clock.ts';
import { CAPACITY } from '../../platform/memory/capacity.ts';
import type { LimitWindow, WindowVerdict } from '../store.ts';
import type { GrantedPermits, WantedPermits } from './admission-request.ts';
import type { RedisAccess } from './command-runner.ts';
import {
  MIN_PERMITS,
  PART_OF_MAX,
  returnPermits,
  toShareLife,
  type UnusedPermits,
} from './leased-permits.ts';

export type Shares = ReturnType<typeof createShares>;

export interface TakenPermits {
  /** The verdict of the first window, if a share admitted the request there. */
  readonly verdict: WindowVerdict | undefined;
  /** Identifies the request in that window, for `uncountRequest`. */
  readonly entry: string | undefined;
  /** Windows that Redis has to count in. */
  readonly missing: readonly LimitWindow[];
  readonly shares: readonly Share[];
}

interface Share {
  /** Unique among shares. */
  readonly entry: string;
  readonly window: LimitWindow;
  readonly granted: GrantedPermits;
  /** The moment before the share was requested from Redis. */
  readonly asked: Moment;
  readonly grantedAt: number;
  left: number;
}

/** A window that this process counts requests in. */
interface LeasedWindow {
  /** Requests in the current period of a share's life, which began at `since` (monotonic), and in the previous one. */
  since: number;
  current: number;
  previous: number;
  /** The last share, used up or not. */
  share: Share | undefined;
  /** A request for the next share is in flight. */
  isAsked: boolean;
  /** The number of lost replies: their permits may count until `lostUntil` (monotonic), although no process has them. */
  lost: number;
  lostUntil: number;
}

/** Windows whose shares one command returns. */
const MAX_RETURNED = 500;

export function createShares({ commands, clock, isCluster }: RedisAccess) {
  const windows = createSizedMap<string, LeasedWindow>({
    maxSize: CAPACITY.leasedWindows,
    // Without its entry, the share could no longer be found.
    onRemove: ({ share }) => share && held.has(share) && end(share),
  });
  /** Shares whose life was not over at the last check. */
  const held = new Set<Share>();
  let unused: UnusedPermits[] = [];
  let serial = 0;

  const startSweeping = createSecondTimer(clock, {
    isNeeded: () => held.size > 0,
    task() {
      const now = takeMoment(clock);
      for (const share of held) if (isOver(share, now)) end(share);
    },
  });

  function end(share: Share) {
    held.delete(share);
    const { left: permits, window, granted } = share;
    share.left = 0;
    if (permits === 0) return;
    if (unused.push({ key: window.key, end: granted.end, permits }) === 1)
      queueMicrotask(returnUnused);
  }

  /**
   * Returns all permits collected in one turn by one command. The command is sent before a request that comes at the same time is
   * counted, so that a process without competitors is never refused because of its own permits. None is sent twice. Never
   * rejects: lost permits expire.
   */
  async function returnUnused() {
    const returned = unused;
    unused = [];
    const sent: Promise<void>[] = [];
    // On a cluster, windows are in different slots, so each is returned separately.
    const maxTogether = isCluster ? 1 : MAX_RETURNED;
    while (returned.length > 0) {
      const together = returned.splice(0, maxTogether);
      sent.push(commands.run((client) => returnPermits(client, together)));
    }
    await Promise.allSettled(sent);
  }

  /** Undefined if Redis has to count. A share for a different limit is ended. */
  function findShare(leased: LeasedWindow, window: LimitWindow, now: Moment) {
    const { share } = leased;
    if (share === undefined || share.left === 0) return undefined;
    const { max, windowMs } = share.window;
    if (!isOver(share, now) && max === window.max && windowMs === window.windowMs) return share;
    end(share);
    return undefined;
  }

  /** Counts one more request in the current period of a share's life, or in the next one. */
  function countNeed({ key, windowMs }: LimitWindow, now: number): LeasedWindow {
    let leased = windows.get(key);
    if (leased === undefined) {
      const begun = { since: now, current: 0, previous: 0, lost: 0, lostUntil: now };
      leased = { ...begun, share: undefined, isAsked: false };
      windows.set(key, leased);
    }
    const life = toShareLife(windowMs);
    const lives = Math.floor((now - leased.since) / life);
    if (lives > 0) {
      leased.previous = lives === 1 ? leased.current : 0;
      leased.current = 0;
      leased.since += lives * life;
    }
    leased.current += 1;
    return leased;
  }

  function add(leased: LeasedWindow, window: LimitWindow, granted: GrantedPermits, asked: Moment) {
    leased.isAsked = false;
    if (granted.permits === 0) return;
    if (leased.share !== undefined) end(leased.share);
    const entry = `shared:${serial++}`;
    const { permits: left } = granted;
    const share = { entry, window, granted, asked, grantedAt: clock.monotonic(), left };
    leased.share = share;
    held.add(share);
    if (windows.peek(window.key) === leased) startSweeping();
    else end(share);
  }

  return {
    /** Takes one permit from each window that has one left here. */
    take(wanted: readonly LimitWindow[]): TakenPermits {
      const now = takeMoment(clock);
      const shares: Share[] = [];
      const missing: LimitWindow[] = [];
      for (const window of wanted) {
        const leased = countNeed(window, now.monotonic);
        const share = findShare(leased, window, now);
        if (share === undefined) missing.push(window);
        else {
          share.left -= 1;
          shares.push(share);
        }
      }
      const isFirstShared = wanted.length > 0 && missing[0] !== wanted[0];
      const first = isFirstShared ? shares[0] : undefined;
      return { verdict: first && createVerdict(first, now), entry: first?.entry, missing, shares };
    },

    /**
     * Puts back permits that were taken but not needed. Permits of an ended share are not put back; they expire.
     */
    giveBack({ shares }: TakenPermits) {
      for (const share of shares) if (held.has(share)) share.left += 1;
    },

    /** Like `uncountRequest`; returns false if no share admitted the request. */
    uncount(key: string, entry: string) {
      const share = windows.peek(key)?.share;
      if (share?.entry === entry && held.has(share)) share.left += 1;
      return entry.startsWith('shared:');
    },

    /** True if this process could admit one more request in this window. */
    hasLeft(window: LimitWindow) {
      const leased = windows.peek(window.key);
      return leased !== undefined && findShare(leased, window, takeMoment(clock)) !== undefined;
    },

    /** The permits to request from Redis while it counts in these windows, and the handlers of its reply. */
    ask(counted: readonly LimitWindow[]) {
      const asked = takeMoment(clock);
      const wanted: (WantedPermits & { readonly leased: LeasedWindow })[] = [];
      for (const window of counted) {
        const leased = windows.peek(window.key);
        if (leased === undefined || leased.isAsked || findShare(leased, window, asked)) continue;
        // However often replies get lost, all permits wasted this way amount to less than two shares.
        const lost = countLost(leased, asked.monotonic);
        // Includes the part of the previous period that is less than a life ago.
        const part = (asked.monotonic - leased.since) / toShareLife(window.windowMs);
        const estimate = Math.floor(leased.current + leased.previous * Math.max(0, 1 - part));
        const most = Math.min(estimate, window.max * PART_OF_MAX);
        const need = Math.floor(most / 2 ** lost);
        if (need < MIN_PERMITS) continue;
        leased.isAsked = true;
        wanted.push({ window, permits: need, leased });
      }
      return {
        permits: wanted,
        settle(granted: readonly GrantedPermits[]) {
          for (const [at, { leased, window }] of wanted.entries()) {
            const grantedHere = granted[at];
            if (grantedHere) add(leased, window, grantedHere, asked);
          }
        },
        /** There was no reply. If the request was sent, the unknown permits expire. */
        fail(isSent: boolean) {
          const now = clock.monotonic();
          for (const { leased, window } of wanted) {
            leased.isAsked = false;
            if (!isSent) continue;
            leased.lost = countLost(leased, now) + 1;
            leased.lostUntil = now + window.windowMs + toShareLife(window.windowMs);
          }
        },
      };
    },

    /** Returns the remaining permits. Never rejects. */
    async close() {
      for (const share of held) end(share);
      await returnUnused();
    },
  };
}

/** Checks both clocks: one may be set, and the other stops while the computer sleeps. */
function isOver({ window, asked }: Share, now: Moment) {
  const life = toShareLife(window.windowMs);
  return now.monotonic - asked.monotonic >= life || Math.abs(now.now - asked.now) >= life;
}

/** Derived from Redis's verdict when the share was leased. If the oldest entry has left since, the next one leaves soon. */
function createVerdict({ window, granted, grantedAt, left }: Share, now: Moment): WindowVerdict {
  const sinceReset = now.monotonic - grantedAt - granted.resetInMs;
  return {
    isAdmitted: true,
    scope: window.scope,
    limit: window.max,
    remaining: granted.remaining + left,
    resetAt: granted.resetAt + Math.max(0, sinceReset),
    resetInMs: Math.max(0, -sinceReset),
  };
}

// Counts the lost replies whose permits may still count.

const countLost = ({ lost, lostUntil }: LeasedWindow, now: number) => (now < lostUntil ? lost : 0);
