// A flood of refusals must not fill the disk: of each kind so many lines are logged, the rest counted.
import type { Clock } from './clock.ts';

export interface LogThrottle {
  /** Counts a line of this kind; false when no more of them are logged in this minute. */
  countLine(kind: string): boolean;
}

/** Enough to see who and why, and some 3 MB an hour at most for each kind of refusal. */
const LINES_PER_MINUTE = 100;
const MINUTE_MS = 60_000;

/** `warn`, at most once a minute; calls in between are left out. */
export function createWarnThrottle<Args extends readonly unknown[]>(
  clock: Clock,
  warn: (...args: Args) => void,
): (...args: Args) => void {
  let warnedAt = Number.NEGATIVE_INFINITY;

  return function warnOncePerMinute(...args) {
    const now = clock.monotonic();
    if (now - warnedAt < MINUTE_MS) return;
    warnedAt = now;
    warn(...args);
  };
}

/** `report` is called once a minute for each kind of which lines were left out. */
export function createLogThrottle(
  clock: Clock,
  report: (kind: string, leftOut: number) => void,
): LogThrottle {
  const linesByKind = new Map<string, number>();

  function endMinute(kind: string): void {
    const leftOut = (linesByKind.get(kind) ?? 0) - LINES_PER_MINUTE;
    linesByKind.delete(kind);
    if (leftOut > 0) report(kind, leftOut);
  }

  return {
    countLine(kind) {
      const lines = (linesByKind.get(kind) ?? 0) + 1;
      if (lines === 1) clock.after(MINUTE_MS, () => endMinute(kind));
      linesByKind.set(kind, lines);
      return lines <= LINES_PER_MINUTE;
    },
  };
}
