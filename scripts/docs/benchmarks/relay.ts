// The part of docs/benchmarks.md about calls that are passed on.
import { renderGoal } from '../../../bench/goals.ts';
import type { RelayResults, RelayRow } from '../../../bench/published.ts';
import { FLOOR, listContestants } from '../../../bench/relay/contestants.ts';
import { judgeRelayGoals } from '../../../bench/relay/goals.ts';
import { computeFigures, computeRatio } from '../../../bench/results.ts';
import { renderTable } from '../table.ts';
import { renderMachine } from './calls.ts';

export function renderRelay({ machine, plan, rows }: RelayResults): string {
  const sizes = [...new Set(rows.map(({ size }) => size))];
  const names = [...new Set(rows.map(({ contestant }) => contestant))];
  const labels = new Map(listContestants().map(({ name, label }) => [name, label]));
  const find = (contestant: string, size: string, connections: number) =>
    rows.find(
      (row) =>
        row.contestant === contestant && row.size === size && row.connections === connections,
    );
  const one = sizes[0] ?? '';
  const body = names.map((name) => [
    labels.get(name) ?? name,
    ...sizes.map((size) => renderCpu(find(name, size, 32), rows)),
    renderMs(find(name, one, 1), 'p50Ms'),
    renderMs(find(name, one, 1), 'p99Ms'),
    renderMs(find(name, one, 32), 'p99Ms'),
  ]);
  const head = ['', ...sizes, 'p50 ms, 1 connection', 'p99 ms, 1', 'p99 ms, 32'];
  const goals = judgeRelayGoals(rows).map(({ title, goal }) => [title, renderGoal(goal)]);
  return `## What passing on costs

CPU µs per call of the process between client and server, in the era with sessions, with 32 connections; in brackets, how many times the
floor's. The floor checks the token's RS256 signature and sends the bytes on by undici, without limits or sessions. The server answers
with 1 KB as JSON, with the same as an event of a stream (SSE), with 100 KB, or lists 300 tools; its own CPU does not count. The times
are those of 1 KB.

${renderMachine(machine)} ${plan.rounds} rounds of ${plan.seconds} s, after ${plan.warmUpSeconds} s to warm up${renderLeadIn(plan.leadInSeconds)}.

${renderTable(head, body)}
${renderTable(['Goal', 'Reached'], goals)}
mcp-proxy passes on to a process over stdio, and checks no token.

**The 99th percentile with 32 connections** is that of pauses. Each server has one core here, and between its rounds it waits for the others. When its load
begins again, V8 compiles and the memory that calls left behind is collected: 10 ms for a full collection, after about 50 ms in which V8 marks on the same core.
Three such moments in a round of 3 s are the percentile. With a second core for V8, or under a load that continues, they are fewer.
`;
}

const renderLeadIn = (seconds: number): string =>
  seconds === 0 ? '' : `, each after ${seconds} s of the same load that does not count`;

function renderCpu(row: RelayRow | undefined, rows: readonly RelayRow[]): string {
  if (row === undefined) return '';
  const { cpuMicroseconds, flaw } = computeFigures(row);
  if (flaw !== undefined) return 'void';
  const ratio = computeRatio(
    rows.filter(({ size }) => size === row.size),
    { of: row.contestant, by: FLOOR, connections: row.connections, measure: 'cpuMicroseconds' },
  );
  return `${Math.round(cpuMicroseconds).toLocaleString('en')} (${ratio?.toFixed(2)})`;
}

function renderMs(row: RelayRow | undefined, measure: 'p50Ms' | 'p99Ms'): string {
  if (row === undefined || row.flaw !== undefined) return '';
  return String(Number(computeFigures(row)[measure].toPrecision(2)));
}
