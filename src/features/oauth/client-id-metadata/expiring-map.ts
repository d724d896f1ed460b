import type { Clock } from '../../../core/clock.ts';

/** Entries with a lifetime of their own; when it is full, the oldest one goes. */
export interface ExpiringMap<Value> {
  get(key: string): Value | undefined;
  /** `lifetime` in milliseconds; 0 keeps nothing. */
  set(key: string, value: Value, lifetime: number): void;
}

export function createExpiringMap<Value>(maxEntries: number, clock: Clock): ExpiringMap<Value> {
  const entries = new Map<string, { readonly value: Value; readonly expiresAt: number }>();
  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined || entry.expiresAt > clock.monotonic()) return entry?.value;
      entries.delete(key);
      return undefined;
    },
    set(key, value, lifetime) {
      entries.delete(key);
      if (lifetime <= 0) return;
      const [oldest] = entries.keys();
      if (entries.size >= maxEntries && oldest !== undefined) entries.delete(oldest);
      entries.set(key, { value, expiresAt: clock.monotonic() + lifetime });
    },
  };
}
