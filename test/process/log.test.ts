// §10: what a service prints.
import { afterEach, beforeAll, expect, test } from 'vitest';
import {
  type Env,
  endPosterns,
  type RunningPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { checkSession, isRefused, openSession, rpc } from '../support/gateway/process-http.ts';
import { logIn, register } from '../support/gateway/process-login.ts';
import { sendRaw, statusesOf } from '../support/gateway/raw-http.ts';
import { useShared } from '../support/lifetimes.ts';
import { AUDIENCE, startIssuer } from '../support/oauth/issuer.ts';

const issuer = useShared(startIssuer);
let env: Env;
beforeAll(() => {
  env = { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, OAUTH_MODE: 'proxy' };
});
afterEach(endPosterns);

const isReady = async ({ url }: RunningPostern) =>
  (await fetch(`${url}/health/ready`)).status === 200;

/** Nothing but an end of line may reach a terminal unescaped. */
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]/;

function expectLogLines(postern: RunningPostern): void {
  const lines = postern.log();
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    expect(line.level).toMatch(/^(error|warn|info|debug)$/);
    expect(line.msg).toMatch(/\S/);
    expect(new Date(String(line.time)).toISOString()).toBe(line.time);
  }
}

test('§5 log: a healthy life prints JSON lines at info, and nothing at warn or error', async () => {
  const postern = await startPostern(env);
  await expect.poll(() => isReady(postern), { timeout: 10_000 }).toBe(true);
  const token = await issuer.sign();
  const session = await openSession(postern.url, token);
  expect(await checkSession(postern.url, { session, token })).toBe(200);
  postern.kill('SIGTERM');
  await postern.ended;
  expectLogLines(postern);
  expect(new Set(postern.log().map(({ level }) => level))).toEqual(new Set(['info']));
  expect(postern.log()).toContainEqual(
    expect.objectContaining({
      msg: 'Listening.',
      port: postern.port,
      mode: 'proxy',
      issuer: env.OIDC_ISSUER,
      store: `embedded in ${postern.dataDir}`,
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: process.version,
    }),
  );
  expect(postern.stderr).toBe('');
});

test.each([
  { level: 'error', shown: [] },
  { level: 'info', shown: ['info'] },
  { level: 'debug', shown: ['info', 'debug'] },
])('§5 log: LOG_LEVEL=$level shows what it says', async ({ level, shown }) => {
  const postern = await startPostern({ ...env, LOG_LEVEL: level });
  await expect.poll(() => isReady(postern), { timeout: 10_000 }).toBe(true);
  expect((await rpc(postern.url, {})).status).toBe(401);
  postern.kill('SIGTERM');
  await postern.ended;
  expect(new Set(postern.log().map((line) => line.level))).toEqual(new Set(shown));
});

test('§5 log: listening on all addresses without a BASE_URL is worth one warning', async () => {
  const postern = await startPostern({ ...env, HOST: '0.0.0.0' });
  const warnings = postern.log().filter(({ level }) => level === 'warn');
  expect(warnings.map(({ msg }) => msg)).toEqual([expect.stringMatching(/^BASE_URL is not set/)]);
  const careful = await startPostern({
    ...env,
    HOST: '0.0.0.0',
    BASE_URL: `http://localhost:${postern.port}`,
  });
  expect(careful.log().map(({ level }) => level)).not.toContain('warn');
});

test('§5 log: a misspelled variable is a warning with the nearest name, and never its value', async () => {
  const foreign = {
    POSTERN_PORT_3000_TCP: 'tcp://10.0.0.1:3000',
    NODE_OPTIONS: '',
    HTTP_PROXY: '',
  };
  const misspelled = { MCP_RATE_LIMIT: '5', OAUTH_CLIENT_SECERT: 'hunter2' };
  const postern = await startPostern({ ...env, ...foreign, ...misspelled });
  const warnings = postern.log().filter(({ level }) => level === 'warn');
  expect(warnings.map(({ variable, nearest }) => [variable, nearest])).toEqual([
    ['MCP_RATE_LIMIT', 'MCP_RATE_LIMIT_MAX'],
    ['OAUTH_CLIENT_SECERT', 'OAUTH_CLIENT_SECRET'],
  ]);
  for (const { msg, nearest } of warnings) expect(msg).toContain(nearest);
  expect(postern.stdout).not.toContain('hunter2');
});

/** What breaks lines, quotes, terminals and parsers. */
const NAUGHTY = [
  'a\nb',
  'a\r\n{"level":"error","msg":"forged"}',
  '"quoted" \\ back\\"slash',
  '\u2028 and \u2029',
  '\u001b[2J\u001b[31mred\u001b]0;title\u0007',
  '\u009b31m\u0085',
  '\u0000\u0007\u007f',
  '\ud800 alone',
  '%0a%0d%1b[31m',
  '<script>{{7*7}}</script>',
  '\u202eright to left',
  '\u200e\u061c\u200b\ufeff\u{e0041} not seen',
  '\ufe0f\u{e0100}\u180b\u034f\u115f\u3164\uffa0\u2800 not seen either',
];

test('§5 log: whatever a request carries, every line stays one JSON object', async () => {
  const postern = await startPostern({ ...env, AUTH_REQUIRED: 'false', LOG_LEVEL: 'debug' });
  const session = await openSession(postern.url);
  for (const text of NAUGHTY) {
    await register(postern.url, { client_name: text, scope: text }).catch(() => {});
    for (const method of [text, 'tools/call', 'prompts/get', 'resources/read']) {
      const params = { name: text, uri: text, arguments: { [text]: text } };
      await rpc(postern.url, { jsonrpc: '2.0', id: text, method, params }, { session });
    }
    const bytes = Buffer.from(text)
      .toString('latin1')
      .replace(/[\r\n]/g, '\t');
    for (const head of [
      `GET /${bytes} HTTP/1.1\r\nHost: localhost`,
      `GET /health?${bytes} HTTP/1.1\r\nHost: localhost`,
      `${bytes} / HTTP/1.1\r\nHost: localhost`,
      `GET /nowhere HTTP/1.1\r\nHost: ${bytes}`,
      `GET /nowhere HTTP/1.1\r\nHost: localhost\r\nUser-Agent: ${bytes}`,
      `GET /nowhere HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: ${bytes}`,
      `GET /nowhere HTTP/1.1\r\nHost: localhost\r\nOrigin: ${bytes}`,
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nMcp-Session-Id: ${bytes}`,
    ]) {
      const request = Buffer.from(`${head}\r\nConnection: close\r\n\r\n`, 'latin1');
      expect(statusesOf(await sendRaw(postern.port, request))).toHaveLength(1);
    }
  }
  postern.kill('SIGTERM');
  await postern.ended;
  expectLogLines(postern);
  expect(postern.stdout).not.toMatch(
    /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u,
  );
  // Each was seen at all: a path of each text, and the names in the bodies.
  expect(postern.log().length).toBeGreaterThan(NAUGHTY.length * 8);
  expect(postern.log().filter(({ msg }) => msg === 'forged')).toEqual([]);
  expect(postern.stdout.split('\n').filter((line) => CONTROL.test(line))).toEqual([]);
  expect(postern.stderr).toBe('');
});

test('§5 log: of a resource its URI is told, without what queries and user info carry', async () => {
  const postern = await startPostern({ ...env, AUTH_REQUIRED: 'false', LOG_LEVEL: 'debug' });
  const session = await openSession(postern.url);
  const params = { name: 'service_ping', uri: 'x://ann:hunter2@h/a?key=hunter3#hunter4' };
  await rpc(postern.url, { jsonrpc: '2.0', id: 1, method: 'resources/read', params }, { session });
  await expect
    .poll(() => postern.log().find(({ rpc: method }) => method === 'resources/read'))
    .toMatchObject({ of: 'x://h/a', error: 'invalid_params' });
  expect(postern.stdout).not.toContain('hunter');
});

test('§5 log: postern dev says where it is, lets a name in, and complains of nothing', async () => {
  const postern = await startPostern({}, { args: ['dev'] });
  const baseUrl = `http://localhost:${postern.port}`;
  await expect.poll(() => postern.stdout).toContain(`MCP URL   ${baseUrl}/mcp`);
  const printed = /no password \((http:\/\/localhost:(\d+))\)/.exec(postern.stdout);
  expect(Number(printed?.[2])).toBeGreaterThan(postern.port);
  const { accessToken: token } = await logIn(baseUrl, 'ada');
  const session = await openSession(baseUrl, token);
  expect(await checkSession(baseUrl, { session, token })).toBe(200);
  postern.kill('SIGTERM');
  expect(await postern.ended).toEqual({ code: 0, signal: null });
  expect(await isRefused(Number(printed?.[2]))).toBe(true);
  // A warning, as text.
  expect(postern.stdout).not.toMatch(/^\d\d:\d\d:\d\d [!✗] /m);
  expect(postern.stderr).toBe('');
});
