// §17: under faults, whoever calls gets the right answer, or a refusal that is true.
import { afterEach, expect, test } from 'vitest';
import { endPosterns, runPostern } from '../support/gateway/process.ts';

afterEach(endPosterns);

const runChaos = (...args: readonly string[]) =>
  runPostern({}, { npm: true, args: ['-s', 'chaos', '--', ...args] });

test('§17 faults: a client that knows every right answer sees no other, whatever breaks', {
  timeout: 300_000,
}, async () => {
  const { code, stdout, stderr } = await runChaos('--short');
  expect(stdout + stderr).not.toMatch(/^.* {2}missed *$|✗|could not be carried out/m);
  expect(code).toBe(0);
});

test('§17 faults: one that does not exist is refused, and the list names those that do', async () => {
  const refused = await runChaos('--only', 'redis-melted');
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain('No such fault: redis-melted');
  const { code, stdout } = await runChaos('--list');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^redis-killed$/m);
});
