// §4.11: one text for several processes.
import { expect, test } from 'vitest';
import { keepCounters, mergeOpenMetrics } from '../../../src/cli/serve/workers/supervise.ts';

const text = (...lines: string[]) => [...lines, '# EOF', ''].join('\n');

const COUNTER = ['# HELP calls Calls of "a\\nb".', '# TYPE calls counter'];
const HISTOGRAM = ['# HELP t Time.', '# TYPE t histogram'];
const LAG = [
  '# HELP nodejs_eventloop_lag_p99_seconds x',
  '# TYPE nodejs_eventloop_lag_p99_seconds gauge',
];
const MEMORY = [
  '# HELP process_resident_memory_bytes x',
  '# TYPE process_resident_memory_bytes gauge',
];

const ONE = text(
  ...[...COUNTER, 'calls_total{tool="a b} 1"} 2', 'calls_total{tool="only one"} 1'],
  ...[...HISTOGRAM, 't_bucket{le="1"} 1', 't_bucket{le="+Inf"} 2', 't_sum 3.5', 't_count 2'],
  ...[...LAG, 'nodejs_eventloop_lag_p99_seconds 0.25'],
  ...[...MEMORY, 'process_resident_memory_bytes 100'],
);
const OTHER = text(
  ...[...COUNTER, 'calls_total{tool="a b} 1"} 40', 'calls_total{tool="only the other"} 5'],
  ...[...HISTOGRAM, 't_bucket{le="1"} 0', 't_bucket{le="+Inf"} 1', 't_sum 0.25', 't_count 1'],
  ...[...LAG, 'nodejs_eventloop_lag_p99_seconds 0.125'],
  ...[...MEMORY, 'process_resident_memory_bytes 11'],
);

test('§4.11 merged: counters, histograms and quantities are summed, of delays the worst counts', () => {
  expect(mergeOpenMetrics([ONE, OTHER])).toBe(
    text(
      ...COUNTER,
      ...['calls_total{tool="a b} 1"} 42', 'calls_total{tool="only one"} 1'],
      'calls_total{tool="only the other"} 5',
      ...[...HISTOGRAM, 't_bucket{le="1"} 1', 't_bucket{le="+Inf"} 3', 't_sum 3.75', 't_count 3'],
      ...[...LAG, 'nodejs_eventloop_lag_p99_seconds 0.25'],
      ...[...MEMORY, 'process_resident_memory_bytes 111'],
    ),
  );
});

test('§4.11 merged: one text, with nothing beside it, stays what it is', () => {
  expect(mergeOpenMetrics([ONE, ''])).toBe(ONE);
});

test('§4.11 merged: of a process that has ended its counters and histograms remain', () => {
  expect(keepCounters(OTHER)).toBe(
    text(
      ...[...COUNTER, 'calls_total{tool="a b} 1"} 40', 'calls_total{tool="only the other"} 5'],
      ...[...HISTOGRAM, 't_bucket{le="1"} 0', 't_bucket{le="+Inf"} 1', 't_sum 0.25', 't_count 1'],
    ),
  );
});
