// What passing on costs at every size, compared with the least that a program does for it and with others that pass
// on. The server behind them runs beside the load; its own CPU is not counted.
import { hasContent, type Work } from '../calls.ts';
import { checkAnswers } from '../check-answers.ts';
import type { Contestant } from '../contestants.ts';
import { renderGoal } from '../goals.ts';
import { describeMachine } from '../machine.ts';
import type { Options } from '../options.ts';
import { publish, type RelayRow } from '../published.ts';
import { computeFigures, computeRatio } from '../results.ts';
import { type Runner, runRounds } from '../rounds.ts';
import type { ServerProcess } from '../server-process.ts';
import { openTestbed, type Testbed } from '../testbed.ts';
import { runWrk } from '../wrk.ts';
import { ensureHaproxy, FLOOR, listContestants, startContestant, TOOLS } from './contestants.ts';
import { judgeRelayGoals } from './goals.ts';
import { startUpstream } from './upstreams.ts';

const CONNECTIONS = 32;
/** Whoever passes on runs more code than whoever answers by itself, and V8 optimises it when it has run often. */
const WARM_UP_SECONDS = 12;

export interface Size {
  /** As the table shows it. */
  readonly name: string;
  readonly work: Work;
}

/** The call of a usual size. */
export const SMALL_CALL: Work = callTool('small', 1000);

/** A tool of contestants/server-answers.mjs; the text is compared with what the server itself answers. */
export const RELAY_SIZES: readonly Size[] = [
  { name: '1 KB', work: SMALL_CALL },
  { name: 'SSE', work: callTool('stream', 1000) },
  { name: '100 KB', work: callTool('large', 100_000) },
  {
    name: `list of ${TOOLS}`,
    work: {
      method: 'tools/list',
      params: {},
      isRight: (result) =>
        typeof result === 'object' &&
        result !== null &&
        'tools' in result &&
        Array.isArray(result.tools) &&
        result.tools.length === TOOLS,
    },
  },
];

function callTool(name: string, length: number): Work {
  let text = '';
  for (let n = 0; text.length < length; n += 1) {
    text += `${n}: "src/file-${n}.ts" has 12 matches of the pattern that was asked for\n`;
  }
  return {
    method: 'tools/call',
    params: { name, arguments: { message: 'hello' } },
    isRight: hasContent([{ type: 'text', text: text.slice(0, length) }]),
  };
}

export async function measureTable({ plan, isPublished, isQuick }: Options): Promise<void> {
  const machine = describeMachine();
  const warmUpSeconds = isQuick ? plan.warmUpSeconds : WARM_UP_SECONDS;
  ensureHaproxy();
  const contestants = listContestants().filter((one) => !isQuick || one.isQuick);
  const testbed = await openTestbed(contestants);
  const upstream = await startUpstream('session', TOOLS);
  try {
    const servers: { readonly contestant: Contestant; readonly server: ServerProcess }[] = [];
    for (const contestant of contestants) {
      servers.push({
        contestant,
        server: await startContestant(testbed, contestant, upstream.url),
      });
    }
    const rows: RelayRow[] = [];
    for (const size of RELAY_SIZES) rows.push(...(await measureSize(testbed, size, servers)));
    print(rows);
    for (const { title, goal } of judgeRelayGoals(rows))
      console.log(`${title}: ${renderGoal(goal)}`);
    if (isPublished) publish({ relay: { machine, plan: { ...plan, warmUpSeconds }, rows } });
  } finally {
    await upstream.stop();
    await testbed.close();
  }

  async function measureSize(
    bed: Testbed,
    { name, work }: Size,
    servers: readonly { readonly contestant: Contestant; readonly server: ServerProcess }[],
  ): Promise<readonly RelayRow[]> {
    const runners: Runner[] = [];
    for (const { contestant, server } of servers) {
      const call = await bed.createCall(server, contestant.era, work);
      const expected = await checkAnswers(call);
      const load = { call, expected, connections: CONNECTIONS, seconds: warmUpSeconds };
      await runWrk(bed.folder, load);
      runners.push({ contestant, server, call, expected });
    }
    const connections = name === '1 KB' ? [CONNECTIONS, 1] : [CONNECTIONS];
    const series = await runRounds(bed, runners, { ...plan, connections });
    return series.map((one) => ({ size: name, ...one }));
  }
}

function print(rows: readonly RelayRow[]): void {
  for (const size of new Set(rows.map((row) => row.size))) {
    const all = rows.filter((row) => row.size === size);
    for (const connections of new Set(all.map((row) => row.connections))) {
      console.log(`\n${size}, ${connections} ${connections === 1 ? 'connection' : 'connections'}`);
      console.table(
        Object.fromEntries(
          all
            .filter((row) => row.connections === connections)
            .map((row) => [row.contestant, toTableRow(row, all)]),
        ),
      );
      for (const { contestant, flaw } of all.filter((row) => row.connections === connections)) {
        if (flaw !== undefined) console.log(`${contestant} is void: ${flaw.slice(0, 300)}`);
      }
    }
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
