import { describe, expect, test } from 'vitest';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const NOW = 1_800_000_000_000;
let clock: ManualClock;
let gateway: TestGateway;

async function start(env: Readonly<Record<string, string>>): Promise<void> {
  clock = manualClock(NOW);
  gateway = closeAfterTest(
    await startGateway({
      env: { OAUTH_AUTHORIZATION_URL: 'https://provider.example/authorize', ...env },
      deps: { clock },
    }),
  );
}

/** A call without a token: it is counted, and nothing else happens. */
const call = (headers: Readonly<Record<string, string>> = {}, remoteAddress = '10.0.0.1') =>
  gateway.request({ method: 'POST', path: '/mcp', headers, remoteAddress });
const from = (ip: string) => call({ 'x-forwarded-for': ip });

describe('the three groups', () => {
  const groups = [
    { name: 'mcp', prefix: 'MCP', ask: { method: 'POST', path: '/mcp' }, admitted: 401 },
    {
      name: 'dcr',
      prefix: 'DCR',
      ask: {
        method: 'POST',
        path: '/oauth/register',
        body: { redirect_uris: ['https://client.example/callback'] },
      },
      admitted: 201,
    },
    {
      name: 'authorize',
      prefix: 'OAUTH_AUTHORIZE',
      // A client id that is the provider's to judge.
      ask: {
        path: `/oauth/authorize?${new URLSearchParams({
          client_id: 'known-at-the-provider',
          redirect_uri: 'https://client.example/callback',
          response_type: 'code',
          state: 's',
          code_challenge: 'c'.repeat(43),
          code_challenge_method: 'S256',
        })}`,
      },
      admitted: 302,
    },
  ];

  test.each(groups)(
    '§8 $name: window and maximum are settings of their own',
    async ({ prefix, ask, admitted }) => {
      await start({
        [`${prefix}_RATE_LIMIT_MAX`]: '2',
        [`${prefix}_RATE_LIMIT_WINDOW_MS`]: '5000',
      });
      const first = await gateway.request(ask);
      expect(first.status).toBe(admitted);
      expect(first.headers).toMatchObject({
        'x-ratelimit-limit': '2',
        'x-ratelimit-remaining': '1',
        'x-ratelimit-reset': String((NOW + 5000) / 1000),
      });
      expect((await gateway.request(ask)).headers['x-ratelimit-remaining']).toBe('0');
      clock.advance(1500);
      const { status, headers, json } = await gateway.request(ask);
      expect(status).toBe(429);
      expect(headers).toMatchObject({
        'x-ratelimit-limit': '2',
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': String((NOW + 5000) / 1000),
        'retry-after': '4',
      });
      expect(json).toEqual({
        jsonrpc: '2.0',
        error: {
          code: -32000,
          message: 'Too Many Requests',
          data: { reason: 'rate_limit_exceeded', details: expect.any(String), retryAfter: 4 },
        },
        id: null,
      });
      clock.advance(3500);
      expect((await gateway.request(ask)).status).toBe(admitted);
    },
  );

  test.each(groups)(
    '§8 $name: the global maximum refuses every address',
    async ({ name, prefix, ask }) => {
      await start({
        [`${prefix}_GLOBAL_RATE_LIMIT_MAX`]: '2',
        [`${prefix}_RATE_LIMIT_WINDOW_MS`]: '60000',
      });
      for (const ip of ['10.0.0.1', '10.0.0.2']) {
        await gateway.request({ ...ask, headers: { 'x-forwarded-for': ip } });
      }
      const { status, headers, json } = await gateway.request({
        ...ask,
        headers: { 'x-forwarded-for': '10.0.0.3' },
      });
      expect(status).toBe(429);
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '2', 'retry-after': '60' });
      expect(json.error.data).toMatchObject({
        reason: 'global_rate_limit_exceeded',
        retryAfter: 60,
      });
      expect(
        await seriesOf(gateway, 'rate_limit_hits_total', { endpoint: name, scope: 'global' }),
      ).toBe(1);
      expect(
        await seriesOf(gateway, 'rate_limit_hits_total', { endpoint: name, scope: 'ip' }),
      ).toBe(0);
    },
  );

  test.each(groups)('§8 $name: a refusal names the variable of its own group', async (group) => {
    const { lines, log } = collectLog();
    clock = manualClock(NOW);
    gateway = closeAfterTest(
      await startGateway({
        env: {
          OAUTH_AUTHORIZATION_URL: 'https://provider.example/authorize',
          [`${group.prefix}_RATE_LIMIT_MAX`]: '1',
        },
        deps: { clock, log },
      }),
    );
    await gateway.request(group.ask);
    const { json } = await gateway.request(group.ask);
    expect(json.error.data.details).toContain(`(${group.prefix}_RATE_LIMIT_MAX)`);
    const named = lines
      .filter(({ msg }) => msg.includes('429'))
      .flatMap(({ msg }) => msg.match(/[A-Z]+_\w*RATE_LIMIT_MAX/g) ?? []);
    expect(named.length).toBeGreaterThan(0);
    expect(named.every((variable) => variable.startsWith(`${group.prefix}_`))).toBe(true);
  });

  test('§8 the defaults of the table', async () => {
    clock = manualClock(NOW);
    const unset = {
      OAUTH_AUTHORIZATION_URL: 'https://provider.example/authorize',
      MCP_RATE_LIMIT_MAX: '',
      DCR_RATE_LIMIT_MAX: '',
      OAUTH_AUTHORIZE_RATE_LIMIT_MAX: '',
    };
    gateway = closeAfterTest(await startGateway({ env: unset, deps: { clock } }));
    const limits = [];
    for (const { ask } of groups) {
      const { headers } = await gateway.request(ask);
      limits.push([
        headers['x-ratelimit-limit'],
        Number(headers['x-ratelimit-reset']) - NOW / 1000,
      ]);
    }
    expect(limits).toEqual([
      ['100', 60],
      ['10', 3600],
      ['10', 60],
    ]);
  });

  test('§8 POST and DELETE /mcp share one counter; the groups do not', async () => {
    await start({ MCP_RATE_LIMIT_MAX: '2' });
    await call();
    await gateway.request({ method: 'DELETE', path: '/mcp', remoteAddress: '10.0.0.1' });
    expect((await call()).status).toBe(429);
    const other = await gateway.request({ path: '/oauth/authorize', remoteAddress: '10.0.0.1' });
    expect(other.status).toBe(400);
  });

  test('§8 what is not listed is not limited and has no headers', async () => {
    await start({ MCP_RATE_LIMIT_MAX: '1', OAUTH_AUTHORIZE_RATE_LIMIT_MAX: '1' });
    await call();
    await call();
    for (const ask of [
      { path: '/health' },
      { path: '/mcp' },
      { path: '/nope' },
      { method: 'OPTIONS', path: '/mcp' },
      { method: 'PUT', path: '/mcp' },
      { path: '/.well-known/oauth-authorization-server' },
    ]) {
      const { status, headers } = await gateway.request(ask);
      expect(status).not.toBe(429);
      expect(headers['x-ratelimit-limit']).toBeUndefined();
    }
  });

  test('§8.1 200 calls at once against 100: exactly 100 pass', async () => {
    await start({ MCP_RATE_LIMIT_MAX: '100' });
    const answers = await Promise.all(Array.from({ length: 200 }, () => call()));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(100);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(100);
    expect(
      await seriesOf(gateway, 'http_request_rate_limit_requests_total', {
        endpoint: 'mcp',
        limited: 'true',
      }),
    ).toBe(100);
    expect(
      await seriesOf(gateway, 'http_request_rate_limit_requests_total', {
        endpoint: 'mcp',
        limited: 'false',
      }),
    ).toBe(100);
    expect(await seriesOf(gateway, 'rate_limit_hits_total', { endpoint: 'mcp', scope: 'ip' })).toBe(
      100,
    );
  });

  test('§11 the limit wins over the token: a flood is refused without a login', async () => {
    await start({ MCP_RATE_LIMIT_MAX: '1' });
    await call();
    const { status, headers } = await call();
    expect(status).toBe(429);
    expect(headers['www-authenticate']).toBeUndefined();
  });

  test('§8.3 RATE_LIMIT_ENABLED=false: no limits, no headers, sessions work', async () => {
    await start({
      RATE_LIMIT_ENABLED: 'false',
      MCP_RATE_LIMIT_MAX: '1',
      MCP_GLOBAL_RATE_LIMIT_MAX: '1',
    });
    const session = await gateway.open();
    for (let turn = 0; turn < 5; turn++) {
      const { status, headers } = await gateway.call(session, 'ping');
      expect(status).toBe(200);
      expect(headers['x-ratelimit-limit']).toBeUndefined();
    }
    expect(
      await seriesOf(gateway, 'http_request_rate_limit_requests_total', { endpoint: 'mcp' }),
    ).toBe(0);
  });
});

describe('the caller’s address', () => {
  /** Whether two requests count against the same address. */
  async function share(
    one: readonly [headers: Record<string, string>, socket?: string],
    two: readonly [headers: Record<string, string>, socket?: string],
  ): Promise<boolean> {
    await call(...one);
    return (await call(...two)).status === 429;
  }
  const xff = (value: string) => ({ 'x-forwarded-for': value });

  test.each([
    {
      what: 'the first entry counts',
      one: [xff('203.0.113.1, 10.0.0.9')],
      two: [xff('203.0.113.1')],
      same: true,
    },
    {
      what: 'another first entry is another caller',
      one: [xff('203.0.113.1')],
      two: [xff('203.0.113.2, 203.0.113.1')],
      same: false,
    },
    {
      what: 'X-Real-IP counts without X-Forwarded-For',
      one: [{ 'x-real-ip': '203.0.113.1' }],
      two: [xff('203.0.113.1')],
      same: true,
    },
    {
      what: 'X-Forwarded-For wins over X-Real-IP',
      one: [{ 'x-real-ip': '203.0.113.1', ...xff('203.0.113.2') }],
      two: [xff('203.0.113.2')],
      same: true,
    },
    {
      what: 'else the socket counts',
      one: [{}, '203.0.113.1'],
      two: [xff('203.0.113.1')],
      same: true,
    },
    {
      what: 'a port is dropped',
      one: [xff('203.0.113.1:4711')],
      two: [xff('203.0.113.1')],
      same: true,
    },
    {
      what: 'a port and brackets are dropped',
      one: [xff('[2001:db8::1]:4711')],
      two: [xff('2001:DB8:0:0::1')],
      same: true,
    },
    {
      what: '::ffff: is unwrapped',
      one: [xff('::ffff:203.0.113.1')],
      two: [xff('203.0.113.1')],
      same: true,
    },
    {
      what: '::ffff: in hexadecimal is unwrapped',
      one: [xff('::ffff:cb00:7101')],
      two: [xff('203.0.113.1')],
      same: true,
    },
    {
      what: 'all text is one caller',
      one: [xff('evil; text')],
      two: [xff('other, text')],
      same: true,
    },
    { what: 'text does not fall back to the socket', one: [xff('text')], two: [{}], same: false },
    {
      what: 'a scope id is no address',
      one: [xff('fe80::1%eth0')],
      two: [xff('text')],
      same: true,
    },
    {
      what: 'an octal look-alike is no address',
      one: [xff('010.0.0.1')],
      two: [xff('text')],
      same: true,
    },
  ] as const)('§8.2 TRUST_PROXY=all: $what', async ({ one, two, same }) => {
    await start({ MCP_RATE_LIMIT_MAX: '1' });
    expect(await share(one as never, two as never)).toBe(same);
  });

  test.each([
    {
      trust: 'none',
      what: 'headers are nobody’s word',
      one: [xff('203.0.113.1')],
      two: [xff('203.0.113.2')],
      same: true,
    },
    {
      trust: 'none',
      what: 'only the socket counts',
      one: [{}, '10.0.0.1'],
      two: [{}, '10.0.0.2'],
      same: false,
    },
    {
      trust: '1',
      what: 'the last entry counts',
      one: [xff('1.1.1.1, 203.0.113.1')],
      two: [xff('2.2.2.2, 203.0.113.1')],
      same: true,
    },
    {
      trust: '2',
      what: 'the last but one counts',
      one: [xff('9.9.9.9, 203.0.113.1, 10.0.0.7')],
      two: [xff('8.8.8.8, 203.0.113.1, 10.0.0.8')],
      same: true,
    },
    {
      trust: '2',
      what: 'too few entries fall back to the socket',
      one: [xff('203.0.113.1')],
      two: [xff('203.0.113.2')],
      same: true,
    },
    {
      trust: '1',
      what: 'X-Real-IP does not count',
      one: [{ 'x-real-ip': '1.1.1.1' }],
      two: [{ 'x-real-ip': '2.2.2.2' }],
      same: true,
    },
    {
      trust: '10.0.0.0/8,192.168.1.1',
      what: 'trusted proxies are skipped from the right',
      one: [xff('1.1.1.1, 203.0.113.1, 10.9.9.9'), '10.0.0.1'],
      two: [xff('2.2.2.2, 203.0.113.1'), '192.168.1.1'],
      same: true,
    },
    {
      trust: '10.0.0.0/8',
      what: 'an untrusted socket is the caller',
      one: [xff('203.0.113.1'), '11.0.0.1'],
      two: [xff('203.0.113.2'), '11.0.0.1'],
      same: true,
    },
    {
      trust: '10.0.0.0/8',
      what: 'all trusted: the leftmost',
      one: [xff('10.1.1.1, 10.2.2.2')],
      two: [xff('10.3.3.3, 10.2.2.2')],
      same: false,
    },
    {
      trust: '10.0.0.0/8',
      what: 'after 32 trusted ones nobody looks any further',
      one: [xff(`1.1.1.1${', 10.0.0.9'.repeat(40)}`), '10.0.0.1'],
      two: [xff(`2.2.2.2${', 10.0.0.9'.repeat(40)}`), '10.0.0.1'],
      same: true,
    },
    {
      trust: '2001:db8::/32',
      what: 'IPv6 ranges work',
      one: [xff('203.0.113.1'), '2001:db8::5'],
      two: [xff('203.0.113.1'), '2001:db8::6'],
      same: true,
    },
  ] as const)('§8.2 TRUST_PROXY=$trust: $what', async ({ trust, one, two, same }) => {
    await start({ MCP_RATE_LIMIT_MAX: '1', TRUST_PROXY: trust });
    expect(await share(one as never, two as never)).toBe(same);
  });

  test('§8.2 text from a header never becomes part of a key', async () => {
    await start({});
    await from('global');
    await from('*:evil\u0001');
    const line = gateway.log.findLast(({ msg }) => msg === 'Refused.');
    expect(line?.clientIp).toBe('unknown');
  });
});
