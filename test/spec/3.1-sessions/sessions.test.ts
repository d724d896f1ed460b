import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import { openRedisStore } from '../../../src/store/redis/open.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { statusesOf } from '../../support/gateway/raw-http.ts';
import { useFreshGateway, useGateway } from '../../support/gateway/use-gateway.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';

const TTL = 3600;
const PING_TOOL = 'service_ping';
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };

let clock: ManualClock;
const gateway = useFreshGateway(() => {
  clock = manualClock(1_800_000_000_000);
  return { deps: { clock }, env: { MCP_SESSION_TTL_SECONDS: String(TTL) } };
});

const ping = (session: string, token?: string) =>
  gateway.rpc(PING, { session, ...(token !== undefined && { token }) });
const end = async (session?: string, token?: string) =>
  gateway.request({
    method: 'DELETE',
    path: '/mcp',
    headers: {
      authorization: `Bearer ${token ?? (await gateway.issuer.sign())}`,
      ...(session !== undefined && { 'mcp-session-id': session }),
    },
  });
const gauge = () => seriesOf(gateway, 'mcp_sessions_active');
const counted = (status: string) => seriesOf(gateway, 'mcp_sessions_total', { status });

const NOT_FOUND = {
  jsonrpc: '2.0',
  error: {
    code: -32000,
    message: 'Invalid or expired session',
    data: { reason: 'session_not_found', details: expect.any(String) },
  },
  id: 1,
};

describe('session states', () => {
  test('§3.1 absent → active: X-Session-Expires-At is now + TTL, gauge and counter go up', async () => {
    const { headers } = await gateway.rpc(INITIALIZE_REQUEST);
    expect(headers['x-session-expires-at']).toBe(new Date(clock.now() + TTL * 1000).toISOString());
    expect(await gauge()).toBe(1);
    expect(await counted('created')).toBe(1);
  });

  test('§3.1 active → active: any accepted POST gives the full time again', async () => {
    const session = await gateway.open();
    for (const message of [
      PING,
      { jsonrpc: '2.0', id: 1, method: 'nope' },
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'unknown' } },
    ]) {
      clock.advance((TTL - 1) * 1000);
      const { headers } = await gateway.rpc(message, { session });
      expect(headers['x-session-expires-at']).toBe(
        new Date(clock.now() + TTL * 1000).toISOString(),
      );
    }
    expect(await gauge()).toBe(1);
  });

  test('§3.1 a refused POST does not give time', async () => {
    const session = await gateway.open();
    clock.advance((TTL - 1) * 1000);
    for (const refused of [
      await gateway.rpc('{"broken', { session }),
      await gateway.rpc([PING], { session }),
      await gateway.request({
        method: 'POST',
        path: '/mcp',
        headers: { 'mcp-session-id': session },
      }),
    ]) {
      expect(refused.status).toBeGreaterThanOrEqual(400);
      expect(refused.headers['x-session-expires-at']).toBeUndefined();
    }
    clock.advance(2000);
    expect((await ping(session)).status).toBe(404);
  });

  test('§3.1 active → terminated: 204, gauge down, counter up, the id is gone', async () => {
    const session = await gateway.open();
    const { status, text: body } = await end(session);
    expect(status).toBe(204);
    expect(body).toBe('');
    expect(await gauge()).toBe(0);
    expect(await counted('terminated')).toBe(1);
    const after = await ping(session);
    expect(after.status).toBe(404);
    expect(after.json).toEqual(NOT_FOUND);
    expect(await counted('expired')).toBe(0);
  });

  test('§3.1 active → expired: 404 on the first later access, counted once', async () => {
    const session = await gateway.open();
    clock.advance(TTL * 1000 + 1);
    const answers = await Promise.all([ping(session), ping(session), ping(session)]);
    for (const { status, json } of answers) {
      expect(status).toBe(404);
      expect(json).toEqual(NOT_FOUND);
    }
    // A sweep that ran at the same moment may have been the one that counts it.
    await expect.poll(() => counted('expired')).toBe(1);
    expect(await gauge()).toBe(0);
  });

  test('§3.1 an expired session that nobody asks for is counted by the sweep, once', async () => {
    const session = await gateway.open();
    clock.advance(TTL * 1000 + 61_000);
    await expect.poll(() => counted('expired')).toBe(1);
    expect(await gauge()).toBe(0);
    await ping(session);
    await end(session);
    expect(await counted('expired')).toBe(1);
  });

  test('§4.11 the gauge follows sessions that were touched past their first expiry', async () => {
    const sessions = [await gateway.open(), await gateway.open()];
    clock.advance((TTL - 10) * 1000);
    await ping(sessions[0] as string);
    clock.advance(20_000);
    expect(await gauge()).toBe(1);
    expect(await counted('expired')).toBe(1);
  });
});

describe('DELETE /mcp', () => {
  test.each([
    { what: 'an unknown id', session: '6f1f4a4e-5b7f-4f0e-9d6c-0a1b2c3d4e5f' },
    { what: 'an id that is no UUID', session: '../../etc/passwd' },
  ])('§4.5 $what: 404 Session not found', async ({ session }) => {
    const { status, json } = await end(session);
    expect(status).toBe(404);
    expect(json).toEqual({
      jsonrpc: '2.0',
      error: {
        code: -32000,
        message: 'Session not found',
        data: { reason: 'session_not_found', details: expect.any(String) },
      },
      id: null,
    });
    for (const ending of ['terminated', 'expired']) expect(await counted(ending)).toBe(0);
  });

  test('§4.5 without the header: 400 missing_session_id; without a token: 401', async () => {
    const { status, json } = await end();
    expect(status).toBe(400);
    expect(json.error).toMatchObject({
      code: -32000,
      message: 'Bad Request',
      data: { reason: 'missing_session_id' },
    });
    const anonymous = await gateway.request({ method: 'DELETE', path: '/mcp' });
    expect(anonymous.status).toBe(401);
  });

  test('§4.5 a second DELETE is 404', async () => {
    const session = await gateway.open();
    expect((await end(session)).status).toBe(204);
    expect((await end(session)).status).toBe(404);
    expect(await counted('terminated')).toBe(1);
  });

  test('§3.1 calls and a DELETE at the same moment leave no session behind', async () => {
    const session = await gateway.open();
    const answers = await Promise.all([ping(session), ping(session), end(session), ping(session)]);
    for (const { status } of answers) expect([200, 204, 404]).toContain(status);
    expect((await ping(session)).status).toBe(404);
    expect(await gauge()).toBe(0);
  });
});

describe('a call whose body arrives slowly', () => {
  test.each([
    { what: 'session ended', status: 404, ends: true, advance: 2000, expires: 3600 },
    { what: 'token expired', status: 401, ends: false, advance: 20_000, expires: 10 },
  ])('§3.1 its $what meanwhile: $status, and no tool runs', async (row) => {
    const session = await gateway.open();
    const token = await gateway.issuer.sign({ exp: clock.now() / 1000 + row.expires });
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: PING_TOOL } };
    const body = JSON.stringify(message);
    const head = [
      'POST /mcp HTTP/1.1',
      `Host: ${new URL(gateway.baseUrl).host}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      `Authorization: Bearer ${token}`,
      `mcp-session-id: ${session}`,
      'Connection: close',
    ];
    const checked = () => seriesOf(gateway, 'auth_attempts_total', { result: 'success' });
    const before = (await checked()) ?? 0;
    const socket = connect(await gateway.listen(), '127.0.0.1');
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    await expect.poll(checked).toBe(before + 1);
    if (row.ends) expect((await end(session)).status).toBe(204);
    clock.advance(row.advance);
    socket.write(body);
    expect(statusesOf(await text(socket))).toEqual([row.status]);
    const ran = await seriesOf(gateway, 'mcp_tool_invocations_total', { tool: PING_TOOL });
    expect(ran ?? 0).toBe(0);
  });
});

describe('a session and its user', () => {
  test('§5.7 another user’s token: the same 404, and the owner’s session lives on', async () => {
    const session = await gateway.open();
    const eve = await gateway.issuer.sign({ sub: 'eve' });
    const stolen = await ping(session, eve);
    expect(stolen.status).toBe(404);
    expect(stolen.json).toEqual(NOT_FOUND);
    expect((await end(session, eve)).status).toBe(404);
    expect((await ping(session)).status).toBe(200);
    expect(await counted('expired')).toBe(0);
  });

  test('§5.7 another token of the same user is as good', async () => {
    const session = await gateway.open();
    const again = await gateway.issuer.sign({ jti: 'another' });
    expect((await ping(session, again)).status).toBe(200);
  });
});

describe('session ids', () => {
  test.each(['x', '', '6F1F4A4E-5B7F-4F0E-9D6C-0A1B2C3D4E5F', `${'a'.repeat(4000)}`, 'index'])(
    '§7.2 the id "%s" was never one: 404, and the store is not asked',
    async (session) => {
      const before = await seriesOf(gateway, 'redis_operations_total', {
        operation: 'take_expired_session',
      });
      expect((await ping(session)).status).toBe(404);
      expect(
        await seriesOf(gateway, 'redis_operations_total', { operation: 'take_expired_session' }),
      ).toBe(before);
    },
  );

  test('§7.2 a call without a session: 400 missing_session_id with the request’s id', async () => {
    const { status, json } = await gateway.rpc({ jsonrpc: '2.0', id: 'a', method: 'tools/list' });
    expect(status).toBe(400);
    expect(json).toMatchObject({
      error: { code: -32000, message: 'Bad Request', data: { reason: 'missing_session_id' } },
      id: 'a',
    });
  });
});

describe('two replicas on one Redis', () => {
  const redis = useShared(startRedis);
  const first = useGateway(() => ({ env: { REDIS_URL: redis.url } }));
  // Of one provider: a session belongs to issuer and `sub`, not to a token.
  const second = useGateway(() => ({
    env: { REDIS_URL: redis.url, OIDC_ISSUER: first.issuer.url },
  }));

  test('§3.1 a session made on one is used and ended on the other', async () => {
    const session = await first.open();
    const token = await first.issuer.sign();
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    expect((await second.rpc(list, { session, token })).status).toBe(200);
    expect(await seriesOf(first, 'mcp_sessions_active')).toBe(1);
    expect(await seriesOf(second, 'mcp_sessions_active')).toBe(1);
    const ended = await second.request({
      method: 'DELETE',
      path: '/mcp',
      headers: { authorization: `Bearer ${token}`, 'mcp-session-id': session },
    });
    expect(ended.status).toBe(204);
    expect((await first.call(session, 'ping')).status).toBe(404);
    expect(await seriesOf(first, 'mcp_sessions_active')).toBe(0);
    expect(await seriesOf(first, 'mcp_sessions_total', { status: 'expired' })).toBe(0);
  });

  test('§11 one call is one command', async () => {
    const session = await first.open();
    await first.call(session, 'ping');
    const monitor = await redis.client().monitor();
    const seen: string[] = [];
    monitor.on('monitor', (...[, args, source]: unknown[]) => {
      if (source !== 'lua' && Array.isArray(args)) seen.push(String(args[0]).toLowerCase());
    });
    await first.call(session, 'tools/call', { name: 'service_ping' });
    await expect.poll(() => seen).toEqual(['evalsha']);
    monitor.disconnect();
  });

  test('§2.2 a client registered on one is known on the other', async () => {
    const body = { redirect_uris: ['https://client.example/cb'] };
    const { json } = await first.request({ method: 'POST', path: '/oauth/register', body });
    const query = new URLSearchParams({
      client_id: json.client_id,
      redirect_uri: 'https://client.example/cb',
    });
    const { json: refused } = await second.request({ path: `/oauth/authorize?${query}` });
    expect(refused.error_description).toContain('response_type');
    const client = redis.client();
    expect(JSON.parse((await client.get(`dcr:client:${json.client_id}`)) ?? '')).toEqual({
      ...json,
      version: 1,
    });
    expect(await client.ttl(`dcr:client:${json.client_id}`)).toBeGreaterThan(2_591_990);
  });
});

describe('while the shared store is down', () => {
  const redis = useShared(startRedis);
  const down = useGateway(() => ({
    deps: {
      store: openRedisStore({
        url: redis.url,
        sessionKeyPrefix: 'mcp:session:',
        clock: systemClock,
        log: collectLog().log,
        backoff: () => 30_000,
      }),
    },
    env: {
      OAUTH_AUTHORIZATION_URL: 'https://idp.example/a',
      OAUTH_TOKEN_URL: 'https://idp.example/t',
      OAUTH_CLIENT_ID: 'static',
    },
  }));
  let session: string;
  let clientId: string;

  beforeAll(async () => {
    session = await down.open();
    const body = { redirect_uris: ['https://client.example/cb'] };
    clientId = (await down.request({ method: 'POST', path: '/oauth/register', body })).json
      .client_id;
    await redis.kill();
  });

  test('§7.1 MCP calls: 500 -32000 Internal Server Error, never session_not_found', async () => {
    for (const answer of [
      await down.call(session, 'ping'),
      await down.rpc(INITIALIZE_REQUEST),
      await down.request({
        method: 'DELETE',
        path: '/mcp',
        headers: { authorization: `Bearer ${await down.issuer.sign()}`, 'mcp-session-id': session },
      }),
    ]) {
      expect(answer.status).toBe(500);
      expect(answer.json.error).toMatchObject({
        code: -32000,
        message: 'Internal Server Error',
        data: { details: 'The store of this gateway does not answer. Try again shortly.' },
      });
      expect(answer.headers['retry-after']).toBe('1');
      expect(answer.headers['mcp-session-id']).toBeUndefined();
    }
  });

  test('§7.3 OAuth: 500 server_error, never invalid_client', async () => {
    const fields = { client_id: clientId, refresh_token: 'x', grant_type: 'refresh_token' };
    for (const answer of [
      await down.request({ path: `/oauth/authorize?client_id=${clientId}` }),
      await down.request({
        method: 'POST',
        path: '/oauth/token',
        body: new URLSearchParams(fields),
      }),
      await down.request({
        method: 'POST',
        path: '/oauth/register',
        body: { redirect_uris: ['https://a.example/'] },
      }),
    ]) {
      expect(answer.status).toBe(500);
      expect(answer.json).toEqual({
        error: 'server_error',
        error_description: 'The store of this gateway does not answer. Try again shortly.',
      });
      expect(answer.headers['retry-after']).toBe('1');
    }
  });

  test('§8.4 limits let pass, without headers, and one log line says so', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => down.request({ path: '/oauth/authorize?client_id=app' })),
    );
    for (const { status, headers } of answers) {
      expect(status).toBe(400);
      expect(headers['x-ratelimit-limit']).toBeUndefined();
    }
    const lines = down.log.filter(({ msg }) => msg.startsWith('Rate limits are not enforced'));
    expect(lines).toHaveLength(1);
    expect(lines[0]?.level).toBe('error');
  });

  test('§4.3 not ready, still alive, metrics without the gauge', async () => {
    const { status, json } = await down.request({ path: '/health/ready' });
    expect(status).toBe(503);
    expect(json).toMatchObject({
      status: 'not_ready',
      checks: { store: { status: 'unavailable' } },
    });
    expect((await down.request({ path: '/health' })).status).toBe(200);
    expect(await seriesOf(down, 'mcp_sessions_active')).toBeUndefined();
  });

  test('§8.4 when it is back everything works without a restart', async () => {
    await redis.restart();
    await expect
      .poll(async () => (await down.rpc(INITIALIZE_REQUEST)).status, { timeout: 10_000 })
      .toBe(200);
    // Redis came back empty: now, and only now, the session is really gone.
    expect((await down.call(session, 'ping')).status).toBe(404);
    expect((await down.request({ path: '/health/ready' })).status).toBe(200);
    // A node that comes and goes is one outage: the end is told with a request once it has lasted.
    const told = () => down.log.some(({ msg }) => msg.startsWith('Rate limits are enforced again'));
    await expect
      .poll(async () => (await down.rpc(INITIALIZE_REQUEST)).status === 200 && told(), {
        timeout: 10_000,
        interval: 200,
      })
      .toBe(true);
  });
});
