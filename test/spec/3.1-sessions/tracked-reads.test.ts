// STORE_READS=tracked at the gateway: two replicas over one Redis, each of which remembers what it has read.
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import type { TestGateway } from '../../support/gateway/gateway.ts';
import { startTwoReplicas } from '../../support/gateway/two-replicas.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { type OwnTokenGateway, startOwnTokens } from '../../support/oauth/own-tokens.ts';
import { startRedis } from '../../support/stores/redis.ts';

const TTL = 3600;
/** So long after its end nothing that was ended is let in anywhere. */
const HOLDS_WITHIN_MS = 200;
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };

const TRACKED = {
  STORE_READS: 'tracked',
  // Windows are counted in Redis at each call.
  RATE_LIMIT_ENABLED: 'false',
  MCP_SESSION_TTL_SECONDS: String(TTL),
};

async function countScripts(client: Redis): Promise<number> {
  const stats = await client.info('commandstats');
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

/** Calls until one asks Redis for nothing. */
const warmUp = (client: Redis, send: () => Promise<{ readonly status: number }>) =>
  expect
    .poll(
      async () => {
        const before = await countScripts(client);
        expect((await send()).status).toBe(200);
        return (await countScripts(client)) - before;
      },
      { interval: 5 },
    )
    .toBe(0);

/** A call that begins 200 ms after something has ended is refused, whatever keeps this process from calling before. */
async function expectRefusal(
  status: number,
  endedAt: number,
  send: () => Promise<{ readonly status: number }>,
): Promise<void> {
  const statuses = new Set<number>();
  for (let startedAt = endedAt; startedAt - endedAt < 2 * HOLDS_WITHIN_MS; ) {
    startedAt = performance.now();
    const answer = await send();
    if (startedAt - endedAt >= HOLDS_WITHIN_MS) statuses.add(answer.status);
  }
  expect([...statuses]).toEqual([status]);
}

describe('sessions', () => {
  const replicas = useFresh(() => startTwoReplicas({ env: TRACKED }));
  let client: Redis;
  let session: string;
  let token: string;

  beforeEach(async () => {
    client = replicas.redis.client();
    token = await replicas.one.issuer.sign();
    session = await replicas.one.open({ token });
  });

  const ping = (at: TestGateway) => at.rpc(PING, { session, token });
  const end = (at: TestGateway) =>
    at.request({
      method: 'DELETE',
      path: '/mcp',
      headers: { authorization: `Bearer ${token}`, 'mcp-session-id': session },
    });

  test('§3.1 X-Session-Expires-At is the expiry as it is stored, and a known session is not asked for', async () => {
    await warmUp(client, () => ping(replicas.one));
    const stored = await client.hget(`mcp:session:${session}`, 'lastAccessedAt');
    const expiresAt = new Date(Number(stored) + TTL * 1000).toISOString();
    for (const at of [replicas.one, replicas.other]) {
      const { headers } = await ping(at);
      expect(headers['x-session-expires-at']).toBe(expiresAt);
    }
    expect(await client.hget(`mcp:session:${session}`, 'lastAccessedAt')).toBe(stored);
  });

  test('§3.1 after DELETE a session is gone at once there, and within 200 ms elsewhere', async () => {
    await warmUp(client, () => ping(replicas.one));
    await warmUp(client, () => ping(replicas.other));
    expect((await end(replicas.one)).status).toBe(204);
    const endedAt = performance.now();
    expect((await ping(replicas.one)).status).toBe(404);
    await expectRefusal(404, endedAt, () => ping(replicas.other));
    expect((await ping(replicas.one)).status).toBe(404);
  });

  test("§3.1 a known session is its user's alone", async () => {
    await warmUp(client, () => ping(replicas.one));
    const eves = await replicas.one.issuer.sign({ sub: 'eve' });
    const { status } = await replicas.one.rpc(PING, { session, token: eves });
    expect(status).toBe(404);
    expect((await ping(replicas.one)).status).toBe(200);
  });
});

test('§5.11 a login that was ended: its token is refused at once there, and soon elsewhere', async () => {
  const redis = closeAfterTest(await startRedis());
  const client = redis.client();
  const env = {
    ...TRACKED,
    REDIS_URL: redis.url,
    OAUTH_STATE_SECRET: 'one-secret-for-all-of-the-replicas',
  };
  const own = closeAfterTest(await startOwnTokens({ env }));
  const other = await own.open({});
  const ada = await own.logIn();
  const bystander = await own.logIn();
  const send = (at: OwnTokenGateway, access: string, id: string) => () =>
    at.gateway.rpc(PING, { session: id, token: access });
  const open = async (access: string) => {
    const { headers } = await own.call(access);
    return headers['mcp-session-id'] ?? '';
  };
  const adas = await open(ada.access);
  const adasHere = send(own, ada.access, adas);
  const adasThere = send(other, ada.access, adas);
  const others = send(other, bystander.access, await open(bystander.access));
  for (const call of [adasHere, adasThere, others]) await warmUp(client, call);

  const form = { token: ada.refresh, client_id: ada.client.id };
  expect((await own.steps.post('/oauth/revoke', form)).status).toBe(200);
  const { status, json } = await adasHere();
  expect([status, json.error.data.reason]).toEqual([401, 'token_revoked']);
  await expect.poll(async () => (await adasThere()).status, { interval: 1 }).toBe(401);
  expect((await others()).status).toBe(200);
});

test('§8.7, §11 with leased counting, too, calls in a session ask Redis for nothing but now and then for a share', async () => {
  const env = { ...TRACKED, RATE_LIMIT_ENABLED: 'true', RATE_LIMIT_COUNTING: 'leased' };
  const replicas = closeAfterTest(await startTwoReplicas({ env }));
  const client = replicas.redis.client();
  const token = await replicas.one.issuer.sign();
  const session = await replicas.one.open({ token });
  const ping = () => replicas.one.rpc(PING, { session, token });
  await warmUp(client, ping);
  const before = await countScripts(client);
  const CALLS = 300;
  for (let calls = 0; calls < CALLS; calls += 1) expect((await ping()).status).toBe(200);
  // Shares grow with what they are needed for; without them each call is one script.
  expect((await countScripts(client)) - before).toBeLessThan(CALLS / 10);
});

describe('settings', () => {
  const load = (env: Readonly<Record<string, string>>) => () =>
    loadConfig({ AUTH_REQUIRED: 'false', STORE_READS: 'tracked', ...env });

  test('§5 tracked reads need Redis, one or several with sentinels, but no cluster', () => {
    expect(load({})).toThrow(/STORE_READS: tracked needs REDIS_URL/);
    expect(load({ REDIS_URL: 'redis://127.0.0.1:6379?cluster=true' })).toThrow(
      /STORE_READS: tracked does not work with a Redis Cluster .* Set STORE_READS=direct/,
    );
    for (const REDIS_URL of ['rediss://127.0.0.1:6379/1', 'redis+sentinel://127.0.0.1/main']) {
      expect(load({ REDIS_URL })().store).toMatchObject({ kind: 'redis', reads: 'tracked' });
    }
    expect(load({ STORE_READS: 'always' })).toThrow(/direct or tracked/);
  });
});
