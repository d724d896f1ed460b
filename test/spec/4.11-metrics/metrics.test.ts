import { beforeAll, describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const tool = (name: string, run: () => { content: []; isError?: boolean }) =>
  defineTool({ name, description: '', inputSchema: { type: 'object' }, run });

const catalog = createLocalCatalog({
  tools: [
    tool('works', () => ({ content: [] })),
    tool('refuses', () => ({ content: [], isError: true })),
    tool('throws', () => {
      throw new Error('unexpected');
    }),
  ],
});

const gateway = useGateway({ deps: { catalog } });
let session: string;
beforeAll(async () => {
  session = await gateway.open();
});

const exposition = async () => (await gateway.request({ path: '/metrics' })).text;
const value = (family: string, labels?: Record<string, string>) =>
  seriesOf(gateway, family, labels);

describe('the metrics endpoint', () => {
  test('§4.11 OpenMetrics text that ends with # EOF, without authentication', async () => {
    const { status, headers, text } = await gateway.request({ path: '/metrics' });
    expect(status).toBe(200);
    expect(headers['content-type']).toBe(
      'application/openmetrics-text; version=1.0.0; charset=utf-8',
    );
    expect(text.endsWith('# EOF\n')).toBe(true);
  });

  test('§4.11 it is there only with METRICS_ENABLED=true', async () => {
    const off = await startGateway({ env: { METRICS_ENABLED: '' } });
    try {
      expect((await off.request({ path: '/metrics' })).status).toBe(404);
    } finally {
      await off.close();
    }
  });

  test('§4.11 every family of the table is announced, with its type', async () => {
    const text = await exposition();
    for (const [family, type] of Object.entries({
      http_requests: 'counter',
      http_request_duration_seconds: 'histogram',
      mcp_sessions_active: 'gauge',
      mcp_sessions: 'counter',
      mcp_tool_invocations: 'counter',
      mcp_tool_duration_seconds: 'histogram',
      auth_attempts: 'counter',
      auth_token_validation_duration_seconds: 'histogram',
      jwks_refresh: 'counter',
      jwks_cache_hits: 'counter',
      jwks_cache_misses: 'counter',
      redis_operations: 'counter',
      redis_operation_duration_seconds: 'histogram',
      rate_limit_hits: 'counter',
      http_request_rate_limit_requests: 'counter',
      process_cpu_seconds: 'counter',
      nodejs_eventloop_lag_seconds: 'gauge',
    })) {
      expect(text).toMatch(new RegExp(`^# TYPE ${family}(_total)? ${type}$`, 'm'));
    }
  });

  test('§4.11 a second gateway in the process announces the same families', async () => {
    const families = (text: string) => text.split('\n').filter((line) => line.startsWith('# TYPE'));
    const first = families(await exposition());
    const second = await startGateway({ deps: { catalog } });
    try {
      expect(families((await second.request({ path: '/metrics' })).text)).toEqual(first);
    } finally {
      await second.close();
    }
  });
});

describe('every metric moves', () => {
  /** How much a series grows while something is done. */
  async function growth(
    family: string,
    labels: Record<string, string>,
    act: () => Promise<unknown>,
  ) {
    const before = (await value(family, labels)) ?? 0;
    await act();
    return ((await value(family, labels)) ?? 0) - before;
  }
  const call = (name: string) => gateway.call(session, 'tools/call', { name });
  const knock = (token: string) =>
    gateway.rpc({ jsonrpc: '2.0', id: 1, method: 'ping' }, { session, token });

  test.each([
    { route: '/health', status_code: '200', ask: { path: '/health' } },
    { route: '/mcp', status_code: '401', ask: { path: '/mcp', method: 'POST' } },
    {
      route: '/.well-known/oauth-protected-resource',
      status_code: '200',
      ask: { path: '/.well-known/oauth-protected-resource' },
    },
    { route: 'unmatched', status_code: '404', ask: { path: '/some/path' } },
    {
      route: '/mcp',
      status_code: '403',
      ask: { path: '/mcp', method: 'POST', headers: { origin: 'https://evil.example' } },
    },
  ])('§4.11 http_requests_total and duration: $route $status_code', async ({ ask, ...labels }) => {
    const all = { ...labels, method: ('method' in ask && ask.method) || 'GET' };
    expect(await growth('http_requests_total', all, () => gateway.request(ask))).toBe(1);
    expect(
      await growth('http_request_duration_seconds_count', all, () => gateway.request(ask)),
    ).toBe(1);
  });

  test('§4.11 an unknown method is counted as other', async () => {
    const labels = { method: 'other', status_code: '405' };
    expect(
      await growth('http_requests_total', labels, () =>
        gateway.request({ method: 'PROPFIND', path: '/mcp' }),
      ),
    ).toBe(1);
  });

  test.each([
    { tool: 'works', status: 'success' },
    { tool: 'refuses', status: 'error' },
    { tool: 'throws', status: 'exception' },
  ])('§4.11 mcp_tool_* of $tool: $status', async (labels) => {
    expect(await growth('mcp_tool_invocations_total', labels, () => call(labels.tool))).toBe(1);
    expect(await growth('mcp_tool_duration_seconds_count', labels, () => call(labels.tool))).toBe(
      1,
    );
  });

  test('§4.11 auth_attempts_total by result, and the duration of every check', async () => {
    const good = await gateway.issuer.sign();
    const expired = await gateway.issuer.sign({ exp: 1 });
    expect(await growth('auth_attempts_total', { result: 'success' }, () => knock(good))).toBe(1);
    expect(
      await growth('auth_attempts_total', { result: 'expired_token' }, () => knock(expired)),
    ).toBe(1);
    expect(
      await growth('auth_attempts_total', { result: 'missing_token' }, () =>
        gateway.request({ method: 'POST', path: '/mcp' }),
      ),
    ).toBe(1);
    expect(await growth('auth_attempts_total', {}, () => gateway.request({ path: '/mcp' }))).toBe(
      0,
    );
    expect(
      await growth('auth_token_validation_duration_seconds_count', {}, () => knock(good)),
    ).toBe(1);
  });

  test('§4.11 jwks_*: look-ups and refreshes', async () => {
    const good = await gateway.issuer.sign();
    expect(await growth('jwks_cache_hits_total', {}, () => knock(good))).toBe(1);
    expect(await growth('jwks_cache_misses_total', {}, () => knock('x.y.z'))).toBe(0);
    expect(await value('jwks_refresh_total', { status: 'success' })).toBeGreaterThanOrEqual(1);
  });

  test.each([
    { operation: 'admit', act: () => call('works') },
    { operation: 'create_session', act: () => gateway.open() },
    { operation: 'ping', act: () => gateway.request({ path: '/health/ready' }) },
    {
      operation: 'set_listed',
      act: () =>
        gateway.request({
          method: 'POST',
          path: '/oauth/register',
          body: { redirect_uris: ['https://a.example/'] },
        }),
    },
    {
      operation: 'get',
      act: () => gateway.request({ path: '/oauth/authorize?client_id=svc-AAAAAAAAAAAA' }),
    },
  ])(
    '§4.11 redis_operations_total counts $operation for the embedded store, too',
    async ({ operation, act }) => {
      const labels = { operation, status: 'success' };
      expect(await growth('redis_operations_total', labels, act)).toBe(1);
      expect(await growth('redis_operation_duration_seconds_count', labels, act)).toBe(1);
    },
  );

  test('§4.11 random paths, methods, tools and tokens make no new series', async () => {
    const noise = async (seed: number) => {
      const word = `x${seed}${'y'.repeat(seed % 7)}`;
      await gateway.request({ path: `/${word}/${seed}` });
      await gateway.request({ path: '/mcp', method: seed % 2 ? 'REPORT' : 'PROPFIND' });
      await gateway.request({ path: `/${word}`, method: 'PUT' });
      await call(word);
      await gateway.call(session, word);
      await gateway.rpc({ jsonrpc: '2.0', id: 1, method: 'ping' }, { token: word, session: word });
      await gateway.request({ path: `/oauth/authorize?client_id=svc-${word}` });
    };
    const series = async () =>
      (await exposition())
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#') && !/^(process|nodejs)_/.test(line))
        .map((line) => line.slice(0, line.lastIndexOf(' ')));
    for (let seed = 0; seed < 4; seed++) await noise(seed);
    const before = await series();
    for (let seed = 4; seed < 100; seed++) await noise(seed);
    expect(await series()).toEqual(before);
  });

  test('§4.11 no token gets into the metrics', async () => {
    const token = await gateway.issuer.sign();
    await knock(token);
    expect(await exposition()).not.toContain(token.slice(0, 20));
  });
});

test('§4.11 the first 1,000 tools have series of their own, all others are counted as other', async () => {
  const names = Array.from({ length: 1003 }, (_, at) => `tool-${at}`);
  const tools = names.map((name) => tool(name, () => ({ content: [] })));
  const many = await startGateway({
    env: { RATE_LIMIT_ENABLED: 'false' },
    deps: { catalog: createLocalCatalog({ tools }) },
  });
  try {
    const own = await many.open();
    for (const name of [...names, 'tool-0', 'tool-1002']) {
      await many.call(own, 'tools/call', { name });
    }
    const { text } = await many.request({ path: '/metrics' });
    const counted = new Map(
      Array.from(
        text.matchAll(/^mcp_tool_invocations_total\{tool="([^"]*)",.*\} (\d+)$/gm),
        ([, name, count]) => [name, Number(count)],
      ),
    );
    expect(counted.size).toBe(1001);
    expect(counted.get('tool-0')).toBe(2);
    expect(counted.get('tool-999')).toBe(1);
    expect(counted.get('other')).toBe(4);
    expect(text).not.toContain('tool-1000');
  } finally {
    await many.close();
  }
});
