// Throttles notifications and log lines.
import type { Clock } from './clock.ts';
import type { JsonObject } from './json.ts';
import type { Log } from './log.ts';

/** Notifies per key: at once, then at most once per `intervalMs`; the last change is always sent. */
export function createThrottle<Key>(
  clock: Clock,
  intervalMs: number,
  tell: (key: Key) => void,
): (key: Key) => void {
  /** Recently notified keys; the value is true if the key has changed since. */
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
/** Maximum pending keys; further ones are dropped. */
const MAX_WAITING = 100;

/**
 * Notifies in batches, for keys that cost a store lookup each, and of which a caller may name a hundred thousand per second.
 * Notifies at once if the last batch was long ago; a key that changes constantly appears once per batch.
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

/** Enough lines to see the cause; at most 3 MB an hour for each kind of refusal. */
const LINES_PER_MINUTE = 100;
const MINUTE_MS = 60_000;

/** Calls `warn` at most once a minute, and skips the calls in between. */
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
 * Limits log lines per kind, so that a flood of refusals cannot fill the disk; the rest are counted. Calls `report` once a minute
 * for each kind with skipped lines.
 */
export function createLogThrottle(clock: Clock, report: (kind: string, leftOut: number) => void) {
  const linesByKind = new Map<string, number>();

  return {
    /** Counts a line of this kind; returns false once the limit for this minute is reached. */
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

/** Logs one line per topic, for conditions that are the same for all users. */
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
