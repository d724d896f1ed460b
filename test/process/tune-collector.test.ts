// A process that serves: how its young generation grows when calls come after a pause, and what is made in it.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const MODULE = new URL('../../src/cli/serve/tune-collector.ts', import.meta.url);

/** Prints its sizes while more and more outlives its collections. */
const SCRIPT = `
import { getHeapSpaceStatistics } from 'node:v8';
import { tuneCollector } from '${MODULE}';
const readSize = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size;
tuneCollector();
const sizes = [readSize()];
let kept = [];
for (let n = 0; n < 4_000_000; n += 1) {
  kept.push({ n, more: [n] });
  if (kept.length > 8_000) kept = kept.slice(4_000);
  if (n % 1_000 > 0) continue;
  const size = readSize();
  if (size > sizes.at(-1)) sizes.push(size);
}
console.log(JSON.stringify(sizes));
`;

/** How many times its size it got at most in one step. */
async function measureLargestStep(...options: readonly string[]): Promise<number> {
  const args = [...options, '--import', 'tsx', '--input-type=module', '--eval', SCRIPT];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const sizes: readonly number[] = JSON.parse(stdout);
  return Math.max(...sizes.slice(1).map((size, at) => size / (sizes[at] ?? size)));
}

test('the young generation grows fast, unless an option of node is about its size', async () => {
  expect(await measureLargestStep()).toBeGreaterThanOrEqual(8);
  expect(await measureLargestStep('--semi-space-growth-factor=2')).toBeLessThanOrEqual(4);
});

/** Prints how many bytes come into the old generation while as much is made as outlived many collections before. */
const MADE_SCRIPT = `
import { getHeapSpaceStatistics } from 'node:v8';
import { tuneCollector } from '${MODULE}';
tuneCollector();
const readOld = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space').space_used_size;
class Call {
  constructor(n) {
    this.n = n;
    this.more = [n];
  }
}
let kept = [];
for (let n = 0; n < 600_000; n += 1) {
  kept.push(new Call(n));
  if (kept.length > 200_000) kept = kept.slice(100_000);
}
const before = readOld();
for (let n = 0; n < 10_000; n += 1) kept.push(new Call(n));
console.log(readOld() - before);
`;

/** By one thread, so that V8 decides at the same time in each run. */
async function measureMadeOld(...options: readonly string[]): Promise<number> {
  const args = [
    '--single-threaded',
    ...options,
    '--import',
    'tsx',
    '--input-type=module',
    '--eval',
    MADE_SCRIPT,
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return Number(stdout);
}

test('what a call makes begins in the young generation, unless an option of node is about that', async () => {
  expect(await measureMadeOld()).toBeLessThan(100_000);
  // V8 of Node.js 24 does not decide so of this script.
  const left = process.versions.node.startsWith('20.') ? 400_000 : 0;
  expect(await measureMadeOld('--allocation-site-pretenuring')).toBeGreaterThan(left);
});
