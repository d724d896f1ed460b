import type { Clock } from '../../platform/clock.ts';

/** Values that end at a point in time; when it is full, the oldest one goes. */
export interface TokenMemory<Value> {
  get(key: string): Value | undefined;
  /** `endsAt` in epoch milliseconds, as the times in tokens count. */
  set(key: string, value: Value, endsAt: number): void;
}

export function createTokenMemory<Value>(maxEntries: number, clock: Clock): TokenMemory<Value> {
  const entries = new Map<string, { readonly value: Value; readonly endsAt: number }>();
  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined || entry.endsAt > clock.now()) return entry?.value;
      entries.delete(key);
      return undefined;
    },
    set(key, value, endsAt) {
      entries.delete(key);
      if (endsAt <= clock.now()) return;
      const [oldest] = entries.keys();
      if (entries.size >= maxEntries && oldest !== undefined) entries.delete(oldest);
      entries.set(key, { value, endsAt });
    },
  };
}
