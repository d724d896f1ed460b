// The part of docs/benchmarks.md about where the time of a call goes.
import { CONTESTANTS } from '../../../bench/contestants.ts';
import type { ProfileResults } from '../../../bench/published.ts';
import { renderTable } from '../table.ts';

/** Less than this is not worth a row. */
const LEAST_MICROSECONDS = 0.5;

export function renderProfile({ machine, results }: ProfileResults): string {
  const labels = results.map(
    ({ contestant }) => CONTESTANTS.find(({ name }) => name === contestant)?.label ?? contestant,
  );
  const parts = [...new Set(results.flatMap((result) => Object.keys(result.parts)))];
  const rows = parts
    .map((part) => ({ part, times: results.map((result) => result.parts[part] ?? 0) }))
    .filter(({ times }) => Math.max(...times) >= LEAST_MICROSECONDS)
    .sort((a, b) => Math.max(...b.times) - Math.max(...a.times))
    .map(({ part, times }) => [part, ...times.map((time) => time.toFixed(1))]);
  return `## Where the time goes

Microseconds of CPU per request with 32 connections, by V8's sampling profiler, in a run of its own: the profiler costs time,
too. What a function of Node.js does for another part counts as Node.js. Measured on ${machine.date}.

${renderTable(['', ...labels], rows)}`;
}
