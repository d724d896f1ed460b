// How fast bytes come or go; a request body must arrive at 1 KiB per second after its first 5 s (§12).

export interface SpeedMeter {
  count(bytes: number): void;
  /** To be called about once a second; false when a body would be too slow to go on. */
  measureSpeed(now: number): boolean;
  /** Bytes per second, measured last; of what has just begun, Infinity. */
  bytesPerSecond(): number;
}

const GRACE_MS = 5000;
const MIN_BYTES_PER_SECOND = 1024;
/** Bytes that may be ahead of that: networks bring them in lumps. */
const MAX_AHEAD_BYTES = 2048;
/** Shorter times say nothing about speed. */
const SHORTEST_MS = 500;

export function createSpeedMeter(startedAt: number): SpeedMeter {
  let measuredAt = startedAt;
  let recentBytes = 0;
  let aheadBytes = 0;
  let speed = Number.POSITIVE_INFINITY;

  return {
    count(bytes) {
      recentBytes += bytes;
    },
    measureSpeed(now) {
      const elapsed = now - measuredAt;
      if (elapsed < SHORTEST_MS) return true;
      speed = (recentBytes * 1000) / elapsed;
      aheadBytes = Math.min(MAX_AHEAD_BYTES, aheadBytes + recentBytes);
      // One second at a time: a process that was busy for longer has not read what came meanwhile.
      if (measuredAt - startedAt >= GRACE_MS) aheadBytes -= MIN_BYTES_PER_SECOND;
      measuredAt = now;
      recentBytes = 0;
      return aheadBytes >= 0;
    },
    bytesPerSecond: () => speed,
  };
}
