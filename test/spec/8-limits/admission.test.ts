// §11, §8: what counts where, and who is locked out.
import { once } from 'node:events';
import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import {
  INITIALIZE_REQUEST,
  startGateway,
  type TestGateway,
} from '../../support/gateway/gateway.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

const NOW = 1_800_000_000_000;
const REDIRECT = 'https://client.example/callback';
let clock: ManualClock;
let gateway: TestGateway;

async function start(env: Readonly<Record<string, string>>): Promise<void> {
  clock = manualClock(NOW);
  gateway = closeAfterTest(await startGateway({ env, deps: { clock } }));
}

const from = (ip: string) => ({ 'x-forwarded-for': ip });
const anonymous = (ip: string) =>
  gateway.request({ method: 'POST', path: '/mcp', headers: from(ip), body: INITIALIZE_REQUEST });
const initialize = async (ip: string, sub = 'user-1', headers: Record<string, string> = {}) =>
  gateway.rpc(INITIALIZE_REQUEST, {
    token: await gateway.issuer.sign({ sub }),
    headers: { ...from(ip), ...headers },
  });
const operations = (operation: string) =>
  seriesOf(gateway, 'redis_operations_total', { operation, status: 'success' });

describe('strangers lock nobody out', () => {
  test('§8.1 calls without a valid token have a global window of their own', async () => {
    await start({ MCP_GLOBAL_RATE_LIMIT_MAX: '2' });
    await anonymous('10.0.0.1');
    const forged = await gateway.rpc(INITIALIZE_REQUEST, {
      token: 'a.b.c',
      headers: from('10.0.0.2'),
    });
    expect(forged.status).toBe(401);
    const refused = await anonymous('10.0.0.3');
    expect(refused.status).toBe(429);
    expect(refused.json.error.data.reason).toBe('global_rate_limit_exceeded');
    expect(refused.headers['x-ratelimit-limit']).toBe('2');
    expect((await initialize('10.0.0.4')).status).toBe(200);
    expect((await initialize('10.0.0.5')).status).toBe(200);
    expect((await initialize('10.0.0.6')).json.error.data.reason).toBe(
      'global_rate_limit_exceeded',
    );
  });

  test('§8.1 AUTH_REQUIRED=false: nobody is anonymous', async () => {
    await start({ AUTH_REQUIRED: 'false', MCP_GLOBAL_RATE_LIMIT_MAX: '2' });
    expect((await anonymous('10.0.0.1')).status).toBe(200);
    expect((await anonymous('10.0.0.2')).status).toBe(200);
    expect((await anonymous('10.0.0.3')).status).toBe(429);
  });

  const broker = {
    OAUTH_MODE: 'broker',
    OAUTH_CLIENT_ID: 'static',
    OAUTH_CONSENT_GLOBAL_RATE_LIMIT_MAX: '1',
    OAUTH_CALLBACK_GLOBAL_RATE_LIMIT_MAX: '1',
    OAUTH_AUTHORIZE_GLOBAL_RATE_LIMIT_MAX: '1',
    OAUTH_TOKEN_GLOBAL_RATE_LIMIT_MAX: '1',
    DCR_GLOBAL_RATE_LIMIT_MAX: '1',
  };
  const rows = [
    ['POST', '/oauth/register', { redirect_uris: [] }, 400],
    ['GET', '/oauth/authorize', undefined, 400],
    ['GET', `/oauth/authorize?client_id=svc-AAAAAAAAAAAA&redirect_uri=${REDIRECT}`, undefined, 400],
    ['POST', '/oauth/consent', new URLSearchParams({ request: 'x', csrf: 'y' }), 400],
    ['GET', '/oauth/callback', undefined, 400],
    ['GET', '/oauth/callback?state=made-up&code=c', undefined, 400],
    ['POST', '/oauth/token', new URLSearchParams({ grant_type: 'refresh_token' }), 400],
    [
      'POST',
      '/oauth/token',
      new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: 'r',
        client_id: 'svc-AAAAAAAAAAAA',
      }),
      400,
    ],
    [
      'POST',
      '/oauth/revoke',
      new URLSearchParams({ token: 't', client_id: 'svc-AAAAAAAAAAAA' }),
      401,
    ],
  ] as const;

  test.each(rows)(
    '§8.1 %s %s %o: what does not hold counts by its address only',
    async (...row) => {
      const [method, path, body, status] = row;
      await start(broker);
      for (const ip of ['10.0.0.1', '10.0.0.2', '10.0.0.3']) {
        const answer = await gateway.request({ method, path, body, headers: from(ip) });
        expect(answer.status).toBe(status);
        expect(answer.headers['x-ratelimit-remaining']).toBe(
          String(Number(answer.headers['x-ratelimit-limit']) - 1),
        );
      }
    },
  );

  test('§8.1 a registration that is accepted counts for all callers, and is refused after', async () => {
    await start(broker);
    const register = (ip: string) =>
      gateway.request({
        method: 'POST',
        path: '/oauth/register',
        headers: from(ip),
        body: { redirect_uris: [REDIRECT] },
      });
    expect((await register('10.0.0.1')).status).toBe(201);
    const { status, json, headers } = await register('10.0.0.2');
    expect(status).toBe(429);
    expect(json.error.data.reason).toBe('global_rate_limit_exceeded');
    expect(headers['x-ratelimit-limit']).toBe('1');
    // What all callers used up does not count against this one.
    clock.advance(3_600_001);
    expect((await register('10.0.0.2')).headers['x-ratelimit-remaining']).toBe('9999');
  });

  test('§8.1 beyond the limit of all callers, what does not hold leaves no trace of its address', async () => {
    await start(broker);
    const register = (ip: string) =>
      gateway.request({ method: 'POST', path: '/oauth/register', headers: from(ip), body: {} });
    const remaining = async (ip: string) => {
      const { status, headers } = await register(ip);
      expect(status).toBe(400);
      return Number(headers['x-ratelimit-remaining']);
    };
    // One such request is counted, as the limit says.
    expect(await remaining('10.0.0.1')).toBe(9999);
    expect(await remaining('10.0.0.1')).toBe(9998);
    expect(await remaining('10.0.0.2')).toBe(9999);
    expect(await remaining('10.0.0.2')).toBe(9999);
    expect(await operations('withdraw')).toBe(3);
    const good = await gateway.request({
      method: 'POST',
      path: '/oauth/register',
      headers: from('10.0.0.3'),
      body: { redirect_uris: [REDIRECT] },
    });
    expect(good.status).toBe(201);
  });

  test.each(['/oauth/token', '/oauth/revoke'])(
    '§8 %s is limited in proxy mode, too',
    async (path) => {
      await start({ OAUTH_TOKEN_RATE_LIMIT_MAX: '2' });
      const ask = () => gateway.request({ method: 'POST', path, body: new URLSearchParams() });
      expect((await ask()).status).toBe(400);
      expect((await ask()).headers['x-ratelimit-remaining']).toBe('0');
      expect((await ask()).status).toBe(429);
    },
  );
});

describe('what is counted for an address', () => {
  test.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff', true],
    ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['2001:db8::1', '2001:db8:0:0:1::', true],
    ['2001:db8::1', '2001:db8:0:1::', false],
    ['::1', '::2', true],
    ['::ffff:203.0.113.1', '::ffff:203.0.113.2', false],
    ['203.0.113.1', '203.0.113.2', false],
  ])('§8.2 %s and %s are one caller: %s', async (one, two, same) => {
    await start({ MCP_RATE_LIMIT_MAX: '1' });
    await anonymous(one);
    expect((await anonymous(two)).status).toBe(same ? 429 : 401);
  });
});

describe('a limit per user', () => {
  test('§8.1 counts a user over all addresses, and nobody else', async () => {
    await start({ MCP_USER_RATE_LIMIT_MAX: '2' });
    expect((await initialize('10.0.0.1')).status).toBe(200);
    expect((await initialize('10.0.0.2')).status).toBe(200);
    const { status, headers, json } = await initialize('10.0.0.3');
    expect(status).toBe(429);
    expect(headers).toMatchObject({
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '0',
      'retry-after': '60',
    });
    expect(json.error).toMatchObject({
      code: -32000,
      message: 'Too Many Requests',
      data: { reason: 'user_rate_limit_exceeded', retryAfter: 60 },
    });
    expect((await initialize('10.0.0.3', 'user-2')).headers['x-ratelimit-remaining']).toBe('9999');
    expect(
      await seriesOf(gateway, 'rate_limit_hits_total', { endpoint: 'mcp', scope: 'user' }),
    ).toBe(1);
    clock.advance(60_001);
    expect((await initialize('10.0.0.3')).status).toBe(200);
  });

  test('§8.1 unset, users are not counted', async () => {
    await start({});
    for (let turn = 0; turn < 5; turn++) expect((await initialize('10.0.0.1')).status).toBe(200);
  });

  test('§8.1 while it holds the token is judged, and neither body nor store is looked at', async () => {
    await start({ MCP_USER_RATE_LIMIT_MAX: '1' });
    await initialize('10.0.0.1');
    expect((await initialize('10.0.0.1')).status).toBe(429);
    const admits = await operations('admit');
    const broken = await gateway.request({
      method: 'POST',
      path: '/mcp',
      headers: {
        authorization: `Bearer ${await gateway.issuer.sign()}`,
        'content-type': 'text/plain',
      },
      body: 'not JSON',
    });
    expect(broken.status).toBe(429);
    expect(broken.json.error.data.reason).toBe('user_rate_limit_exceeded');
    expect(await operations('admit')).toBe(admits);
  });
});

describe('a refusal is remembered', () => {
  test('§8.1 while one of an address holds, neither token nor store is looked at', async () => {
    await start({ MCP_RATE_LIMIT_MAX: '1' });
    await anonymous('10.0.0.1');
    const first = await anonymous('10.0.0.1');
    expect(first.headers['retry-after']).toBe('60');
    const admits = await operations('admit');
    const attempts = await seriesOf(gateway, 'auth_attempts_total');
    clock.advance(20_000);
    const again = await initialize('10.0.0.1');
    expect(again.status).toBe(429);
    expect(again.headers).toMatchObject({
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': first.headers['x-ratelimit-reset'],
      'retry-after': '40',
    });
    expect(again.json.error.data).toMatchObject({ reason: 'rate_limit_exceeded', retryAfter: 40 });
    expect(await operations('admit')).toBe(admits);
    expect(await seriesOf(gateway, 'auth_attempts_total')).toBe(attempts);
    expect(await seriesOf(gateway, 'rate_limit_hits_total', { endpoint: 'mcp', scope: 'ip' })).toBe(
      2,
    );
    clock.advance(40_001);
    expect((await initialize('10.0.0.1')).status).toBe(200);
  });

  test('§8.1 the first of a group in a window is a warning, the rest are debug', async () => {
    await start({ MCP_RATE_LIMIT_MAX: '1', OAUTH_AUTHORIZE_RATE_LIMIT_MAX: '1' });
    const warnings = () => gateway.log.filter(({ level }) => level === 'warn');
    const loud = () =>
      gateway.log.filter(({ level, status }) => level !== 'debug' && status === 429);
    for (const ip of ['10.0.0.1', '10.0.0.2']) {
      for (let turn = 0; turn < 4; turn++) await anonymous(ip);
    }
    expect(warnings()).toEqual([
      expect.objectContaining({
        msg: expect.stringMatching(/ MCP_RATE_LIMIT_MAX .* TRUST_PROXY .* MCP_USER_RATE_LIMIT_MAX/),
        group: 'mcp',
        clientIp: '10.0.0.1',
        limit: 1,
      }),
    ]);
    expect(loud()).toEqual([]);
    await gateway.request({ path: '/oauth/authorize' });
    await gateway.request({ path: '/oauth/authorize' });
    expect(warnings()).toHaveLength(2);
    clock.advance(60_001);
    await anonymous('10.0.0.3');
    await anonymous('10.0.0.3');
    expect(warnings()).toHaveLength(3);
  });

  test('§8.1 a user that reaches its limit is named', async () => {
    await start({ MCP_USER_RATE_LIMIT_MAX: '1' });
    await initialize('10.0.0.1', 'ada');
    await initialize('10.0.0.1', 'ada');
    const warning = gateway.log.find(({ level }) => level === 'warn');
    expect(warning).toMatchObject({
      msg: expect.stringContaining('MCP_USER_RATE_LIMIT_MAX'),
      user: 'ada',
    });
    expect(warning?.msg).not.toContain('TRUST_PROXY');
  });
});

describe('when a request is counted', () => {
  test('§5.2 a key that is not at hand: the address is counted before the look-up', async () => {
    await start({ MCP_RATE_LIMIT_MAX: '1' });
    await expect.poll(() => gateway.issuer.fetches.keys).toBe(1);
    const token = await gateway.issuer.sign({}, { kid: 'unknown' });
    const first = gateway.rpc(INITIALIZE_REQUEST, { token, headers: from('10.0.0.1') });
    await expect.poll(async () => Number(await operations('admit'))).toBeGreaterThanOrEqual(1);
    // The second of this address waits for nothing.
    const second = await gateway.rpc(INITIALIZE_REQUEST, { token, headers: from('10.0.0.1') });
    expect(second.status).toBe(429);
    clock.advance(2000);
    const { status, headers } = await first;
    expect(status).toBe(401);
    expect(headers['x-ratelimit-remaining']).toBe('0');
    expect(gateway.issuer.fetches.keys).toBe(2);
  });

  test('§5.2 and then the window that the verdict names', async () => {
    await start({ MCP_GLOBAL_RATE_LIMIT_MAX: '1' });
    await expect.poll(() => gateway.issuer.fetches.keys).toBe(1);
    await gateway.issuer.rotate();
    const waiting = initialize('10.0.0.1');
    await expect.poll(async () => Number(await operations('admit'))).toBeGreaterThanOrEqual(1);
    clock.advance(2000);
    expect((await waiting).status).toBe(200);
    expect((await anonymous('10.0.0.2')).status).toBe(401);
    const refused = await initialize('10.0.0.3');
    expect(refused.json.error.data.reason).toBe('global_rate_limit_exceeded');
    expect((await anonymous('10.0.0.2')).status).toBe(429);
  });

  test.each([
    ['of another type', { 'content-type': 'text/plain' }, '{}', 415],
    ['that is broken', {}, '{', 400],
    ['that is too large', {}, `"${'x'.repeat(2000)}"`, 413],
  ] as const)('§8.1 a body %s is counted once, and refused after the limit', async (...row) => {
    const [, headers, body, status] = row;
    await start({ MCP_RATE_LIMIT_MAX: '1', MAX_BODY_BYTES: '1024' });
    const send = async () =>
      gateway.request({
        method: 'POST',
        path: '/mcp',
        headers: { authorization: `Bearer ${await gateway.issuer.sign()}`, ...headers },
        body,
      });
    const first = await send();
    expect(first.status).toBe(status);
    expect(first.headers['x-ratelimit-remaining']).toBe('0');
    expect((await send()).status).toBe(429);
  });

  /** Sends the head and, after `ms` of the clock, the body. */
  async function sendSlowly(ms: number, claims: object): Promise<number | undefined> {
    const body = JSON.stringify(INITIALIZE_REQUEST);
    const slow = request({
      host: '127.0.0.1',
      port: await gateway.listen(),
      method: 'POST',
      path: '/mcp',
      agent: false,
      headers: {
        authorization: `Bearer ${await gateway.issuer.sign({ ...claims })}`,
        'content-type': 'application/json',
        'content-length': body.length,
      },
    });
    slow.write(body.slice(0, 1));
    await expect
      .poll(() => seriesOf(gateway, 'auth_attempts_total', { result: 'success' }))
      .toBe(1);
    clock.advance(ms);
    slow.end(body.slice(1));
    const [answer] = await once(slow, 'response');
    answer.resume();
    return answer.statusCode;
  }

  test('§5.4 a token that expires while its body dawdles: 401, counted among the anonymous', async () => {
    await start({ MCP_GLOBAL_RATE_LIMIT_MAX: '1', OIDC_CLOCK_TOLERANCE_SECONDS: '0' });
    expect(await sendSlowly(2000, { exp: NOW / 1000 + 1 })).toBe(401);
    expect((await initialize('10.0.0.2')).status).toBe(200);
    expect((await anonymous('10.0.0.3')).status).toBe(429);
  });

  test('§5.4 a body that takes no second is not judged twice', async () => {
    await start({ OIDC_CLOCK_TOLERANCE_SECONDS: '0' });
    expect(await sendSlowly(900, {})).toBe(200);
    expect(await seriesOf(gateway, 'auth_attempts_total')).toBe(1);
  });
});

describe('a flood does not fill the log', () => {
  const linesOf = (key: string) =>
    gateway.log.filter(({ error, level }) => error === key && level !== 'debug');

  test('§4.1 unknown paths are logged at debug', async () => {
    await start({});
    for (let turn = 0; turn < 3; turn++) await gateway.request({ path: `/wp-admin/${turn}` });
    expect(linesOf('not_found')).toEqual([]);
    expect(gateway.log.filter(({ error }) => error === 'not_found')).toHaveLength(3);
  });

  test('§7.1 refusals of one kind: 100 lines a minute, and how many there were beside', async () => {
    await start({});
    for (let turn = 0; turn < 130; turn++) await anonymous('10.0.0.1');
    await gateway.request({ path: '/health', headers: { origin: 'https://evil.example' } });
    expect(linesOf('missing_token')).toHaveLength(100);
    expect(linesOf('invalid_origin')).toHaveLength(1);
    clock.advance(60_000);
    const summary = gateway.log.filter(({ leftOut }) => leftOut !== undefined);
    expect(summary).toEqual([
      expect.objectContaining({ level: 'info', error: 'missing_token', leftOut: 30 }),
    ]);
    await anonymous('10.0.0.1');
    expect(linesOf('missing_token').filter(({ leftOut }) => leftOut === undefined)).toHaveLength(
      101,
    );
  });
});

test('§8.4 a store that answers now and then is one outage in the log', async () => {
  clock = manualClock(NOW);
  let turn = 0;
  let isBroken = true;
  const wrapped = await wrapStore(
    (store) => ({
      admitRequest: (...args) =>
        isBroken && turn++ % 2 === 0
          ? Promise.reject(new Error('down'))
          : store.admitRequest(...args),
    }),
    clock,
  );
  gateway = closeAfterTest(await startGateway({ deps: { clock, store: wrapped.store } }));
  const lines = (level: string) =>
    gateway.log.filter((line) => line.level === level && /^Rate limits/.test(line.msg));
  for (let at = 0; at < 10; at += 1) await anonymous(`10.0.0.${at}`);
  expect([lines('error').length, lines('info').length]).toEqual([1, 0]);
  isBroken = false;
  clock.advance(3000);
  await anonymous('10.0.0.1');
  expect([lines('error').length, lines('info').length]).toEqual([1, 1]);
  await wrapped.remove();
});
