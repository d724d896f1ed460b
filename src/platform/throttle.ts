// Changes that come all the time are told only so often.
import type { Clock } from './clock.ts';
import type { JsonObject } from './json.ts';
import type { Log } from './log.ts';

/** Tells of each key at once, then at most once in `intervalMs`; the last change is always told. */
export function createThrottle<Key>(
  clock: Clock,
  intervalMs: number,
  tell: (key: Key) => void,
): (key: Key) => void {
  /** Told a moment ago; true where it has changed since. */
  const recent = new Map<Key, boolean>();

  return function noteChange(key) {
    if (recent.has(key)) {
      recent.set(key, true);
      return;
    }
    recent.set(key, false);
    clock.after(intervalMs, () => {
      const hasChanged = recent.get(key);
      recent.delete(key);
      if (hasChanged) noteChange(key);
    });
    tell(key);
  };
}

const BATCH_MS = 250;
/** The most that waits to be told; more is dropped. */
const MAX_WAITING = 100;

/**
 * Tells of all keys together, where each costs a look into the store, and somebody may name a hundred thousand in a second:
 * at once where nothing was told lately; of what changes all the time, once in each batch.
 */
export function createBatch(
  clock: Clock,
  tell: (key: string) => Promise<void>,
): (key: string) => void {
  const waiting = new Set<string>();
  let isPausing = false;

  async function tellAll() {
    isPausing = true;
    const keys = [...waiting];
    waiting.clear();
    for (const key of keys) await tell(key).catch(() => {});
    clock.after(BATCH_MS, () => {
      isPausing = false;
      if (waiting.size > 0) void tellAll();
    });
  }

  return function noteChange(key) {
    if (waiting.size >= MAX_WAITING) return;
    waiting.add(key);
    if (!isPausing) void tellAll();
  };
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

/**
 * A flood of refusals must not fill the disk: of each kind so many lines are logged, the rest counted. `report` is called once a minute
 * for each kind of which lines were left out.
 */
export function createLogThrottle(clock: Clock, report: (kind: string, leftOut: number) => void) {
  const linesByKind = new Map<string, number>();

  return {
    /** Counts a line of this kind; false when no more of them are logged in this minute. */
    countLine(kind: string): boolean {
      const lines = (linesByKind.get(kind) ?? 0) + 1;
      if (lines === 1)
        clock.after(MINUTE_MS, () => {
          const leftOut = (linesByKind.get(kind) ?? 0) - LINES_PER_MINUTE;
          linesByKind.delete(kind);
          if (leftOut > 0) report(kind, leftOut);
        });
      linesByKind.set(kind, lines);
      return lines <= LINES_PER_MINUTE;
    },
  };
}

/** For what is the same for every user: of each topic one line of the log. */
export function createWarnOnce(
  log: Log,
): (topic: string, message: string, facts: JsonObject) => void {
  const told = new Set<string>();

  return function warnOnce(topic, message, facts) {
    if (told.has(topic)) return;
    told.add(topic);
    log.warn(message, facts);
  };
}
