// npm run demo -- --token: for $(…), which takes what is on stdout.
import { createServer } from 'node:http';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { createAuthorization } from '../../scripts/demo/authorization.ts';
import { listenForCallback } from '../../scripts/demo/callback.ts';
import { explainError } from '../../scripts/demo/explain-error.ts';
import { logInAs } from '../../scripts/demo/login.ts';
import { catalogModule, writeFileIn } from '../support/catalogs/catalog-files.ts';
import { freePort } from '../support/gateway/ports.ts';
import { endPosterns, makeFolder, runPostern, startPostern } from '../support/gateway/process.ts';

afterEach(endPosterns);

test('§5 the demo: without login there is no token to get, which it says', {
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

test.each([
  ['PORT', (port: number) => String(port)],
  ['BASE_URL', (port: number) => `http://localhost:${port}`],
] as const)(
  '§5 the demo: without an address it goes to the gateway that %s names',
  {
    timeout: 60_000,
  },
  async (variable, describePort) => {
    const { port } = await startPostern({ AUTH_REQUIRED: 'false' });
    const demo = await runPostern(
      { [variable]: describePort(Number(port)) },
      { npm: true, args: ['-s', 'demo', '--', '--token'] },
    );
    expect(demo.stderr).toContain(`Connecting to http://localhost:${port}/mcp`);
  },
);

test('§5 the demo: of another catalogue it lists what there is, and calls nothing', {
  timeout: 60_000,
}, async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'catalog.mjs', catalogModule('mine'));
  const { port } = await startPostern(
    { AUTH_REQUIRED: 'false' },
    { args: ['start', '--catalog', 'catalog.mjs'], cwd },
  );
  const demo = await runPostern(
    {},
    { npm: true, args: ['-s', 'demo', '--', `http://localhost:${port}`] },
  );
  expect(demo.stderr).toBe('');
  expect(demo.stdout).toMatch(/tools\/list\n +say, me\n/);
  expect(demo.stdout).toContain('the demo calls built-in entries only');
  expect(demo.stdout).not.toContain('tools/call');
  expect(demo.stdout).toContain('Everything works.');
  expect(demo.code).toBe(0);
});

test.each([200, 404, 405])(
  '§5 the demo: another program at the address, which answers with %d, is called that',
  { timeout: 60_000 },
  async (status) => {
    const port = await freePort();
    const other = createServer((_request, response) => void response.writeHead(status).end('no'));
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const url = `http://127.0.0.1:${port}`;
    const demo = await runPostern({}, { npm: true, args: ['-s', 'demo', url] });
    expect(demo.code).toBe(1);
    expect(demo.stderr).toContain(`What answers at ${url}/mcp is no MCP server`);
  },
);

test('§5 the demo: a provider that does not answer is named', async () => {
  const provider = `http://127.0.0.1:${await freePort()}`;
  const redirecting = createServer((_request, response) => {
    response.writeHead(302, { location: `${provider}/auth` }).end();
  });
  const port = await freePort();
  await new Promise<void>((resolve) => void redirecting.listen(port, '127.0.0.1', resolve));
  const gateway = new URL(`http://127.0.0.1:${port}/mcp`);
  const error = await logInAs('ada', gateway, 'http://127.0.0.1/callback').catch(
    (reason: unknown) => reason,
  );
  redirecting.close();
  expect(explainError(error, gateway)).toBe(
    `Nothing answers at ${provider}, where the login continues. Is the provider running?`,
  );
});

test('§5 the demo: where a person must log in, it says how long it waits, and gives up', async () => {
  const provider = createServer((_request, response) => void response.end('Your password?'));
  const port = await freePort();
  await new Promise<void>((resolve) => void provider.listen(port, '127.0.0.1', resolve));
  const callback = await listenForCallback();
  const lines: string[] = [];
  const authorization = createAuthorization({
    callback,
    name: 'ada',
    printLine: (line) => void lines.push(line),
    noteRequest: () => {},
    patienceMinutes: 0,
    openPage: () => {},
  });
  await authorization.redirectToAuthorization(new URL(`http://127.0.0.1:${port}/auth`));
  await expect(authorization.waitForCode()).rejects.toThrow('Nobody logged in within 0 minutes.');
  expect(lines[0]).toBe('Log in with your browser. This waits 0 minutes for it:');
  callback.close();
  provider.close();
});

test.each(['demo', 'compose', 'clients'])(
  '§2.4 npm run %s: --help is printed, an unknown option refused',
  async (script) => {
    const run = (option: string) =>
      runPostern({}, { npm: true, args: ['-s', script, '--', option] });
    const helped = await run('--help');
    expect(helped).toMatchObject({ code: 0, stderr: '' });
    expect(helped.stdout).toMatch(`Usage: npm run ${script}`);
    const refused = await run('--nonsense');
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toMatch(/^Unknown option '--nonsense'\.\n\nUsage: /);
  },
);
