// The part of docs/benchmarks.md about other versions of Node.js.
import { CONTESTANTS } from '../../../bench/contestants.ts';
import type { NodeResults } from '../../../bench/published.ts';
import { renderTable } from '../table.ts';
import { renderMachine } from './calls.ts';

export function renderNodes({ machine, plan, results, starts }: NodeResults): string {
  const [first] = results;
  const rows = results.map((row) => [
    CONTESTANTS.find(({ name }) => name === row.contestant)?.label ?? row.contestant,
    row.version,
    ...(row.flaw === undefined
      ? [
          String(Math.round(row.cpuMicroseconds)),
          row.cpuRatio?.toFixed(2) ?? '',
          String(Number(row.p50Ms.toPrecision(2))),
          String(Number(row.p99Ms.toPrecision(2))),
          String(Math.round(row.residentMb)),
        ]
      : ['void: wrong answers']),
  ]);
  const times = Object.entries(starts).map(([version, ms]) => `${Math.round(ms)} ms on ${version}`);
  const own = first?.version ?? '';
  return `## Other versions of Node.js

The same calls with ${first?.connections} connections, on each version in turn, ${plan.rounds} rounds of ${plan.seconds} s. **× ${own}** is the CPU per request divided by
that on ${own} in the same round: below 1 is better.

${renderMachine(machine)}

${renderTable(['', 'Node.js', 'CPU µs', `× ${own}`, 'p50 ms', 'p99 ms', 'Memory MB'], rows)}
Median time from process start to the first response, with Redis: ${times.join(', ')}.
`;
}
