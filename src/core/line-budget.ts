// A flood of refusals must not fill the disk: of each kind so many lines are logged, the rest counted.
import type { Clock } from './clock.ts';

export interface LineBudget {
  /** Whether one more line of this kind may be logged now; where not, it is counted. */
  allows(kind: string): boolean;
}

/** Enough to see who and why, and some 3 MB an hour at most for each kind of refusal. */
const LINES_PER_MINUTE = 100;
const MINUTE_MS = 60_000;

/** `report` is called once a minute for each kind of which lines were left out. */
export function createLineBudget(
  clock: Clock,
  report: (kind: string, leftOut: number) => void,
): LineBudget {
  const written = new Map<string, number>();

  function endMinute(kind: string): void {
    const leftOut = (written.get(kind) ?? 0) - LINES_PER_MINUTE;
    written.delete(kind);
    if (leftOut > 0) report(kind, leftOut);
  }

  return {
    allows(kind) {
      const lines = (written.get(kind) ?? 0) + 1;
      if (lines === 1) clock.after(MINUTE_MS, () => endMinute(kind));
      written.set(kind, lines);
      return lines <= LINES_PER_MINUTE;
    },
  };
}
