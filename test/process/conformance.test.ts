// npm run start:conformance: for whoever points a tool of their own at it.
import { readdir } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import {
  endPosterns,
  isGroupAlive,
  makeFolder,
  runPostern,
  startPostern,
} from '../support/gateway/process.ts';

const NPM = { npm: true, args: ['start:conformance'] } as const;
/** npm itself takes its time. */
const SLOW = { timeout: 60_000 } as const;

afterEach(endPosterns);

test.each(['SIGTERM', 'SIGINT'] as const)(
  '§2.4 conformance: %s ends npm run start:conformance with exit code 0, and its data',
  SLOW,
  async (signal) => {
    const temporary = await makeFolder();
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
  const temporary = await makeFolder();
  const { code, stderr } = await runPostern(
    { TMPDIR: temporary, AUTH_REQUIRED: 'true', PORT: 'many' },
    NPM,
  );
  expect(code).toBe(1);
  expect(stderr).toContain('OIDC_ISSUER is missing');
  expect(stderr).toContain('PORT: "many" is not valid');
  expect(await dataIn(temporary)).toEqual([]);
});

test('§2.4 conformance: a taken port is said as npm start says it', SLOW, async () => {
  const other = createServer();
  await new Promise<void>((listening) => other.listen(0, '127.0.0.1', listening));
  const { port } = other.address() as AddressInfo;
  const env = { HOST: '127.0.0.1', AUTH_REQUIRED: 'false', PORT: String(port) };
  const [own, service] = await Promise.all([
    runPostern({ ...env, TMPDIR: await makeFolder() }, NPM),
    runPostern({ ...env, DATA_DIR: await makeFolder() }),
  ]);
  await new Promise((closed) => other.close(closed));
  // Each ends with what one types to choose another port.
  const [, said] =
    /^ {2}- (PORT: .* is in use .*, or choose another port: )/m.exec(service.stderr) ?? [];
  expect(own.code).toBe(1);
  expect(own.stderr.split('\n')).toContainEqual(expect.stringMatching(`^${said}PORT=\\d+$`));
  expect(own.stderr).not.toMatch(/^\s+at |EADDRINUSE/m);
});

const dataIn = async (temporary: string): Promise<readonly string[]> =>
  (await readdir(temporary)).filter((name) => name.startsWith('postern-conformance-data-'));
