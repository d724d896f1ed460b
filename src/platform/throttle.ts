// What changes all the time is told only so often.
import type { Clock } from './clock.ts';

/** Of each key at once, then at most once in `intervalMs`; the last change is always told. */
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
/** What waits to be told; more is dropped. */
const MAX_WAITING = 100;

/**
 * Of all keys together, where each costs a look into the store, and somebody may name a hundred thousand in a second:
 * at once where nothing was told lately; of what changes all the time, once in each batch.
 */
export function createBatch(
  clock: Clock,
  tell: (key: string) => Promise<void>,
): (key: string) => void {
  const waiting = new Set<string>();
  let isPausing = false;

  async function tellAll(): Promise<void> {
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
