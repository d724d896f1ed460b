// What passing on costs on every way and at every size, compared with the least that a program does for it and with
// others that pass on. The server behind them runs beside the load; its own CPU is not counted.
import { checkAnswers } from '../check-answers.ts';
import { renderGoal } from '../goals.ts';
import { describeMachine } from '../machine.ts';
import type { Options } from '../options.ts';
import { publish, type RelayRow } from '../published.ts';
import { computeFigures, computeRatio } from '../results.ts';
import { type Plan, type Runner, runRounds } from '../rounds.ts';
import type { ServerProcess } from '../server-process.ts';
import { openTestbed } from '../testbed.ts';
import { runWrk } from '../wrk.ts';
import { ensureHaproxy, FLOOR, listContestants, startContestant } from './contestants.ts';
import { judgeRelayGoals } from './goals.ts';
import { startUpstream } from './upstreams.ts';
import { listSizes, TOOLS, WAYS, type Way } from './ways.ts';

const CONNECTIONS = 32;
/** Whoever passes on runs more code than whoever answers by itself, and V8 optimises it when it has run often. */
const WARM_UP_SECONDS = 12;

export async function measureTable({ plan, isPublished, isQuick }: Options): Promise<void> {
  const machine = describeMachine();
  const warmUpSeconds = isQuick ? plan.warmUpSeconds : WARM_UP_SECONDS;
  const rows: RelayRow[] = [];
  const connections = [CONNECTIONS, 1];
  for (const way of WAYS) {
    const contestants = listContestants(way).filter((one) => !isQuick || one.isQuick);
    rows.push(...(await measureWay(way, contestants, { ...plan, warmUpSeconds, connections })));
  }
  for (const { title, goal } of judgeRelayGoals(rows)) console.log(`${title}: ${renderGoal(goal)}`);
  if (isPublished) publish({ relay: { machine, plan: { ...plan, warmUpSeconds }, rows } });
}

/** Each size with 32 connections; 1 KB with one, too, if the plan has it. */
export async function measureWay(
  way: Way,
  contestants: ReturnType<typeof listContestants>,
  plan: Plan,
): Promise<readonly RelayRow[]> {
  if (contestants.some(({ name }) => name === 'haproxy')) ensureHaproxy();
  const testbed = await openTestbed(contestants);
  const upstream = way === 'stdio' ? undefined : await startUpstream(way, TOOLS);
  try {
    const servers: ServerProcess[] = [];
    for (const one of contestants) {
      servers.push(await startContestant(testbed, one, upstream?.url));
    }
    const rows: RelayRow[] = [];
    for (const listed of listSizes(way)) {
      const { name: size, work } = listed;
      const runners: Runner[] = [];
      for (const [n, contestant] of contestants.entries()) {
        const server = servers[n];
        if (server === undefined || (contestant.only ?? listed) !== listed) continue;
        const call = await testbed.createCall(server, contestant.era, work);
        const expected = await checkAnswers(call);
        const load = { call, expected, connections: CONNECTIONS, seconds: plan.warmUpSeconds };
        await runWrk(testbed.folder, load);
        runners.push({ contestant, server, call, expected });
      }
      const connections = size === '1 KB' ? plan.connections : [CONNECTIONS];
      const series = await runRounds(testbed, runners, { ...plan, connections });
      const measured = series.map((one) => ({ way, size, ...one }));
      for (const count of connections) print(`${way}, ${size}`, count, measured);
      rows.push(...measured);
    }
    return rows;
  } finally {
    await upstream?.stop();
    await testbed.close();
  }
}

function print(title: string, connections: number, measured: readonly RelayRow[]): void {
  const rows = measured.filter((row) => row.connections === connections);
  console.log(`\n${title}, ${connections} ${connections === 1 ? 'connection' : 'connections'}`);
  console.table(Object.fromEntries(rows.map((row) => [row.contestant, toTableRow(row, rows)])));
  for (const { contestant, flaw } of rows) {
    if (flaw !== undefined) console.log(`${contestant} is void: ${flaw.slice(0, 300)}`);
  }
}

function toTableRow(row: RelayRow, all: readonly RelayRow[]): Readonly<Record<string, unknown>> {
  const figures = computeFigures(row);
  if (figures.flaw !== undefined) return { 'CPU µs': 'void' };
  const toFloor = (measure: 'cpuMicroseconds' | 'p50Ms' | 'p99Ms') =>
    Number(
      computeRatio(all, {
        of: row.contestant,
        by: FLOOR,
        connections: row.connections,
        measure,
      })?.toFixed(2),
    );
  return {
    'CPU µs': Math.round(figures.cpuMicroseconds),
    '÷ floor': toFloor('cpuMicroseconds'),
    'p50 ms': Number(figures.p50Ms.toPrecision(3)),
    'p50 ÷ floor': toFloor('p50Ms'),
    'p99 ms': Number(figures.p99Ms.toPrecision(3)),
    'p99 ÷ floor': toFloor('p99Ms'),
    'requests/s': Math.round(figures.requestsPerSecond),
    MB: Math.round(figures.residentMb),
  };
}
