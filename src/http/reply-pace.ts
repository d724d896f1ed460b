// Decisions 10: replies that nobody reads. Who has nothing to take, as of a quiet stream, is not slow.

/** Of a connection, in bytes. */
export interface Taking {
  /** What waits for the caller. */
  readonly waiting: number;
  /** What was taken since the connection began. */
  readonly taken: number;
}

export interface ReplyPace {
  /**
   * To be called once a second; says whether the caller is too slow to go on. Seconds in which the
   * process itself was too busy to send are not counted.
   */
  measure(taking: Taking): boolean;
}

/** Seconds without any progress after which a caller is given up. */
const STALLED_SECONDS = 30;
/** In so many seconds a caller takes so many bytes. */
const WINDOW_SECONDS = 60;
const WINDOW_BYTES = 60 * 1024;

export function createReplyPace(): ReplyPace {
  let taken: number | undefined;
  let stalled = 0;
  let seconds = 0;
  let takenInWindow = 0;

  return {
    measure(now) {
      if (now.waiting === 0) {
        taken = undefined;
        return false;
      }
      if (taken === undefined) {
        taken = now.taken;
        stalled = seconds = takenInWindow = 0;
        return false;
      }
      const progress = now.taken - taken;
      taken = now.taken;
      stalled = progress > 0 ? 0 : stalled + 1;
      takenInWindow += progress;
      seconds++;
      if (stalled >= STALLED_SECONDS) return true;
      if (seconds < WINDOW_SECONDS) return false;
      const isTooSlow = takenInWindow < WINDOW_BYTES;
      seconds = takenInWindow = 0;
      return isTooSlow;
    },
  };
}
