import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Examples import the package by its name: what they get is its source (tsconfig.json, paths).
  resolve: { alias: { postern: fileURLToPath(new URL('src/index.ts', import.meta.url)) } },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/tools/global-setup.ts'],
    reporters: ['default', './test/support/tools/summary-reporter.ts'],
    // A browser on a busy machine takes its time; nothing here asserts by the clock.
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 60_000,
  },
});
