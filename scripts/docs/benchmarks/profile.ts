// The parts of docs/benchmarks.md about where the time of a call goes.
import { CONTESTANTS } from '../../../bench/contestants.ts';
import type { ProfileResult } from '../../../bench/profile.ts';
import type { ProfileResults, RelayProfileResults } from '../../../bench/published.ts';
import { listContestants } from '../../../bench/relay/contestants.ts';
import { renderTable } from '../table.ts';

/** Less than this is not worth a row. */
const LEAST_MICROSECONDS = 0.5;

export function renderProfile({ machine, results }: ProfileResults): string {
  const labels = new Map(CONTESTANTS.map(({ name, label }) => [name, label]));
  return `## Where the time goes

Microseconds of CPU per request with 32 connections, measured with V8's sampling profiler in a separate run, because the profiler itself
takes time. Time spent in a Node.js function counts as Node.js, whichever part called it. Measured on ${machine.date}.

${renderParts(results, labels)}`;
}

export function renderRelayProfile({ machine, results }: RelayProfileResults): string {
  const labels = new Map(listContestants('session').map(({ name, label }) => [name, label]));
  const sizes = [...new Set(results.map(({ size }) => size))];
  const tables = sizes.map(
    (size) =>
      `### Forwarding: ${size}

${renderParts(
  results.filter((result) => result.size === size),
  labels,
)}`,
  );
  return `## Where the time goes when a call is forwarded

The same as [above](#where-the-time-goes), for forwarded calls. Postern takes more than the floor because it does more: it applies limits and rules, keeps
a session, inspects the message and its answer, and counts metrics. Measured on ${machine.date}.

${tables.join('\n')}`;
}

function renderParts(
  results: readonly ProfileResult[],
  labels: ReadonlyMap<string, string>,
): string {
  const heads = results.map(({ contestant }) => labels.get(contestant) ?? contestant);
  const parts = [...new Set(results.flatMap((result) => Object.keys(result.parts)))];
  const rows = parts
    .map((part) => ({ part, times: results.map((result) => result.parts[part] ?? 0) }))
    .filter(({ times }) => Math.max(...times) >= LEAST_MICROSECONDS)
    .sort((a, b) => Math.max(...b.times) - Math.max(...a.times))
    .map(({ part, times }) => [part, ...times.map((time) => time.toFixed(1))]);
  return renderTable(['', ...heads], rows);
}
