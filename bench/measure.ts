// Rounds of load over several subjects, interleaved, so that a slow minute hits all alike; medians.
import type { Target } from './target.ts';
import { type Call, type Load, load } from './wrk.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 4);
const CONNECTIONS = 32;

/** One call to one server; several subjects may share a server. */
export interface Subject {
  readonly name: string;
  readonly target: Target;
  readonly call: Call;
}

/** Medians of the rounds; `failures` is their sum. */
export interface Figures {
  readonly name: string;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicroseconds: number;
  readonly failures: number;
}

interface Measured extends Load {
  readonly cpuMicroseconds: number;
}

export async function measure(
  folder: string,
  subjects: readonly Subject[],
): Promise<readonly Figures[]> {
  const measured = subjects.map((subject) => ({ subject, rounds: [] as Measured[] }));
  for (const { call } of subjects) await load(folder, call, 2, CONNECTIONS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const { subject, rounds } of measured) {
      const { target, call } = subject;
      const before = target.cpuSeconds();
      const result = await load(folder, call, SECONDS, CONNECTIONS);
      const cpuMicroseconds = ((target.cpuSeconds() - before) / result.requests) * 1e6;
      rounds.push({ ...result, cpuMicroseconds });
    }
  }
  return measured.map(({ subject, rounds }) => ({
    name: subject.name,
    requestsPerSecond: median(rounds.map((round) => round.requestsPerSecond)),
    p50Ms: median(rounds.map((round) => round.p50Ms)),
    p99Ms: median(rounds.map((round) => round.p99Ms)),
    cpuMicroseconds: median(rounds.map((round) => round.cpuMicroseconds)),
    failures: rounds.reduce((sum, round) => sum + round.failures, 0),
  }));
}

/** Prints the figures; those of the first are what the others are compared with. */
export function report(title: string, figures: readonly Figures[]): void {
  const [first] = figures;
  console.log(`${title}: ${ROUNDS} rounds of ${SECONDS} s, ${CONNECTIONS} connections, medians`);
  console.table(
    figures.map((row) => ({
      name: row.name,
      'requests/s': rounded(row.requestsPerSecond),
      'p50 ms': rounded(row.p50Ms),
      'p99 ms': rounded(row.p99Ms),
      'CPU µs/request': rounded(row.cpuMicroseconds),
      failures: row.failures,
      'requests, of the first': ratio(row.requestsPerSecond, first?.requestsPerSecond),
      'CPU, of the first': ratio(row.cpuMicroseconds, first?.cpuMicroseconds),
    })),
  );
}

const rounded = (value: number) => Number(value.toPrecision(3));

const ratio = (value: number, of = Number.NaN) => Number((value / of).toFixed(3));

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
