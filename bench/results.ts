// Figures from rounds: medians, and medians of the ratios within a round.
import type { Round, Series } from './rounds.ts';

/** One row of a table. */
export interface Figures {
  readonly contestant: string;
  readonly connections: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly cpuMicroseconds: number;
  readonly residentMb: number;
  readonly flaw?: string;
}

export type Measure = Exclude<keyof Round, 'wrongAnswer' | 'socketErrors'>;

export function computeFigures({ contestant, connections, rounds, flaw }: Series): Figures {
  const median = (measure: Measure) => computeMedian(rounds.map((round) => round[measure]));
  return {
    contestant,
    connections,
    requestsPerSecond: median('requestsPerSecond'),
    p50Ms: median('p50Ms'),
    p99Ms: median('p99Ms'),
    p999Ms: median('p999Ms'),
    cpuMicroseconds: median('cpuMicroseconds'),
    residentMb: median('residentMb'),
    ...(flaw !== undefined && { flaw }),
  };
}

/**
 * The median over the rounds of `of`'s measure divided by `by`'s in the same round. Undefined when one of
 * the two was not measured or answered wrongly.
 */
export function computeRatio(
  all: readonly Series[],
  { of, by, connections, measure }: RatioOptions,
): number | undefined {
  const find = (name: string) =>
    all.find(
      (series) => series.contestant === name && series.connections === connections && !series.flaw,
    );
  const dividends = find(of)?.rounds;
  const divisors = find(by)?.rounds;
  if (dividends === undefined || divisors === undefined) return undefined;
  return computeMedian(
    dividends.map((round, n) => round[measure] / (divisors[n]?.[measure] ?? Number.NaN)),
  );
}

export interface RatioOptions {
  readonly of: string;
  readonly by: string;
  readonly connections: number;
  readonly measure: Measure;
}

export function computeMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  return (lower + upper) / 2;
}

/**
 * Between which of the values the median of what they are a sample of lies, with 95 % confidence: by their order alone, whatever
 * their distribution (binomial, p = 1/2). Both ends for fewer than six values.
 */
export function computeMedianInterval(values: readonly number[]): readonly [number, number] {
  const sorted = [...values].sort((a, b) => a - b);
  const count = sorted.length;
  let rank = 0;
  let chance = 0.5 ** count;
  let below = chance;
  while (below <= 0.025) {
    rank += 1;
    chance *= (count - rank + 1) / rank;
    below += chance;
  }
  const first = Math.max(rank - 1, 0);
  return [sorted[first] ?? Number.NaN, sorted[count - 1 - first] ?? Number.NaN];
}
