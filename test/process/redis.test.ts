// §2.1, §16: Redis by TLS and password, and replicas that share it.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, test } from 'vitest';
import {
  type Env,
  endPosterns,
  makeFolder,
  type RunningPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { checkSession, endSession, openSession, rpc } from '../support/gateway/process-http.ts';
import { authorize, register } from '../support/gateway/process-login.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { AUDIENCE, startIssuer } from '../support/oauth/issuer.ts';
import { type RedisOptions, type RedisServer, startRedis } from '../support/stores/redis.ts';

const PASSWORD = 'hunter2-of-redis';

let env: Env;

const issuer = useShared(startIssuer);
beforeAll(async () => {
  env = {
    OIDC_ISSUER: issuer.url,
    OIDC_AUDIENCE: AUDIENCE,
    OAUTH_AUTHORIZATION_URL: 'https://idp.example/authorize',
    OAUTH_CLIENT_ID: 'gateway',
    OAUTH_MODE: 'proxy',
  };
});
afterEach(endPosterns);

const redis = async (options: RedisOptions = {}): Promise<RedisServer> =>
  closeAfterTest(await startRedis(options));

/** As NODE_EXTRA_CA_CERTS takes it. */
async function caFile({ ca = '' }: RedisServer): Promise<string> {
  const path = join(await makeFolder(), 'ca.pem');
  await writeFile(path, ca);
  return path;
}

const readiness = async ({ url }: RunningPostern) => (await fetch(`${url}/health/ready`)).status;
const becomesReady = (postern: RunningPostern) =>
  expect.poll(() => readiness(postern), { timeout: 10_000 }).toBe(200);
const errorsOf = (postern: RunningPostern) =>
  postern.log().filter(({ level }) => level === 'error');

test('§2.1 Redis: TLS with an authority of its own, and a password', async () => {
  const server = await redis({ tls: true, password: PASSWORD });
  const withCa = { ...env, REDIS_URL: server.url, NODE_EXTRA_CA_CERTS: await caFile(server) };
  const postern = await startPostern(withCa);
  await becomesReady(postern);
  const token = await issuer.sign();
  const session = await openSession(postern.url, token);
  expect(await checkSession(postern.url, { session, token })).toBe(200);
  expect(await server.client().exists(`mcp:session:${session}`)).toBe(1);
  const clientId = await register(postern.url);
  expect(await authorize(postern.url, clientId)).toMatch(/^https:\/\/idp\.example\//);
  postern.kill('SIGTERM');
  expect(await postern.ended).toEqual({ code: 0, signal: null });
  expect(postern.log().filter(({ level }) => level !== 'info')).toEqual([]);
  expect(postern.stderr).not.toContain(PASSWORD);
});

test('§2.1 Redis: a certificate of an unknown authority is not believed', async () => {
  const server = await redis({ tls: true, password: PASSWORD });
  const postern = await startPostern({ ...env, REDIS_URL: server.url });
  await expect.poll(() => errorsOf(postern).length, { timeout: 10_000 }).toBe(1);
  expect(errorsOf(postern)[0]?.msg).toContain('REDIS_URL');
  expect(errorsOf(postern)[0]?.cause).toMatch(/certificate/i);
  expect(await readiness(postern)).toBe(503);
  expect(postern.stdout + postern.stderr).not.toContain(PASSWORD);
});

test.each([
  { what: 'a wrong password', given: PASSWORD, cause: /WRONGPASS|password/i },
  { what: 'no password', given: undefined, cause: /NOAUTH|Authentication required/i },
])(
  '§8.5 Redis: $what is one line that says what to do, without the password',
  async ({ given, cause }) => {
    const server = await redis({ password: 'hunter2-the-right-one' });
    const credentials = given === undefined ? '' : `:${given}@`;
    const postern = await startPostern({
      ...env,
      LOG_LEVEL: 'debug',
      REDIS_URL: `redis://${credentials}127.0.0.1:${server.port}`,
    });
    await expect.poll(() => errorsOf(postern).length, { timeout: 10_000 }).toBe(1);
    expect(errorsOf(postern)[0]?.msg).toMatch(/Check .*REDIS_URL/);
    expect(errorsOf(postern)[0]?.cause).toMatch(cause);
    expect(await readiness(postern)).toBe(503);
    const answer = await rpc(
      postern.url,
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      { token: await issuer.sign(), session: '6f1f4a4e-5b7f-4f0e-9d6c-0a1b2c3d4e5f' },
    );
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ error: { message: 'Internal Server Error' } });
    expect((await fetch(`${postern.url}/health`)).status).toBe(200);
    postern.kill('SIGTERM');
    expect(await postern.ended).toEqual({ code: 0, signal: null });
    expect(postern.stdout + postern.stderr).not.toContain('hunter2');
  },
);

test('§8.5 Redis: a database that it does not have is an outage that says so, never another database', async () => {
  const server = await redis();
  const postern = await startPostern({ ...env, REDIS_URL: `${server.url}/99` });
  await expect.poll(() => errorsOf(postern).length, { timeout: 10_000 }).toBe(1);
  expect(errorsOf(postern)[0]?.msg).toMatch(/Check .*REDIS_URL/);
  expect(errorsOf(postern)[0]?.cause).toContain('DB index is out of range');
  expect(await readiness(postern)).toBe(503);
  expect(await server.client().dbsize()).toBe(0);
});

test('§3.1 Redis: two processes are one service', async () => {
  const shared = { ...env, REDIS_URL: (await redis()).url };
  const [one, two] = await Promise.all([startPostern(shared), startPostern(shared)]);
  await becomesReady(one);
  await becomesReady(two);
  const token = await issuer.sign();
  const session = await openSession(one.url, token);
  expect(await checkSession(two.url, { session, token })).toBe(200);
  const clientId = await register(one.url);
  expect(await authorize(two.url, clientId)).toMatch(/^https:\/\/idp\.example\//);
  expect(await endSession(two.url, { session, token })).toBe(204);
  expect(await checkSession(one.url, { session, token })).toBe(404);
  expect(await endSession(one.url, { session, token })).toBe(404);
});

test('§3.1 Redis: a process that is killed takes no session with it', async () => {
  const shared = { ...env, REDIS_URL: (await redis()).url };
  const one = await startPostern(shared);
  await becomesReady(one);
  const token = await issuer.sign();
  const session = await openSession(one.url, token);
  one.kill('SIGKILL');
  await one.ended;
  const two = await startPostern(shared);
  await becomesReady(two);
  expect(await checkSession(two.url, { session, token })).toBe(200);
});

test('§8.2 Redis: two processes count one caller together', async () => {
  const shared = {
    ...env,
    REDIS_URL: (await redis()).url,
    AUTH_REQUIRED: 'false',
    MCP_RATE_LIMIT_MAX: '20',
  };
  const both = await Promise.all([startPostern(shared), startPostern(shared)]);
  for (const postern of both) await becomesReady(postern);
  const statuses: number[] = [];
  for (let turn = 0; turn < 24; turn += 1) {
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    statuses.push((await rpc(both[turn % 2]?.url ?? '', ping)).status);
  }
  expect(statuses).toEqual([...Array(20).fill(400), ...Array(4).fill(429)]);
});

test('§4.3 Redis: while it is down the service ends as it should', async () => {
  const server = await redis();
  const postern = await startPostern({ ...env, REDIS_URL: server.url });
  await becomesReady(postern);
  await server.kill();
  await expect.poll(() => readiness(postern), { timeout: 10_000 }).toBe(503);
  postern.kill('SIGTERM');
  expect(await postern.ended).toEqual({ code: 0, signal: null });
});
