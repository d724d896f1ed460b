// The part of docs/benchmarks.md about what a call costs.
import { CONTESTANTS } from '../../../bench/contestants.ts';
import { GOAL_TITLES, judgeGoals, PEERS, renderGoal } from '../../../bench/goals.ts';
import type { Machine } from '../../../bench/machine.ts';
import type { CallResults } from '../../../bench/published.ts';
import { computeFigures, computeRatio } from '../../../bench/results.ts';
import { renderTable } from '../table.ts';

export function renderCalls(results: CallResults): string {
  const { machine, plan, series } = results;
  const counts = [...new Set(series.map(({ connections }) => connections))];
  const tables = counts.map((count) => renderCallTable(results, count));
  return `## What a call costs

![CPU per request of each contestant with 32 connections; the table below has the figures](assets/benchmarks.svg)

${renderMachine(machine)}

Each figure is the median of ${plan.rounds} rounds of ${plan.seconds} s, each after ${plan.leadInSeconds} s of the same load that does not count. While the others
have their turn a server is suspended (SIGSTOP), so that no timer of one runs in the round of another. For a third of a second after such a pause each
of them, the floor too, serves half as many calls: caches have forgotten it, memory is new, and timers are late. Without that lead, such beginnings
are the 99th percentile of a round.

**× floor** is the floor's CPU per request divided by the row's, **× bare** that of bare \`node:http\`: higher is better, 2 means half
the CPU. Absolute figures differ between machines; compare ratios.

${tables.join('\n')}
${CONTESTANTS_TEXT}
## Goals

The goals of the project, and what this run reached. The first number is the result, the one in brackets the goal.

${renderGoals(results)}
The columns: the CPU per request of the floor or of bare, divided by ours; our p99 and p50, divided by the floor's; the
CPU of the better of the official SDK and fastmcp, divided by ours; and our CPU, divided by the floor's, against
that of servers and gateways in other languages. These were not measured here. The same work on another machine took
them so many times the floor's CPU there: ${PEERS.map(({ name, ratio }) => `${name} ${ratio}`).join(', ')}. The last one
keeps its session in memory and has no limits and no store.
`;
}

export function renderMachine({
  date,
  cpu,
  cores,
  memoryGb,
  kernel,
  loadAverage,
  versions,
}: Machine): string {
  const names = Object.entries(versions).map(
    ([name, version]) => `${name.replace(/^@.*$/, '`$&`')} ${version}`,
  );
  return `Measured on ${date}: ${cpu}, ${cores} cores, ${memoryGb} GB, ${kernel}; ${names.join(', ')}.${renderLoad(loadAverage)}`;
}

function renderLoad(loadAverage: number | undefined): string {
  if (loadAverage === undefined) return '';
  if (loadAverage < 0.5) return ' Nothing else ran.';
  return ` **Other work ran on the machine, too** (load average ${loadAverage.toFixed(1)} before the run): latencies are higher than they need be.`;
}

function renderCallTable({ series, promotedKb }: CallResults, connections: number): string {
  const ratio = (of: string, by: string) =>
    computeRatio(series, { of, by, connections, measure: 'cpuMicroseconds' })?.toFixed(2) ?? '';
  const rows = series
    .filter((one) => one.connections === connections)
    .map(computeFigures)
    .map((row) => {
      const label =
        CONTESTANTS.find(({ name }) => name === row.contestant)?.label ?? row.contestant;
      if (row.flaw !== undefined) return [label, 'void: wrong answers'];
      return [
        label,
        String(Math.round(row.cpuMicroseconds)),
        ratio('floor', row.contestant),
        ratio('bare', row.contestant),
        Math.round(row.requestsPerSecond).toLocaleString('en'),
        ...[row.p50Ms, row.p99Ms, row.p999Ms].map((ms) => String(Number(ms.toPrecision(2)))),
        String(Math.round(row.residentMb)),
        promotedKb[row.contestant]?.toFixed(1) ?? '',
      ];
    });
  const head = [
    'CPU µs',
    '× floor',
    '× bare',
    'Requests/s',
    'p50 ms',
    'p99 ms',
    'p99.9 ms',
    'Memory MB',
    'Promoted KB',
  ];
  const title = `${connections} ${connections === 1 ? 'connection' : 'connections'}`;
  return `### ${title}\n\n${renderTable(['', ...head], rows)}`;
}

function renderGoals({ series }: CallResults): string {
  const rows = judgeGoals(series).map(({ label, goals }) => [label, ...goals.map(renderGoal)]);
  return renderTable(['', ...GOAL_TITLES], rows);
}

const CONTESTANTS_TEXT = `### Who does what

${renderTable(
  ['Contestant', 'Token', 'Limits', 'Session'],
  [
    ['bare `node:http`', 'not looked at', 'none', 'none'],
    ['floor', 'signature and claims', 'two, in Redis', 'in Redis, extended by each call'],
    [
      'official SDK, fastmcp',
      'signature and claims, by jose',
      'none',
      'in the memory of the process',
    ],
    [
      'Postern, session',
      'signature and claims',
      'two, in the store',
      'in the store, extended by each call',
    ],
    [
      'Postern, stateless',
      'signature and claims',
      'two, in the store',
      'none: the revision has no sessions',
    ],
  ],
)}
Bare \`node:http\` parses the JSON and answers the bytes that Postern answers. The floor is the least that a gateway with
tokens, limits and shared sessions has to do: one check of the token by \`node:crypto\`, one script in Redis. It checks no
origin, host, body size or schema, writes no log and no metrics, and handles no errors.

“Signatures remembered” means that a signature which was valid once is recognized by the hash of its token, while the claims
are checked on every call. That is how Postern runs by default; \`TOKEN_SIGNATURE_MEMORY=0\` has every signature verified.

“Promoted” is how much of what a request allocates the garbage collector moves to the old generation, because it outlives the quick
collections of the new one.
It is measured in a run of its own with 32 connections.
`;
