// Decisions 10: a body brings at least 1 KiB per second after its first 5 s.

/** How fast one body arrives. */
export interface Pace {
  count(bytes: number): void;
  /** To be called about once a second; says whether the body is too slow to go on. */
  measure(now: number): boolean;
  /** Bytes per second, measured last; of a body that has just begun, Infinity. */
  speed(): number;
}

const GRACE_MS = 5000;
const MIN_BYTES_PER_SECOND = 1024;
/** Bytes that may be ahead of that: networks bring them in lumps. */
const AHEAD_BYTES = 2048;
/** Shorter times say nothing about speed. */
const SHORTEST_MS = 500;

export function beginPace(start: number): Pace {
  let measuredAt = start;
  let recent = 0;
  let ahead = 0;
  let speed = Number.POSITIVE_INFINITY;

  return {
    count(bytes) {
      recent += bytes;
    },
    measure(now) {
      const elapsed = now - measuredAt;
      if (elapsed < SHORTEST_MS) return false;
      speed = (recent * 1000) / elapsed;
      ahead = Math.min(AHEAD_BYTES, ahead + recent);
      // One second at a time: a process that was busy for longer has not read what came meanwhile.
      if (measuredAt - start >= GRACE_MS) ahead -= MIN_BYTES_PER_SECOND;
      measuredAt = now;
      recent = 0;
      return ahead < 0;
    },
    speed: () => speed,
  };
}
