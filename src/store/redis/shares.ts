// §8.7: RATE_LIMIT_COUNTING=leased. What this process has taken of windows in advance, so that it asks Redis for the next
// share only.
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
  /** That of the first window, where a share let the request in. */
  readonly verdict: WindowVerdict | undefined;
  /** Stands for the request there, for `uncountRequest`. */
  readonly entry: string | undefined;
  /** Those in which Redis has to count. */
  readonly missing: readonly LimitWindow[];
  readonly shares: readonly Share[];
}

interface Share {
  /** No other share has it. */
  readonly entry: string;
  readonly window: LimitWindow;
  readonly granted: GrantedPermits;
  /** Before Redis was asked for it. */
  readonly asked: Moment;
  readonly grantedAt: number;
  left: number;
}

/** A window in which requests of this process count. */
interface LeasedWindow {
  /** Requests in a share's life, which began at `since` (monotonic), and in the one before. */
  since: number;
  current: number;
  previous: number;
  /** The last one, used up or not. */
  share: Share | undefined;
  /** Redis has not answered for the next one. */
  isAsked: boolean;
  /** Permits whose answers were lost: they may count until then (monotonic), although nobody has them. */
  lost: number;
  lostUntil: number;
}

/** Windows whose shares one command returns. */
const MAX_RETURNED = 500;

export function createShares({ commands, clock, isCluster }: RedisAccess) {
  const windows = createSizedMap<string, LeasedWindow>({
    maxSize: CAPACITY.leasedWindows,
    measure: () => 1,
    // Nobody would find it any more.
    onRemove: ({ share }) => share && held.has(share) && end(share),
  });
  /** Those whose life is not over, or was not when they were looked at last. */
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
   * All that come together are returned by one command. It is sent before a request that comes with it is counted, so that a
   * process which is alone is never refused for permits of its own. None is sent twice. Never rejects: what gets lost runs out.
   */
  async function returnUnused() {
    const returned = unused;
    unused = [];
    const sent: Promise<void>[] = [];
    // A cluster keeps windows in different slots: each is returned by itself.
    const maxTogether = isCluster ? 1 : MAX_RETURNED;
    while (returned.length > 0) {
      const together = returned.splice(0, maxTogether);
      sent.push(commands.run((client) => returnPermits(client, together)));
    }
    await Promise.allSettled(sent);
  }

  /** Undefined where Redis has to count. What another limit was set for serves no more. */
  function findShare(leased: LeasedWindow, window: LimitWindow, now: Moment) {
    const { share } = leased;
    if (share === undefined || share.left === 0) return undefined;
    const { max, windowMs } = share.window;
    if (!isOver(share, now) && max === window.max && windowMs === window.windowMs) return share;
    end(share);
    return undefined;
  }

  /** Counts one more request in a share's life, or in the next one. */
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
    /** Takes one request of each window that has one left here. */
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
     * Returns permits that were taken and not needed. A share that has ended stays at that: what is given back to it is
     * nobody's any more, and runs out.
     */
    giveBack({ shares }: TakenPermits) {
      for (const share of shares) if (held.has(share)) share.left += 1;
    },

    /** As `uncountRequest`; false where no share let the request in. */
    uncount(key: string, entry: string) {
      const share = windows.peek(key)?.share;
      if (share?.entry === entry && held.has(share)) share.left += 1;
      return entry.startsWith('shared:');
    },

    /** True if one more request of this window could be let in here. */
    hasLeft(window: LimitWindow) {
      const leased = windows.peek(window.key);
      return leased !== undefined && findShare(leased, window, takeMoment(clock)) !== undefined;
    },

    /** The question to Redis beside counting in these windows, and what to do with its answer. */
    ask(counted: readonly LimitWindow[]) {
      const asked = takeMoment(clock);
      const wanted: (WantedPermits & { readonly leased: LeasedWindow })[] = [];
      for (const window of counted) {
        const leased = windows.peek(window.key);
        if (leased === undefined || leased.isAsked || findShare(leased, window, asked)) continue;
        // However often answers get lost, all that was taken in vain is less than two shares.
        const lost = countLost(leased, asked.monotonic);
        // The part of the life before that is less than a life ago counts, too.
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
        /** No answer came. Where it was asked, permits that nobody knows of run out by themselves. */
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

    /** Returns what is left. Never rejects. */
    async close() {
      for (const share of held) end(share);
      await returnUnused();
    },
  };
}

/** Judged by either clock: one may be set, the other stands still while the computer sleeps. */
function isOver({ window, asked }: Share, now: Moment) {
  const life = toShareLife(window.windowMs);
  return now.monotonic - asked.monotonic >= life || Math.abs(now.now - asked.now) >= life;
}

/** The verdict of Redis when the share was taken. If the first entry has left since, the next one leaves soon. */
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

// The number of requests that a share's life brings: as many as the last one did.

const countLost = ({ lost, lostUntil }: LeasedWindow, now: number) => (now < lostUntil ? lost : 0);
