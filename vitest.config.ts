import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/tools/longest-first.ts';

export default defineConfig({
  // The catalogue and the examples import the package by its name, and get its source (tsconfig.json, paths).
  resolve: {
    alias: [
      { find: /^postern$/, replacement: sourceOf('index.ts') },
      { find: /^postern\/define$/, replacement: sourceOf('define.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    // A worker loads the source once, and keeps what is dear to make: keys, a browser, tools.
    isolate: false,
    // Many tests wait for other processes: one worker more than there are cores.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/tools/global-setup.ts'],
    reporters: ['default', './test/support/tools/summary-reporter.ts'],
    // A browser on a busy machine takes its time; nothing here asserts by the clock.
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 60_000,
  },
});

function sourceOf(name: string): string {
  return fileURLToPath(new URL(`src/${name}`, import.meta.url));
}
