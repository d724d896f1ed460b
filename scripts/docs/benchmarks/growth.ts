// The parts of docs/benchmarks.md about growth, memory and start.
import { MOST_GROWTH } from '../../../bench/growth/measure-growth.ts';
import { LOAD_GOAL_MB, REST_GOAL_MB } from '../../../bench/measure-memory.ts';
import { START_GOAL_MS, STARTS } from '../../../bench/measure-start.ts';
import { STREAMS, STREAMS_GOAL_MB } from '../../../bench/measure-streams.ts';
import type {
  GrowthResults,
  MemoryResults,
  StartResults,
  StreamsResults,
} from '../../../bench/published.ts';
import { renderTable } from '../table.ts';

export function renderGrowth({ machine, results }: GrowthResults): string {
  const percent = (ratio: number) => {
    const change = `${ratio < 1 ? '−' : '+'}${Math.abs((ratio - 1) * 100).toFixed(0)} %`;
    return `${change}, ${renderVerdict(ratio <= MOST_GROWTH)}`;
  };
  const rows = results.map(({ label, store, small, grown, cpuRatio, p99Ratio }) => [
    label,
    STORE_NAMES[store],
    percent(cpuRatio),
    percent(p99Ratio),
    `${Math.round(small.residentMb)} → ${Math.round(grown.residentMb)} MB`,
  ]);
  return `## When there is much of something

Two services, which differ in one thing, take turns under the same load of 32 connections. The goal: the grown one needs at
most ${Math.round((MOST_GROWTH - 1) * 100)} % more CPU per request, and its p99 is at most ${Math.round((MOST_GROWTH - 1) * 100)} % higher. Measured on ${machine.date}.

${renderTable(['', 'Store', 'CPU per request', 'p99', 'Memory'], rows)}
The embedded store maps its file into memory, and what was read of it counts as the process's memory until the
system needs it for something else.
`;
}

export function renderMemory({ machine, results }: MemoryResults): string {
  const rows = results.map((row) => [
    STORE_NAMES[row.store],
    `${Math.round(row.restMb)} MB, ${renderVerdict(row.restMb <= REST_GOAL_MB)}`,
    `${Math.round(row.mostMb)} MB, ${renderVerdict(row.mostMb <= LOAD_GOAL_MB)}`,
    row.requests.toLocaleString('en'),
    `${row.growthMbPerMillion.toFixed(1)} MB`,
  ]);
  const head = ['Store', 'At rest', 'Peak under load', 'Requests', 'Growth per million requests'];
  return `## Memory

Resident memory, with goals of at most ${REST_GOAL_MB} MB at rest and ${LOAD_GOAL_MB} MB under load. The last column is the slope of a
linear fit (least squares) to the samples after the first tenth of the requests; multiply it by ten for the growth after ten
million requests. Measured on ${machine.date}.

${renderTable(head, rows)}`;
}

export function renderStreams({ machine, results }: StreamsResults): string {
  const toKb = (bytes: number) => `${(bytes / 1024).toFixed(1)} KB`;
  const rows = results.map(({ store, residentMb, bytesEach, heapBytesEach }) => [
    STORE_NAMES[store],
    `${Math.round(residentMb)} MB, ${renderVerdict(residentMb <= STREAMS_GOAL_MB)}`,
    toKb(bytesEach),
    toKb(heapBytesEach),
  ]);
  const streams = STREAMS.toLocaleString('en');
  return `### Open streams

Resident memory of one process with ${streams} idle sessions whose clients keep a stream open (\`MCP_STREAMS\`), with a goal of at
most ${STREAMS_GOAL_MB} MB; the other columns show how much each stream takes, including its session and connection, and how much of that is heap. Measured
on ${machine.date}.

${renderTable(['Store', `${streams} open streams`, 'Each', 'Of that, heap'], rows)}`;
}

export function renderStart({ machine, results }: StartResults): string {
  // Results from before startup was compared with Node.js itself have neither.
  const isCompared = results.every(({ version, ratio }) => version && ratio);
  const rows = results.map(({ store, version = '', medianMs, slowestMs, ratio = 0 }) => [
    STORE_NAMES[store],
    ...(isCompared ? [version] : []),
    `${Math.round(medianMs)} ms, ${renderVerdict(medianMs <= START_GOAL_MS)}`,
    `${Math.round(slowestMs)} ms`,
    ...(isCompared ? [ratio.toFixed(1)] : []),
  ]);
  const header = [
    'Store',
    ...(isCompared ? ['Node.js'] : []),
    `Median of ${STARTS} starts`,
    'Slowest',
    ...(isCompared ? ['× `node -e 0`'] : []),
  ];
  return `## Startup

Time from process start to the first response from \`/health\`, with a goal of at most ${START_GOAL_MS} ms. Measured on ${machine.date}.

${renderTable(header, rows)}`;
}

const STORE_NAMES = { redis: 'Redis', embedded: 'embedded' } as const;

const renderVerdict = (isReached: boolean) => (isReached ? 'reached' : 'missed');
