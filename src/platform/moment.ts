// What holds for a time only must not hold for longer on a computer that sleeps, or is stopped: some count monotonic time
// on then, and some do not.
import type { Clock } from './clock.ts';

/** A moment by both clocks. */
export interface Moment {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly monotonic: number;
}

export const takeMoment = (clock: Clock): Moment => ({
  now: clock.now(),
  monotonic: clock.monotonic(),
});

/** Milliseconds from then until now, by the clock by which they are more. */
export const measureSince = ({ now, monotonic }: Moment, clock: Clock): number =>
  Math.max(clock.now() - now, clock.monotonic() - monotonic);
