// npm run demo -- --token: for $(…), which takes what is on stdout.
import { afterEach, expect, test } from 'vitest';
import { endPosterns, runPostern, startPostern } from '../support/process.ts';

afterEach(endPosterns);

test('§5 the demo: without log-in there is no token to get, which it says', {
  timeout: 60_000,
}, async () => {
  const { port } = await startPostern({ AUTH_REQUIRED: 'false' });
  const demo = await runPostern(
    {},
    { npm: true, args: ['-s', 'demo', '--', '--token', `http://localhost:${port}`] },
  );
  expect(demo.code).toBe(1);
  expect(demo.stdout).toBe('');
  expect(demo.stderr).toMatch(/\nThis gateway needs no token \(AUTH_REQUIRED=false\)\.\n$/);
  expect(demo.stderr).not.toContain('Everything works.');
});
