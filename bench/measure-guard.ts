// npm run bench -- guard: fails if some way of passing calls on costs more than twice what it may. Before each release.
import { renderGoal } from './goals.ts';
import type { RelayRow } from './published.ts';
import { listContestants } from './relay/contestants.ts';
import { judgeRelayGoals } from './relay/goals.ts';
import { measureWay } from './relay/measure-table.ts';
import { WAYS } from './relay/ways.ts';

const SLACK = 2;
const PLAN = { connections: [32], rounds: 2, seconds: 1, warmUpSeconds: 2, leadInSeconds: 0 };

export async function measureGuard(): Promise<void> {
  const rows: RelayRow[] = [];
  for (const way of WAYS) {
    const contestants = listContestants(way).filter(({ isQuick }) => isQuick);
    rows.push(...(await measureWay(way, contestants, PLAN)));
  }
  // The other goals are about moments, which so few rounds do not show.
  const goals = judgeRelayGoals(rows, SLACK).filter(({ title }) => title.startsWith('CPU'));
  for (const { title, goal } of goals) console.log(`${title}: ${renderGoal(goal)}`);
  if (goals.every(({ goal }) => goal.isReached)) return;
  console.error('Some calls cost more than twice what they may; docs/benchmarks.md has the goals.');
  process.exitCode = 1;
}
