import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/tools/longest-first.ts';

const BROWSER = ['test/clients/browser*.test.ts'];

/** What is shipped around the code. It is the same whatever Node.js runs the tests, so CI looks at it once. */
const PACKAGING = [
  'test/process/{compose,helm-chart,image,monitoring,package,release,starter}.test.ts',
];

/** Everything that can break, broken under load: minutes, of which CI spends one round. */
const FAULTS = ['test/process/chaos.test.ts'];

/** These load the machine on purpose: what others started would look dead to them. */
const BUSY = [
  'test/contract/redis-faults.test.ts',
  'test/process/{overload,starvation}.test.ts',
  'test/spec/4.4-mcp/isolation.test.ts',
  'test/spec/18-upstreams/relay-isolation.test.ts',
];

export default defineConfig({
  // The catalogue and the examples import the package by its name, and get its source (tsconfig.json, paths).
  resolve: {
    alias: [
      { find: /^postern$/, replacement: sourceOf('index.ts') },
      { find: /^postern\/define$/, replacement: sourceOf('define.ts') },
      { find: /^postern\/testing$/, replacement: sourceOf('testing.ts') },
    ],
  },
  test: {
    projects: [
      project('side by side', ['test/**/*.test.ts'], together(0), [
        ...BROWSER,
        ...PACKAGING,
        ...FAULTS,
        ...BUSY,
      ]),
      project('browser', BROWSER, together(0)),
      project('packaging', PACKAGING, together(0)),
      project('one by one', BUSY, alone(1)),
      project('faults', FAULTS, alone(2)),
    ],
    // A worker loads the source once, and keeps what is dear to make: keys, a browser, tools.
    isolate: false,
    sequence: { sequencer: LongestFirst },

    reporters: ['default', './test/support/tools/summary-reporter.ts'],
    // A browser on a busy machine takes its time; nothing here asserts by the clock.
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 60_000,
  },
});

function project(
  name: string,
  include: string[],
  schedule: { maxWorkers: number; sequence: { groupOrder: number } },
  exclude: string[] = [],
) {
  return { extends: true as const, test: { name, include, exclude, ...schedule } };
}

/** What shares a number runs together; the numbers follow one another. */
function together(groupOrder: number) {
  return {
    // Many tests wait for other processes: one worker more than there are cores.
    maxWorkers: availableParallelism() + 1,
    sequence: { groupOrder },
  };
}

function alone(groupOrder: number) {
  return { ...together(groupOrder), maxWorkers: 1 };
}

function sourceOf(name: string): string {
  return fileURLToPath(new URL(`src/${name}`, import.meta.url));
}
