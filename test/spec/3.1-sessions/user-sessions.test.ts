// §12: MCP_USER_SESSIONS_MAX, by the front door.
import type { Redis } from 'ioredis';
import { beforeAll, describe, expect, test } from 'vitest';
import { createChangingResources } from '../../support/catalogs/changing-resources.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { startTwoReplicas } from '../../support/gateway/two-replicas.ts';
import { useShared } from '../../support/lifetimes.ts';

const MAX = 3;
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };

const statusOf = async (gateway: TestGateway, session: string, token: string) =>
  (await gateway.rpc(PING, { session, token })).status;

const counted = async (gateways: readonly TestGateway[], status: string) => {
  const counts = gateways.map((one) => seriesOf(one, 'mcp_sessions_total', { status }));
  return (await Promise.all(counts)).reduce<number>((sum, count) => sum + (count ?? 0), 0);
};

/** Of sessions that expire in the same millisecond none is the first; Redis is out by one at most. */
async function waitForNextExpiry(redis: Redis): Promise<void> {
  const readTime = async () => {
    const [seconds, microseconds] = await redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  };
  const now = await readTime();
  await expect.poll(readTime, { interval: 1 }).toBeGreaterThan(now + 2);
}

describe('a user at MCP_USER_SESSIONS_MAX', () => {
  const { catalog } = createChangingResources();
  const env = { MCP_USER_SESSIONS_MAX: String(MAX), MCP_STREAMS: 'true' };
  const pair = useShared(() => startTwoReplicas({ env, deps: { catalog } }));
  let both: readonly TestGateway[];
  beforeAll(() => {
    both = [pair.one, pair.other];
  });

  test('§3.1 opening one more ends the one that expires first, as after DELETE', async () => {
    const token = await pair.one.issuer.sign({ sub: 'ada' });
    const sessions: string[] = [];
    const redis = pair.redis.client();
    for (let left = MAX; left > 0; left -= 1) {
      sessions.push(await pair.one.open({ token }));
      await waitForNextExpiry(redis);
    }
    const [first = '', second = ''] = sessions;
    // Whoever works on keeps working.
    expect(await statusOf(pair.other, first, token)).toBe(200);
    const terminated = await counted(both, 'terminated');
    const next = await pair.other.open({ token });
    const refused = await pair.one.rpc(PING, { session: second, token });
    expect(refused.status).toBe(404);
    expect(refused.json.error.data.reason).toBe('session_not_found');
    expect(await statusOf(pair.one, first, token)).toBe(200);
    expect(await statusOf(pair.one, next, token)).toBe(200);
    expect(await counted(both, 'terminated')).toBe(terminated + 1);
    expect(await counted(both, 'expired')).toBe(0);
  });

  test('§3.1 another user is not concerned', async () => {
    const token = await pair.one.issuer.sign({ sub: 'bob' });
    const eves = await pair.one.issuer.sign({ sub: 'eve' });
    const session = await pair.one.open({ token });
    for (let left = 2 * MAX; left > 0; left -= 1) await pair.other.open({ token: eves });
    expect(await statusOf(pair.one, session, token)).toBe(200);
  });

  test('§3.1 of 50 opened at once over two replicas, the limit is left', async () => {
    const token = await pair.one.issuer.sign({ sub: 'carol' });
    const created = await counted(both, 'created');
    const terminated = await counted(both, 'terminated');
    const sessions = await Promise.all(
      Array.from({ length: 50 }, (_, at) => (at % 2 ? pair.one : pair.other).open({ token })),
    );
    const statuses = await Promise.all(sessions.map((id) => statusOf(pair.one, id, token)));
    expect(statuses.filter((status) => status === 200)).toHaveLength(MAX);
    expect(statuses.filter((status) => status === 404)).toHaveLength(50 - MAX);
    expect(await counted(both, 'created')).toBe(created + 50);
    expect(await counted(both, 'terminated')).toBe(terminated + 50 - MAX);
  });

  test('§3.1 the stream of the ended session ends, at the other replica as well', async () => {
    const token = await pair.one.issuer.sign({ sub: 'dave' });
    const client = await openClient(pair.one, { token });
    const stream = await (await client.at(pair.other)).watch();
    for (let left = MAX; left > 0; left -= 1) await pair.one.open({ token });
    expect(await stream.rest()).toEqual([]);
  });

  test('§3.1 what is kept of it: one sorted set that ends by itself', async () => {
    const redis = pair.redis.client();
    const before = new Set(await redis.keys('*'));
    const token = await pair.one.issuer.sign({ sub: 'a very private name' });
    const session = await pair.one.open({ token });
    const added = (await redis.keys('*')).filter((key) => !before.has(key));
    const [set = '', ...others] = added.filter((key) => key.startsWith('mcp:session:user:'));
    expect(others).toEqual([]);
    expect(set).not.toContain('private');
    expect(await redis.zcard(set)).toBe(1);
    expect(await redis.zscore(set, session)).not.toBeNull();
    expect(await redis.ttl(set)).toBeGreaterThan(86_400);
    await pair.other.request({
      method: 'DELETE',
      path: '/mcp',
      headers: { authorization: `Bearer ${token}`, 'mcp-session-id': session },
    });
    expect(await redis.exists(set)).toBe(0);
  });

  test('§3.1 initialize is one command at Redis, also at the limit', async () => {
    const token = await pair.one.issuer.sign({ sub: 'erin' });
    for (let left = MAX + 1; left > 0; left -= 1) await pair.one.open({ token });
    const monitor = await pair.redis.client().monitor();
    const seen: string[] = [];
    monitor.on('monitor', (...[, args, source]: unknown[]) => {
      if (source !== 'lua' && Array.isArray(args)) seen.push(String(args[0]).toLowerCase());
    });
    const { status } = await pair.one.rpc(
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '', capabilities: {} },
      },
      { token },
    );
    expect(status).toBe(200);
    // The limits' step, the session's, and word to streams elsewhere.
    await expect.poll(() => seen).toEqual(['evalsha', 'evalsha', 'publish']);
    monitor.disconnect();
  });
});

describe('who has no limit', () => {
  test.each([
    { what: 'MCP_USER_SESSIONS_MAX=0', env: { MCP_USER_SESSIONS_MAX: '0' } },
    { what: 'nobody logs in', env: { AUTH_REQUIRED: 'false', MCP_USER_SESSIONS_MAX: '1' } },
  ])('§3.1 $what: all sessions live', async ({ env }) => {
    const gateway = await startGateway({ env });
    const token = await gateway.issuer.sign();
    const sessions: string[] = [];
    for (let left = 10; left > 0; left -= 1) sessions.push(await gateway.open({ token }));
    for (const session of sessions) expect(await statusOf(gateway, session, token)).toBe(200);
    await gateway.close();
  });
});
