// A process that writes to its error output as fast as it can leaves the gateway time for everybody else.
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { readErrorOutput } from '../../../src/servers/stdio/program.ts';
import { manualClock } from '../../support/gateway/clock.ts';

function start() {
  const clock = manualClock();
  const output = new PassThrough({ highWaterMark: 1_048_576 });
  const lines: string[] = [];
  readErrorOutput(output, clock, (line) => void lines.push(line.toString()));
  return { clock, output, lines };
}

test.each([
  ['short lines', 'x\n'.repeat(2000)],
  ['empty lines', '\n'.repeat(65_536)],
  ['long lines', `${'x'.repeat(200)}\n`.repeat(300)],
])('§18.4 error output of many %s waits, and is read on', async (_what, text) => {
  const { clock, output, lines } = start();
  output.write(text);
  await expect.poll(() => output.isPaused()).toBe(true);
  expect(lines.length).toBeLessThanOrEqual(2 * 8192);
  clock.advance(2000);
  output.write('the last words\n');
  await expect.poll(() => lines.at(-1)).toBe('the last words');
});

test('§18.4 of much error output at once its beginning and its end are looked at', async () => {
  const { output, lines } = start();
  output.write(`first\n${'between\n'.repeat(8000)}last\n`);
  await expect.poll(() => lines.at(-1)).toBe('last');
  expect(lines[0]).toBe('first');
  expect(new Set(lines)).toEqual(new Set(['first', 'between', 'last']));
});
