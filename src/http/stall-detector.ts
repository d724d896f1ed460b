// Replies that nobody reads (§12). An idle stream does not count as stalled.

/** Of a connection, in bytes. */
export interface SendProgress {
  /** What waits for the caller. */
  readonly unsentBytes: number;
  /** What was sent since the connection began. */
  readonly sentBytes: number;
}

export interface StallDetector {
  /**
   * To be called once a second. Stalled is a caller that reads too slowly to go on. Seconds in which
   * the process itself was too busy to send are not counted.
   */
  checkProgress(progress: SendProgress): 'moving' | 'stalled';
}

/** Seconds without any progress after which a caller is given up. */
const MAX_SILENT_SECONDS = 30;
/** In so many seconds a caller reads so many bytes. */
const WINDOW_SECONDS = 60;
const WINDOW_BYTES = 60 * 1024;

export function createStallDetector(): StallDetector {
  let sentBefore: number | undefined;
  let silentSeconds = 0;
  let windowSeconds = 0;
  let windowBytes = 0;

  return {
    checkProgress({ unsentBytes, sentBytes }) {
      if (unsentBytes === 0) {
        sentBefore = undefined;
        return 'moving';
      }
      if (sentBefore === undefined) {
        sentBefore = sentBytes;
        silentSeconds = windowSeconds = windowBytes = 0;
        return 'moving';
      }
      const progress = sentBytes - sentBefore;
      sentBefore = sentBytes;
      silentSeconds = progress > 0 ? 0 : silentSeconds + 1;
      windowBytes += progress;
      windowSeconds++;
      if (silentSeconds >= MAX_SILENT_SECONDS) return 'stalled';
      if (windowSeconds < WINDOW_SECONDS) return 'moving';
      const isTooSlow = windowBytes < WINDOW_BYTES;
      windowSeconds = windowBytes = 0;
      return isTooSlow ? 'stalled' : 'moving';
    },
  };
}
