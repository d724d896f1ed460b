// npm run bench -- memory: resident memory at rest and under load, and whether it grows with the requests.
import { setTimeout as pause } from 'node:timers/promises';
import { runPostern } from './contestants.ts';
import { describeMachine } from './machine.ts';
import { measureStreams } from './measure-streams.ts';
import type { Options } from './options.ts';
import { publish } from './published.ts';
import { prepareRunner } from './rounds.ts';
import { openTestbed } from './testbed.ts';
import { runWrk } from './wrk.ts';

export interface MemoryResult {
  readonly store: 'redis' | 'embedded';
  /** After the start, one session and a few calls. */
  readonly restMb: number;
  readonly requests: number;
  /** The most that was seen. */
  readonly mostMb: number;
  /** Of a straight line through the samples after the first tenth. */
  readonly growthMbPerMillion: number;
}

export const REST_GOAL_MB = 120;
export const LOAD_GOAL_MB = 256;

const CONNECTIONS = 32;
const SAMPLE_SECONDS = 2;
const REST_SECONDS = 10;
/** Of all requests: until then the heap finds its size. */
const FIRST_PART = 0.1;

interface Sample {
  readonly requests: number;
  readonly residentMb: number;
}

export async function measureMemory({ only, requests, isPublished }: Options): Promise<void> {
  if (only.length === 0 || only.includes('load')) await measureLoad(requests, isPublished);
  if (only.length === 0 || only.includes('streams')) await measureStreams(isPublished);
}

async function measureLoad(requests: number, isPublished: boolean): Promise<void> {
  const machine = describeMachine();
  const results: MemoryResult[] = [];
  for (const store of ['redis', 'embedded'] as const) {
    const result = await measureStore(store, requests);
    results.push(result);
    const { restMb, mostMb, growthMbPerMillion } = result;
    console.log(
      `${store}: ${Math.round(restMb)} MB at rest (≤ ${REST_GOAL_MB}), at most ${Math.round(mostMb)} MB (≤ ${LOAD_GOAL_MB}) over ${result.requests} requests, ${growthMbPerMillion.toFixed(1)} MB more for each million`,
    );
  }
  if (isPublished) publish({ memory: { machine, results } });
}

async function measureStore(store: 'redis' | 'embedded', wanted: number): Promise<MemoryResult> {
  const testbed = await openTestbed();
  try {
    const contestant = {
      name: store,
      label: store,
      era: 'session',
      command: runPostern(store),
      isQuick: false,
    } as const;
    const runner = await prepareRunner(testbed, contestant, { warmUpSeconds: 0 });
    const { server, call, expected } = runner;
    await pause(REST_SECONDS * 1000);
    const restMb = server.readResidentMb();
    const samples: Sample[] = [];
    for (let requests = 0; requests < wanted; ) {
      const load = { call, expected, connections: CONNECTIONS, seconds: SAMPLE_SECONDS };
      const result = await runWrk(testbed.folder, load);
      if (result.failures > 0) throw new Error(`${result.failures} wrong answers`);
      requests += result.requests;
      samples.push({ requests, residentMb: server.readResidentMb() });
    }
    return {
      store,
      restMb,
      requests: samples.at(-1)?.requests ?? 0,
      mostMb: Math.max(...samples.map(({ residentMb }) => residentMb)),
      growthMbPerMillion: computeSlope(
        samples.filter(({ requests }) => requests > FIRST_PART * wanted),
      ),
    };
  } finally {
    await testbed.close();
  }
}

/** Least squares, in MB per million requests. */
function computeSlope(samples: readonly Sample[]): number {
  const mean = (values: readonly number[]) =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const meanX = mean(samples.map(({ requests }) => requests));
  const meanY = mean(samples.map(({ residentMb }) => residentMb));
  const products = samples.map(
    ({ requests, residentMb }) => (requests - meanX) * (residentMb - meanY),
  );
  const squares = samples.map(({ requests }) => (requests - meanX) ** 2);
  return (mean(products) / mean(squares)) * 1e6;
}
