// npm run bench -- calls: all contestants, side by side.
import { selectContestants } from './contestants.ts';
import { describeMachine } from './machine.ts';
import { measureNodes } from './measure-nodes.ts';
import type { Options } from './options.ts';
import { printGoals, printSeries } from './print.ts';
import { measurePromotion } from './promotion.ts';
import { type CallResults, publish, readPublished } from './published.ts';
import { prepareRunner, type Runner, runRounds } from './rounds.ts';
import { openTestbed } from './testbed.ts';

export async function measureCalls(options: Options): Promise<void> {
  if (options.nodes.length > 0) return measureNodes(options);
  const { isQuick, only, plan, hasPromotion, isPublished } = options;
  const contestants = selectContestants(only).filter(
    (contestant) => contestant.isQuick || !isQuick || only.length > 0,
  );
  const machine = describeMachine();
  const testbed = await openTestbed(contestants);
  try {
    const runners: Runner[] = [];
    for (const contestant of contestants) {
      runners.push(await prepareRunner(testbed, contestant, plan));
    }
    const series = await runRounds(testbed, runners, plan);
    const promotedKb: Record<string, number> = {};
    for (const { contestant, server } of runners) {
      await server.stop();
      if (hasPromotion) promotedKb[contestant.name] = await measurePromotion(testbed, contestant);
    }
    printSeries(series, promotedKb);
    printGoals(series);
    if (isPublished) publishCalls({ machine, plan, series, promotedKb });
  } finally {
    await testbed.close();
  }
}

/** Published rows of other numbers of connections stay: ratios are taken within those of one number. */
function publishCalls(results: CallResults): void {
  const { calls } = readPublished();
  const { plan } = results;
  const kept = calls?.series.filter((one) => !plan.connections.includes(one.connections)) ?? [];
  const series = [...kept, ...results.series].sort((a, b) => a.connections - b.connections);
  const promotedKb = { ...calls?.promotedKb, ...results.promotedKb };
  publish({ calls: { ...results, series, promotedKb } });
}
