// The part of docs/benchmarks.md about the cost of a call.
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

Each figure is the median of ${plan.rounds} rounds of ${plan.seconds} s. Before each round, the server is warmed up with ${plan.leadInSeconds} s of the same load, which is not counted.
A server is suspended (SIGSTOP) during the other servers' rounds, so that its timers do not run then. For about a third of a second after that pause, every
server, including the floor, handles only half as many calls: caches are cold, memory is newly allocated, and timers are late. Without the warm-up, this
slow phase would determine a round's 99th percentile.

**× floor** is the floor's CPU per request divided by the row's; **× bare** is the same for bare \`node:http\`. Higher is better: 2 means half
the CPU. Absolute figures differ between machines; compare ratios.

${tables.join('\n')}
${CONTESTANTS_TEXT}
## Goals

This table compares the results of this run with the project's goals. The first number is the result; the goal is in brackets.

${renderGoals(results)}
The columns, from left to right:

- the CPU per request of the floor or of bare, divided by Postern's;
- Postern's p99 and p50, divided by the floor's;
- the CPU of the official SDK or fastmcp, whichever is better, divided by Postern's;
- Postern's CPU, divided by the floor's; the goal comes from servers and gateways in other languages.

The servers and gateways in other languages were not measured in this run. On another machine, the same work took
these multiples of the floor's CPU on that machine: ${PEERS.map(({ name, ratio }) => `${name} ${ratio}`).join(', ')}. The last one
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
  return ` **Other work ran on the machine, too** (load average ${loadAverage.toFixed(1)} before the run): latencies are higher than on an idle machine.`;
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
    ['bare `node:http`', 'not checked', 'none', 'none'],
    ['floor', 'signature and claims', 'two, in Redis', 'in Redis, extended by each call'],
    ['official SDK, fastmcp', 'signature and claims, by jose', 'none', 'in process memory'],
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
Bare \`node:http\` parses the JSON and returns the same bytes as Postern. The floor does the bare minimum for a gateway with
tokens, limits and shared sessions: one check of the token by \`node:crypto\`, one script in Redis. It checks no
origin, host, body size or schema, writes no log and no metrics, and handles no errors.

“Signatures remembered” means that a signature is verified only the first time; after that, the token is recognized by its hash. The claims
are checked on every call. This is Postern's default; with \`TOKEN_SIGNATURE_MEMORY=0\`, every signature is verified every time.

“Promoted” is the part of a request's allocations that survives minor collections (scavenges) of the young generation
and is therefore promoted to the old generation.
It is measured in a separate run with 32 connections.
`;
