// The part of docs/benchmarks.md about calls that are passed on.
import { renderGoal } from '../../../bench/goals.ts';
import type { RelayResults, RelayRow } from '../../../bench/published.ts';
import { FLOOR, listContestants } from '../../../bench/relay/contestants.ts';
import { judgeRelayGoals } from '../../../bench/relay/goals.ts';
import { WAYS, type Way } from '../../../bench/relay/ways.ts';
import { computeFigures, computeRatio } from '../../../bench/results.ts';
import { renderTable } from '../table.ts';
import { renderMachine } from './calls.ts';

export function renderRelay({ machine, plan, rows }: RelayResults): string {
  const goals = judgeRelayGoals(rows)
    .filter(({ goal }) => goal.found !== undefined)
    .map(({ title, goal }) => [title, renderGoal(goal)]);
  const ways = WAYS.filter((way) => rows.some((row) => row.way === way));
  return `## What forwarding a call costs

CPU per call, in µs, of the process between the client and the server, with 32 connections. The multiple of the floor's CPU is in brackets.
The floor checks the token's RS256 signature on every call and forwards the bytes with undici; a second floor remembers the signature,
as Postern does by default. The server returns 1 KB or 100 KB, as JSON or as the event of a stream (SSE), or a list of 300 tools; its own
CPU is not included. The latencies are for the 1 KB response.

${renderMachine(machine)} ${plan.rounds} rounds of ${plan.seconds} s, after ${plan.warmUpSeconds} s to warm up${renderLeadIn(plan.leadInSeconds)}.

${ways.map((way) => renderWay(way, rows)).join('\n')}
### Goals for forwarded calls

${renderTable(['Figure', 'Result (goal)'], goals)}
**The 99th percentile with 32 connections** is determined by pauses. Each server has one core here, and between its rounds it waits for the others. When its load
resumes, V8 compiles code and collects the garbage of earlier calls: a full collection takes 10 ms, after about 50 ms of marking on the same core.
Three such pauses in a 3 s round are enough to determine the percentile. With a second core for V8, or under continuous load, they are rarer.

**haproxy** parses HTTP in C and never reads the message. Both write once to the client and once to the server, which is about a fifth of
Postern's CPU ([profile](#forwarding-1-kb)). The difference is node:http with its streams and timers (about a quarter), Postern's HTTP client (a fifth), and
reading, checking and counting the call. Only an HTTP server other than Node's would take less.
`;
}

const TITLES: Readonly<Record<Way, string>> = {
  session: `### Clients and servers with sessions

The floors and haproxy have no limits and no sessions, and do not inspect messages. fastmcp keeps its sessions in memory and has no limits.`,
  stateless: `### Clients and servers without sessions (2026-07-28)

The floors and haproxy have no limits, and do not inspect messages.`,
  stdio: `### A server that is a process

The floor parses and writes each message, between a socket and a pipe. Neither it nor mcp-proxy checks tokens.`,
};

function renderWay(way: Way, all: readonly RelayRow[]) {
  const rows = all.filter((row) => row.way === way);
  const sizes = [...new Set(rows.map(({ size }) => size))];
  const names = [...new Set(rows.map(({ contestant }) => contestant))];
  const labels = new Map(listContestants(way).map(({ name, label }) => [name, label]));
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
  return `${TITLES[way]}

${renderTable(head, body)}`;
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
