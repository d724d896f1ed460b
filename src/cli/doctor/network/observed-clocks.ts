// Clocks of other machines, as the Date header of their answers tells them (RFC 9110 §6.6.1).
import type { Clock } from '../../../platform/clock.ts';
import type { Fetch } from '../../../platform/fetch-with-limits.ts';

export interface ObservedClocks {
  /** As the one given, and notes the time that each answer tells. */
  readonly fetch: Fetch;
  /**
   * By how many seconds the clock at this origin is ahead of the one here, negative where it is behind; 0
   * where they may be the same. Undefined where no answer told the time.
   */
  readOffset(origin: string): number | undefined;
}

const RESOLUTION_MS = 1000;

export function observeClocks(fetch: Fetch, clock: Clock): ObservedClocks {
  const offsets = new Map<string, number>();
  return {
    async fetch(url, init) {
      const sent = clock.now();
      const response = await fetch(url, init);
      const date = Date.parse(response.headers.get('date') ?? '');
      if (!Number.isNaN(date))
        offsets.set(new URL(url).origin, computeOffset(date, sent, clock.now()));
      return response;
    },
    readOffset: (origin) => offsets.get(origin),
  };
}

/** The header has whole seconds, and was written at some moment between `sent` and `received`. */
function computeOffset(date: number, sent: number, received: number): number {
  const least = (date - received) / 1000;
  const most = (date + RESOLUTION_MS - sent) / 1000;
  if (least > 0) return least;
  return most < 0 ? most : 0;
}
