// A fault and its results.
import type { Tally } from './client/tally.ts';
import type { Stage } from './stage.ts';

export interface Fault {
  /** For `--only`. */
  readonly name: string;
  /** The fault itself, for people. */
  readonly title: string;
  /** The requirements meanwhile, for `--list`. */
  readonly figure: string;
  run(stage: Stage): Promise<Outcome>;
}

export interface Outcome {
  readonly tally: Tally;
  /** Milliseconds from the end of the fault to the first good answer; the worst of several. */
  readonly recoveryMs?: number;
  readonly checks: readonly Check[];
}

/** One figure. */
export interface Check {
  readonly what: string;
  readonly found: string;
  readonly isReached: boolean;
  /** A time depends on how busy the machine is: the short form prints it and does not judge it. */
  readonly isTime: boolean;
}

export const checkCount = (what: string, found: number, expected: number): Check => ({
  what: `${what}: ${expected}`,
  found: String(found),
  isReached: found === expected,
  isTime: false,
});

export const checkFact = (what: string, isReached: boolean, found = isReached ? 'yes' : 'no') => ({
  what,
  found,
  isReached,
  isTime: false,
});

/** 503 is a true answer from a process that cannot keep up, which depends on the machine, too. */
export function checkNoneRefused(tally: Tally): Check {
  const refused = tally.count('refused');
  return { what: 'refused: 0', found: String(refused), isReached: refused === 0, isTime: true };
}

/** A time, or another measure that depends on the machine. */
export const checkAtMost = (what: string, found: number, limit: number, unit = 'ms'): Check => ({
  what: `${what} ≤ ${limit} ${unit}`,
  found: `${formatNumber(found)} ${unit}`,
  isReached: found <= limit,
  isTime: true,
});

export const checkAtLeast = (what: string, found: number, limit: number, unit: string): Check => ({
  what: `${what} ≥ ${limit} ${unit}`,
  found: `${formatNumber(found)} ${unit}`,
  isReached: found >= limit,
  isTime: true,
});

const formatNumber = (value: number) => String(Number(value.toPrecision(3)));
