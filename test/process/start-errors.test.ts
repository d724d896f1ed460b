// §10: a wrong setting stops the start, and says what to do about it.
import { chmod, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { freePort } from '../support/gateway/ports.ts';
import {
  type Env,
  endPosterns,
  makeFolder,
  type Postern,
  runPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { readRefusal } from '../support/gateway/refused-start.ts';
import { runInside } from '../support/gateway/run-inside.ts';

afterEach(endPosterns);

const SECRETS = {
  REDIS_URL: 'http://:hunter2-redis@redis.example:6379',
  OAUTH_CLIENT_SECRET: 'hunter2-client',
} as const;

/** The lines below the heading, without their bullets. */
function problemsOf({ stderr }: Postern): readonly string[] {
  const [, ...lines] = stderr.trimEnd().split('\n');
  for (const line of lines) expect(line).toMatch(/^ {2}- \S/);
  return lines.map((line) => line.slice('  - '.length));
}

/** What every failed start has in common. */
function expectCleanFailure(postern: Postern & { readonly code: number | null }): void {
  expect(postern.code).toBe(1);
  expect(postern.log().filter(({ level }) => level !== 'info')).toEqual([]);
  expect(postern.stderr).not.toMatch(/^\s+at |node:internal|Error:|undefined|\[object/m);
}

test.each(['start', 'dev'])(
  '§10 start-up: %s names all wrong variables at once, what was given and what is allowed',
  async (command) => {
    const wrong: Env = {
      PORT: '70000',
      BASE_URL: 'ftp://gw.example',
      LOG_LEVEL: 'loud',
      MCP_SESSION_TTL_SECONDS: '59',
      OIDC_ISSUER: 'idp.example',
      OAUTH_TOKEN_URL: 'file:///etc/passwd',
      TRUST_PROXY: 'line\nbreak',
    };
    const postern = await runPostern({ ...wrong, ...SECRETS }, { args: [command] });
    expectCleanFailure(postern);
    expect(postern.stderr).toMatch(/^Invalid settings:\n/);
    const problems = problemsOf(postern);
    expect(problems.map((line) => line.split(':')[0]).sort()).toEqual(
      [...Object.keys(wrong), 'REDIS_URL'].sort(),
    );
    for (const line of problems) {
      const variable = line.split(':')[0] ?? '';
      const given = variable === 'REDIS_URL' ? '(not shown)' : JSON.stringify(wrong[variable]);
      expect(line).toContain(given);
      expect(line).toMatch(/ is not valid. It must be \S.+\.$/);
    }
    expect(postern.stderr).not.toContain('hunter2');
  },
);

test.each([
  { what: 'OIDC_ISSUER is missing', env: {}, line: /^OIDC_ISSUER is missing: .*AUTH_REQUIRED/ },
  { what: 'OIDC_ISSUER is empty', env: { OIDC_ISSUER: '' }, line: /^OIDC_ISSUER is missing: / },
  {
    what: 'a URL is not http(s)',
    env: { AUTH_REQUIRED: 'false', OAUTH_AUTHORIZATION_URL: 'ws://idp.example/authorize' },
    line: /^OAUTH_AUTHORIZATION_URL: "ws:\/\/idp\.example\/authorize" .* http or https URL/,
  },
  {
    what: 'PORT is 0',
    env: { AUTH_REQUIRED: 'false', PORT: '0' },
    line: /^PORT: "0" .* from 1 to 65535\.$/,
  },
  {
    what: 'PORT is out of range',
    env: { AUTH_REQUIRED: 'false', PORT: '65536' },
    line: /^PORT: "65536" .* from 1 to 65535\.$/,
  },
  {
    what: 'sessions would live for less than a minute',
    env: { AUTH_REQUIRED: 'false', MCP_SESSION_TTL_SECONDS: '59' },
    line: /^MCP_SESSION_TTL_SECONDS: "59" .* from 60 to /,
  },
  {
    what: 'a provider’s URL carries a password',
    env: { OIDC_ISSUER: 'https://me:hunter2-idp@idp.example' },
    line: /^OIDC_ISSUER: the value given \(not shown\) is not valid/,
  },
  {
    what: 'METRICS_PORT is PORT',
    env: { AUTH_REQUIRED: 'false', PORT: '9464', METRICS_PORT: '9464' },
    line: /^METRICS_PORT and PORT are the same\. /,
  },
  {
    what: 'shares are to be taken of windows that no other process counts in',
    env: { AUTH_REQUIRED: 'false', RATE_LIMIT_COUNTING: 'leased' },
    line: /^RATE_LIMIT_COUNTING: "leased" needs REDIS_URL.* Remove RATE_LIMIT_COUNTING, or set REDIS_URL, for example /,
  },
])('§10 start-up: one line when $what', async ({ env, line }) => {
  const problems = await readRefusal({
    ...env,
    OAUTH_CLIENT_SECRET: SECRETS.OAUTH_CLIENT_SECRET,
  });
  expect(problems).toEqual([expect.stringMatching(line)]);
  expect(problems.join()).not.toContain('hunter2');
});

test('§10 start-up: an unknown command is answered with the nearest one', async () => {
  const postern = await runInside({}, { args: ['strat'] });
  expect(postern.code).toBe(2);
  expect(postern.stderr).toBe(
    'Unknown command: strat. Did you mean start?\npostern --help lists all commands.\n',
  );
});

test('§10 start-up: the development provider does not start in production', async () => {
  const postern = await runPostern({ NODE_ENV: 'production' }, { args: ['dev'] });
  expectCleanFailure(postern);
  expect(problemsOf(postern)).toEqual([expect.stringMatching(/^NODE_ENV: .*postern start/)]);
});

test.each(['start', 'dev'])(
  '§10 start-up: %s says in one line that the port is taken, and lets go of DATA_DIR',
  async (command) => {
    const taken = createServer();
    await new Promise<void>((listening) => taken.listen(0, '127.0.0.1', listening));
    const address = taken.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const env = { HOST: '127.0.0.1', AUTH_REQUIRED: 'false', DATA_DIR: await makeFolder() };
    const postern = await runPostern({ ...env, PORT: String(port) }, { args: [command] });
    await new Promise((closed) => taken.close(closed));
    expectCleanFailure(postern);
    const other = `${command} --port ${port + 10}`;
    expect(problemsOf(postern)).toEqual([
      expect.stringMatching(
        `^PORT: port ${port} .*in use.* another port: node .*main.js ${other}$`,
      ),
    ]);
    await startPostern(env, { args: [command] });
  },
);

test('§10 start-up: an address that is not of this machine is one line that names HOST', async () => {
  // RFC 5737: of documentation, nobody's.
  const env = { HOST: '192.0.2.1', AUTH_REQUIRED: 'false', DATA_DIR: await makeFolder() };
  const postern = await runPostern({ ...env, PORT: String(await freePort()) });
  expect(postern.code).toBe(1);
  expect(problemsOf(postern)).toEqual([expect.stringMatching(/^HOST: .*192\.0\.2\.1/)]);
});

test('§10 start-up: a second process on one DATA_DIR is refused, and the first serves on', async () => {
  const env = { AUTH_REQUIRED: 'false', DATA_DIR: await makeFolder() };
  const first = await startPostern(env);
  for (const command of ['start', 'dev']) {
    const second = await runPostern(
      { ...env, HOST: '127.0.0.1', PORT: String(await freePort()) },
      { args: [command] },
    );
    expectCleanFailure(second);
    expect(problemsOf(second)).toEqual([
      expect.stringMatching(
        `^DATA_DIR: .*${env.DATA_DIR} is in use by another process.* DATA_DIR=./data-2 node .* --port`,
      ),
    ]);
    expect((await fetch(`${first.url}/health/ready`)).status).toBe(200);
  }
  first.kill('SIGTERM');
  expect(await first.ended).toEqual({ code: 0, signal: null });
  await startPostern(env);
});

test.each([
  { what: 'a file', path: async (file: string) => file },
  { what: 'below a file', path: async (file: string) => join(file, 'data') },
  { what: 'too long', path: async () => join(await makeFolder(), 'x'.repeat(120)) },
])('§10 start-up: a DATA_DIR that is $what is one line that names it', async ({ path }) => {
  const file = join(await makeFolder(), 'file');
  await writeFile(file, '');
  const dataDir = await path(file);
  const port = String(await freePort());
  const env = { AUTH_REQUIRED: 'false', HOST: '127.0.0.1', PORT: port, DATA_DIR: dataDir };
  const postern = await runPostern(env);
  expectCleanFailure(postern);
  expect(problemsOf(postern)).toEqual([expect.stringMatching(/^DATA_DIR: /)]);
  expect(postern.stderr).toContain(dataDir);
});

test.each([
  { what: 'short', content: 'a', mode: 0o600, says: /holds only 1 of at least 32 bytes/ },
  { what: 'world-readable', content: 'x'.repeat(43), mode: 0o644, says: /every user/ },
])('§10 start-up: a kept secret that is $what is one line that names it', async (row) => {
  const dataDir = await makeFolder();
  const file = join(dataDir, 'oauth-state-secret');
  await writeFile(file, row.content);
  await chmod(file, row.mode);
  const postern = await runPostern({
    HOST: '127.0.0.1',
    PORT: String(await freePort()),
    DATA_DIR: dataDir,
    OIDC_ISSUER: 'http://127.0.0.1:9',
    OAUTH_MODE: 'broker',
    OAUTH_CLIENT_ID: 'client',
  });
  expectCleanFailure(postern);
  expect(problemsOf(postern)).toEqual([expect.stringMatching(`^DATA_DIR: ${file} `)]);
  expect(postern.stderr).toMatch(row.says);
});

test('§10 start-up: a BASE_URL that ends in /mcp is one line that says what to set', async () => {
  const env = { AUTH_REQUIRED: 'false', BASE_URL: 'http://localhost/mcp/' };
  expect(await readRefusal(env)).toEqual([
    expect.stringMatching(
      /^BASE_URL: "http:\/\/localhost\/mcp" .*Set BASE_URL=http:\/\/localhost /,
    ),
  ]);
});

test('§9 an older Node.js is told in one sentence, before anything is loaded that it cannot read', async () => {
  const older =
    "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.8' } });";
  const { code, stdout, stderr } = await runPostern(
    { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(older)}` },
    { args: ['start'] },
  );
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^Postern needs Node\.js 24 .*nvm install 24.*npm ci again\.\n$/);
});

test('§10 start-up: dev says what to set where DATA_DIR cannot be written', async () => {
  const file = join(await makeFolder(), 'file');
  await writeFile(file, '');
  const env = { DATA_DIR: join(file, 'data'), HOST: '127.0.0.1' };
  const postern = await runPostern({ ...env, PORT: String(await freePort()) }, { args: ['dev'] });
  expectCleanFailure(postern);
  expect(problemsOf(postern)).toEqual([
    expect.stringMatching(/^DATA_DIR: the folder \S+\/file\/data cannot be written .* DATA_DIR=/),
  ]);
});

test('§20.1 dev: what is set for tokens of the gateway’s own is taken, as dev issues them', async () => {
  const cwd = await makeFolder();
  const own = { OAUTH_ACCESS_TTL_SECONDS: '1800', LOGIN_ALLOWED_EMAILS: '*@example.com' };
  const postern = await startPostern(own, { args: ['dev'], cwd });
  const answer = await fetch(`${postern.url}/mcp`, { method: 'POST' });
  expect(answer.status).toBe(401);
});

test('§20.1 dev: in proxy mode the same settings are refused', async () => {
  const postern = await runPostern(
    { OAUTH_MODE: 'proxy', OAUTH_ACCESS_TTL_SECONDS: '1800', PORT: String(await freePort()) },
    { args: ['dev'] },
  );
  expectCleanFailure(postern);
  expect(problemsOf(postern)).toEqual([
    expect.stringMatching(/^OAUTH_ACCESS_TTL_SECONDS is for the gateway's own tokens/),
  ]);
});
