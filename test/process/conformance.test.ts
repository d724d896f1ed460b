// npm run start:conformance: for whoever points a tool of their own at it.
import { readdir } from 'node:fs/promises';
import { afterEach, expect, test } from 'vitest';
import { endPosterns, folder, isGroupAlive, runPostern, startPostern } from '../support/process.ts';

const NPM = { npm: true, args: ['start:conformance'] } as const;
/** npm itself takes its time. */
const SLOW = { timeout: 60_000 } as const;

afterEach(endPosterns);

test.each(['SIGTERM', 'SIGINT'] as const)(
  '§2.4 conformance: %s ends npm run start:conformance with exit code 0, and its data',
  SLOW,
  async (signal) => {
    const temporary = await folder();
    const npm = await startPostern({ TMPDIR: temporary }, NPM);
    expect(npm.stdout).toContain(`MCP URL: http://localhost:${npm.port}/mcp\n`);
    expect(await dataIn(temporary)).toHaveLength(1);
    // A terminal sends Ctrl+C to all of a group; a container sends SIGTERM to its first process.
    if (signal === 'SIGINT') process.kill(-npm.pid, signal);
    else npm.kill(signal);
    expect(await npm.ended).toEqual({ code: 0, signal: null });
    // Its compiler is a child that ends when nobody needs it any more: a moment later.
    await expect.poll(() => isGroupAlive(npm.pid), { timeout: 10_000 }).toBe(false);
    expect(await dataIn(temporary)).toEqual([]);
  },
);

test('§2.4 conformance: its settings are the service’s own', SLOW, async () => {
  const temporary = await folder();
  const { code, stderr } = await runPostern(
    { TMPDIR: temporary, AUTH_REQUIRED: 'true', PORT: 'many' },
    NPM,
  );
  expect(code).toBe(1);
  expect(stderr).toContain('OIDC_ISSUER is missing');
  expect(stderr).toContain('PORT: "many" is not allowed');
  expect(await dataIn(temporary)).toEqual([]);
});

const dataIn = async (temporary: string): Promise<readonly string[]> =>
  (await readdir(temporary)).filter((name) => name.startsWith('postern-conformance-data-'));
