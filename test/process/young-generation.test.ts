// A process that serves: how its young generation grows when calls come after a pause.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const MODULE = new URL('../../src/cli/serve/young-generation.ts', import.meta.url);

/** Prints its sizes while more and more outlives its collections. */
const SCRIPT = `
import { getHeapSpaceStatistics } from 'node:v8';
import { growYoungGenerationFast } from '${MODULE}';
const readSize = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size;
growYoungGenerationFast();
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
