// Tables for the terminal.
import { GOAL_TITLES, judgeGoals, renderGoal } from './goals.ts';
import { computeFigures, computeRatio } from './results.ts';
import type { Series } from './rounds.ts';

export function printSeries(
  all: readonly Series[],
  promotedKb: Readonly<Record<string, number>>,
): void {
  for (const connections of new Set(all.map((series) => series.connections))) {
    const rows = all.filter((series) => series.connections === connections).map(computeFigures);
    console.log(`\n${connections} ${connections === 1 ? 'connection' : 'connections'}`);
    console.table(
      Object.fromEntries(
        rows.map(({ contestant, ...row }) => [
          contestant,
          row.flaw === undefined
            ? {
                'CPU µs': round(row.cpuMicroseconds),
                '× floor': ratioTo('floor', contestant),
                '× bare': ratioTo('bare', contestant),
                'requests/s': Math.round(row.requestsPerSecond),
                'p50 ms': round(row.p50Ms),
                'p99 ms': round(row.p99Ms),
                'p99.9 ms': round(row.p999Ms),
                MB: Math.round(row.residentMb),
                'promoted KB':
                  promotedKb[contestant] === undefined ? '' : round(promotedKb[contestant]),
              }
            : { 'CPU µs': 'void' },
        ]),
      ),
    );
    for (const { contestant, flaw } of rows) {
      if (flaw !== undefined) console.log(`${contestant} is void: ${flaw}`);
    }

    function ratioTo(of: string, by: string): number | '' {
      const ratio = computeRatio(all, { of, by, connections, measure: 'cpuMicroseconds' });
      return ratio === undefined ? '' : Number(ratio.toFixed(2));
    }
  }
}

export function printGoals(all: readonly Series[]): void {
  const rows = judgeGoals(all);
  if (!rows.some(({ goals }) => goals.some(({ found }) => found !== undefined))) return;
  console.log('\nGoals');
  for (const [at, title] of GOAL_TITLES.entries()) {
    for (const { contestant, goals } of rows) {
      const text = goals[at] === undefined ? '' : renderGoal(goals[at]);
      if (text !== '') console.log(`  ${title.padEnd(30)} ${contestant.padEnd(30)} ${text}`);
    }
  }
}

const round = (value: number): number => Number(value.toPrecision(3));
