// npm run bench -- start: from the start of the process to the first answer of /health.
import { runPostern } from './contestants.ts';
import { describeMachine } from './machine.ts';
import type { Options } from './options.ts';
import { publish } from './published.ts';
import { computeMedian } from './results.ts';
import { openTestbed } from './testbed.ts';

export interface StartResult {
  readonly store: 'redis' | 'embedded';
  readonly medianMs: number;
  readonly slowestMs: number;
}

export const START_GOAL_MS = 400;
export const STARTS = 10;

export async function measureStart({ isPublished }: Options): Promise<void> {
  const machine = describeMachine();
  const testbed = await openTestbed();
  try {
    const results: StartResult[] = [];
    for (const store of ['redis', 'embedded'] as const) {
      const times: number[] = [];
      for (let n = 0; n < STARTS; n++) {
        const server = await testbed.start(runPostern(store));
        times.push(server.startMs);
        await server.stop();
      }
      const result = { store, medianMs: computeMedian(times), slowestMs: Math.max(...times) };
      results.push(result);
      const { medianMs, slowestMs } = result;
      const verdict = medianMs <= START_GOAL_MS ? 'reached' : 'missed';
      console.log(
        `Start to the first /health (${store}): median ${Math.round(medianMs)} ms, slowest ${Math.round(slowestMs)} ms of ${STARTS} (≤ ${START_GOAL_MS}) ${verdict}`,
      );
    }
    if (isPublished) publish({ start: { machine, results } });
  } finally {
    await testbed.close();
  }
}
