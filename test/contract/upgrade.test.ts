// §16: records as 0.1.0 writes them, byte for byte where it matters, are read here;
// so two replicas, old and new, can share a store, and an update of one process loses nothing.
import { createCipheriv, createHash, hkdfSync, randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { open as openLmdb } from 'lmdb';
import { beforeAll, describe, expect, test } from 'vitest';
import { askingCatalog } from '../support/catalogs/stateless-asking-catalog.ts';
import { accepted, askingCall } from '../support/clients/stateless.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { seriesOf } from '../support/gateway/metrics.ts';
import { useGateway } from '../support/gateway/use-gateway.ts';
import { useShared } from '../support/lifetimes.ts';
import { createLoginSteps, newPkce, REDIRECT } from '../support/oauth/login-steps.ts';
import { startRedis } from '../support/stores/redis.ts';

const SECRET = 'a-secret-of-the-replicas-old-and-new';
const BASE = 'https://gw.example';
const ISSUER = 'https://id.example';
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };
const DAY = 86_400;

const hash = (text: string) => createHash('sha256').update(text).digest('base64url');

/** AES-256-GCM by HKDF, as 0.1.0 seals. */
function sealed(context: string, value: object): string {
  const key = Buffer.from(hkdfSync('sha256', SECRET, '', 'postern log-in state', 32));
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context));
  const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
  return Buffer.concat([iv, text, cipher.getAuthTag()]).toString('base64url');
}

const sessionOf = (sessionId: string, protocolVersion = '2025-06-18') => ({
  sessionId,
  createdAt: Date.now() - 1000,
  lastAccessedAt: Date.now() - 1000,
  userId: 'user-1',
  protocolVersion,
  clientCapabilities: '{"elicitation":false,"sampling":false,"roots":false}',
  clientInfo: '{"name":"old","version":"1"}',
});

const clientOf = (client_id: string) => ({
  client_id,
  client_name: 'Old',
  redirect_uris: [REDIRECT],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
  client_id_issued_at: 1_790_000_000,
  client_secret_expires_at: 0,
});

describe('records of 0.1.0 in Redis', () => {
  const redis = useShared(startRedis);
  const gateway = useGateway(() => ({
    deps: { catalog: askingCatalog },
    env: {
      REDIS_URL: redis.url,
      BASE_URL: BASE,
      OAUTH_MODE: 'broker',
      OAUTH_ACCEPT_PROVIDER_TOKENS: 'true',
      OIDC_AUDIENCE: `${BASE}/mcp`,
      OAUTH_STATE_SECRET: SECRET,
      OAUTH_AUTHORIZATION_URL: `${ISSUER}/authorize`,
      OAUTH_CLIENT_ID: 'provider-client',
      OAUTH_CLIENT_SECRET: 'provider-secret',
      MCP_USER_SESSIONS_MAX: '2',
    },
  }));
  let store: Redis;

  beforeAll(() => {
    store = redis.client();
  });

  const sign = () => gateway.issuer.sign({ aud: `${BASE}/mcp` });

  async function putSession(id: string = randomUUID()): Promise<string> {
    const expiry = Date.now() + DAY * 1000;
    await store.hset(`mcp:session:${id}`, sessionOf(id));
    await store.expire(`mcp:session:${id}`, DAY);
    await store.zadd('mcp:session:index', expiry, id);
    return id;
  }

  test('§2.1 a session goes on, slides, keeps its fields, and ends', async () => {
    const session = await putSession();
    await store.expire(`mcp:session:${session}`, 60);
    const token = await sign();
    const { status, json } = await gateway.rpc(PING, { session, token });
    expect([status, json.result]).toEqual([200, {}]);
    expect(await store.ttl(`mcp:session:${session}`)).toBeGreaterThan(DAY - 60);
    const { lastAccessedAt: _, ...kept } = await store.hgetall(`mcp:session:${session}`);
    const { lastAccessedAt: __, createdAt, ...fields } = sessionOf(session);
    expect(kept).toMatchObject(fields);
    expect(Math.abs(Number(kept.createdAt) - createdAt)).toBeLessThan(60_000);
    const ended = await gateway.request({
      method: 'DELETE',
      path: '/mcp',
      headers: { authorization: `Bearer ${token}`, 'mcp-session-id': session },
    });
    expect(ended.status).toBe(204);
    expect(await store.zscore('mcp:session:index', session)).toBeNull();
    expect(await seriesOf(gateway, 'mcp_sessions_total', { status: 'terminated' })).toBe(1);
  });

  test('§8.1 requests that 0.1.0 counted count, and ours look like them', async () => {
    const key = 'ratelimit:mcp:198.51.100.7';
    const now = Date.now();
    for (let at = 0; at < 3; at += 1) await store.zadd(key, now, `${now}-AbCd1234${at}`);
    const headers = { 'x-forwarded-for': '198.51.100.7' };
    const answer = await gateway.rpc(PING, { token: await sign(), headers });
    expect(answer.headers['x-ratelimit-remaining']).toBe(String(10_000 - 4));
    const [member = '', score = ''] = (await store.zrange(key, '0', '-1', 'WITHSCORES')).slice(-2);
    expect(member).toMatch(new RegExp(`^${score}-[\\w.-]+$`));
  });

  test('§3.1 old sessions are not ended for new ones before the sweep has met them', async () => {
    const token = await sign();
    const old = await putSession();
    for (let left = 3; left > 0; left -= 1) await gateway.open({ token });
    expect((await gateway.rpc(PING, { session: old, token })).status).toBe(200);
    // As a sweep meets it, a day later: its entry is due, and it was touched since.
    await store.zadd('mcp:session:index', Date.now() - 1, old);
    await gateway.request({ path: '/metrics' });
    const [set = ''] = await store.keys('mcp:session:user:*');
    expect(await store.zscore(set, old)).not.toBeNull();
  });

  test('§2.2 a registered client begins a login', async () => {
    const steps = createLoginSteps(gateway);
    const id = 'svc-AAAAAAAAAAA1';
    await store.set(`dcr:client:${id}`, JSON.stringify(clientOf(id)), 'EX', DAY);
    const { status, text } = await steps.authorize({ id, ...newPkce() });
    expect(status).toBe(200);
    expect(text).toContain('Old');
  });

  test('§8.1 requests that were counted before count here', async () => {
    const now = Date.now();
    const entries = Array.from({ length: 10_000 }, (_, at) => [now, `${now}-old${at}`] as const);
    await store.zadd('ratelimit:mcp:10.9.8.7', ...entries.flat());
    const { status } = await gateway.rpc(PING, {
      headers: { 'x-forwarded-for': '10.9.8.7' },
    });
    expect(status).toBe(429);
  });

  test('§4.4 a requestState of before is good for its hour', async () => {
    const token = await sign();
    const call = JSON.stringify(['user-1', 'tools/call', 'rounds', undefined, undefined]);
    const who = accepted({ name: 'Ada' });
    const requestState = sealed(`mcp:request-state:${hash(call)}`, {
      expiresAt: Date.now() + 1_800_000,
      answers: { who },
    });
    const inputResponses = { sure: accepted({ name: 'yes' }) };
    const { json } = await askingCall(
      gateway,
      'rounds',
      { requestState, inputResponses },
      { token },
    );
    expect(JSON.parse(json.result.content[0].text)).toEqual({
      who,
      sure: accepted({ name: 'yes' }),
    });
  });

  test.each([
    {
      what: 'session',
      put: async () => {
        const id = await putSession();
        await store.hset(`mcp:session:${id}`, 'version', '2');
        return gateway.rpc(PING, { session: id, token: await sign() });
      },
    },
    {
      what: 'registered client',
      put: async () => {
        const id = 'svc-AAAAAAAAAAA6';
        const record = { ...clientOf(id), version: 2 };
        await store.set(`dcr:client:${id}`, JSON.stringify(record), 'EX', DAY);
        return createLoginSteps(gateway).authorize({ id, ...newPkce() });
      },
    },
  ])(
    '§2.1 a $what of a later version is an error, not absent, and the log says so',
    async ({ put }) => {
      const { status } = await put();
      expect(status).toBe(500);
      expect(JSON.stringify(gateway.log.at(-1))).toContain('later version');
    },
  );
});

describe('records of 0.1.0 in DATA_DIR', () => {
  test('§2.1 sessions, their index and clients are read after the update', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postern-upgrade-'));
    const id = randomUUID();
    const client = 'svc-AAAAAAAAAAA7';
    const expiresAt = Date.now() + DAY * 1000;
    const root = openLmdb({ path: join(folder, 'store.mdb'), noSubdir: true });
    await root.transaction(() => {
      root
        .openDB({ name: 'sessions' })
        .put(`mcp:session:${id}`, { value: sessionOf(id), expiresAt });
      root.openDB({ name: 'session-index' }).put(id, expiresAt);
      root.openDB({ name: 'sessions-due' }).put([expiresAt, id], true);
      const value = JSON.stringify(clientOf(client));
      root.openDB({ name: 'values' }).put(`dcr:client:${client}`, { value, expiresAt });
      root.openDB({ name: 'values-due' }).put([expiresAt, `dcr:client:${client}`], true);
    });
    await root.close();
    const gateway = await startGateway({ env: { DATA_DIR: folder, MCP_USER_SESSIONS_MAX: '1' } });
    try {
      expect((await gateway.rpc(PING, { session: id })).status).toBe(200);
      expect(await seriesOf(gateway, 'mcp_sessions_active')).toBe(1);
      const { json } = await gateway.request({
        path: `/oauth/authorize?${new URLSearchParams({ client_id: client, redirect_uri: REDIRECT })}`,
      });
      expect(json.error_description).toContain('response_type');
      await gateway.open();
      expect((await gateway.rpc(PING, { session: id })).status).toBe(200);
    } finally {
      await gateway.close();
      await rm(folder, { recursive: true });
    }
  });
});
