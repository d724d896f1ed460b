// Rounds of load over several subjects, interleaved, so that a slow minute affects all of them alike.
import type { Target } from './target.ts';
import { type Call, type LoadResult, runWrk } from './wrk.ts';

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

interface Round extends LoadResult {
  readonly cpuMicroseconds: number;
}

export async function measure(
  folder: string,
  subjects: readonly Subject[],
): Promise<readonly Figures[]> {
  const results = subjects.map((subject) => ({ subject, rounds: [] as Round[] }));
  for (const { call } of subjects) await runWrk(folder, call, 2, CONNECTIONS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const { subject, rounds } of results) {
      const { target, call } = subject;
      const before = target.readCpuSeconds();
      const result = await runWrk(folder, call, SECONDS, CONNECTIONS);
      const cpuMicroseconds = ((target.readCpuSeconds() - before) / result.requests) * 1e6;
      rounds.push({ ...result, cpuMicroseconds });
    }
  }
  return results.map(({ subject, rounds }) => ({
    name: subject.name,
    requestsPerSecond: computeMedian(rounds.map((round) => round.requestsPerSecond)),
    p50Ms: computeMedian(rounds.map((round) => round.p50Ms)),
    p99Ms: computeMedian(rounds.map((round) => round.p99Ms)),
    cpuMicroseconds: computeMedian(rounds.map((round) => round.cpuMicroseconds)),
    failures: rounds.reduce((sum, round) => sum + round.failures, 0),
  }));
}

/** Prints the figures; the others are compared with the first. */
export function printReport(title: string, figures: readonly Figures[]): void {
  const [first] = figures;
  console.log(`${title}: ${ROUNDS} rounds of ${SECONDS} s, ${CONNECTIONS} connections, medians`);
  console.table(
    figures.map((row) => ({
      name: row.name,
      'requests/s': roundTo3(row.requestsPerSecond),
      'p50 ms': roundTo3(row.p50Ms),
      'p99 ms': roundTo3(row.p99Ms),
      'CPU µs/request': roundTo3(row.cpuMicroseconds),
      failures: row.failures,
      'requests, of the first': computeRatio(row.requestsPerSecond, first?.requestsPerSecond),
      'CPU, of the first': computeRatio(row.cpuMicroseconds, first?.cpuMicroseconds),
    })),
  );
}

const roundTo3 = (value: number) => Number(value.toPrecision(3));

const computeRatio = (value: number, of = Number.NaN) => Number((value / of).toFixed(3));

function computeMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
