// MCP 2026-07-28 on POST /mcp: the same token check and limits as sessions, and no session's cost.
import { describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../../src/index.ts';
import { callTool, stateless, statelessRequest } from '../../../support/clients/stateless.ts';
import { type ManualClock, manualClock } from '../../../support/gateway/clock.ts';
import { startGateway, type TestGateway } from '../../../support/gateway/gateway.ts';
import { seriesOf } from '../../../support/gateway/metrics.ts';
import { closeAfterTest } from '../../../support/lifetimes.ts';

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

let clock: ManualClock;
let gateway: TestGateway;

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  clock = manualClock();
  gateway = closeAfterTest(await startGateway({ env, deps: { clock, catalog } }));
  // Until the keys are there the address is counted before the token is judged: one operation more.
  await expect.poll(() => seriesOf(gateway, 'jwks_refresh_total', { status: 'success' })).toBe(1);
}

/** What reading the metrics costs. */
const LOOKING = ['count_sessions', 'sweep_sessions'];

/** Operations of the store so far, but for those of looking. */
async function operations(): Promise<Readonly<Record<string, number>>> {
  const { text } = await gateway.request({ path: '/metrics' });
  const samples = text.matchAll(/^redis_operations_total\{operation="(\w+)".*\} (\d+)$/gm);
  const counts = [...samples].map(([, name, count]) => [name, Number(count)] as const);
  return Object.fromEntries(counts.filter(([name]) => !LOOKING.includes(name ?? '')));
}

const CALLS = [
  { method: 'tools/call', params: { name: 'works' } },
  { method: 'tools/call', params: { name: 'nope' } },
  { method: 'server/discover', params: {} },
  { method: 'tools/list', params: {} },
  { method: 'initialize', params: {} },
];

describe('a call needs no session in the store', () => {
  test.each(CALLS)('§4.11 $method of $params is one operation of the store', async (row) => {
    await start();
    expect(await operations()).toEqual({});
    const { headers } = await stateless(gateway, row.method, row.params);
    expect(await operations()).toEqual({ admit: 1 });
    expect(headers['mcp-session-id']).toBeUndefined();
    expect(headers['x-session-expires-at']).toBeUndefined();
    expect(headers['x-ratelimit-limit']).toBe('10000');
  });

  test.each(CALLS)('§8.3 $method of $params is none with RATE_LIMIT_ENABLED=false', async (row) => {
    await start({ RATE_LIMIT_ENABLED: 'false' });
    const { headers } = await stateless(gateway, row.method, row.params);
    expect(await operations()).toEqual({});
    expect(headers['x-ratelimit-limit']).toBeUndefined();
  });

  test('§4.11 a session header costs nothing more, and the session is not read twice', async () => {
    await start();
    const session = await gateway.open();
    const before = await operations();
    await callTool(gateway, 'works', {}, { session });
    expect(await operations()).toEqual({ ...before, admit: (before.admit ?? 0) + 1 });
  });

  test('§4.11 sessions are neither made nor counted', async () => {
    await start();
    await gateway.open();
    for (const { method, params } of CALLS) await stateless(gateway, method, params);
    expect(await seriesOf(gateway, 'mcp_sessions_active')).toBe(1);
    expect(await seriesOf(gateway, 'mcp_sessions_total', { status: 'created' })).toBe(1);
    expect(await seriesOf(gateway, 'mcp_sessions_total', { status: 'expired' })).toBe(0);
  });
});

describe('the era is a label of the metrics', () => {
  test.each([
    { name: 'works', status: 'success' },
    { name: 'refuses', status: 'error' },
    { name: 'throws', status: 'exception' },
  ])('§4.11 mcp_tool_invocations_total and duration: $status', async ({ name, status }) => {
    await start();
    const session = await gateway.open();
    await gateway.call(session, 'tools/call', { name });
    await callTool(gateway, name);
    await callTool(gateway, name);
    for (const family of ['mcp_tool_invocations_total', 'mcp_tool_duration_seconds_count']) {
      const all = { tool: name, status };
      expect(await seriesOf(gateway, family, { ...all, era: 'session' })).toBe(1);
      expect(await seriesOf(gateway, family, { ...all, era: 'stateless' })).toBe(2);
      expect(await seriesOf(gateway, family)).toBe(3);
    }
  });

  test('§4.11 unknown tools and refused envelopes are no invocations', async () => {
    await start();
    await callTool(gateway, 'nope');
    await callTool(gateway, 'works', {}, { headers: { 'mcp-name': undefined } });
    expect((await seriesOf(gateway, 'mcp_tool_invocations_total')) ?? 0).toBe(0);
  });

  test('§4.11 mcp_requests_total by method and era; unknown methods are other', async () => {
    await start();
    const session = await gateway.open();
    await gateway.call(session, 'tools/list');
    await gateway.call(session, 'ping');
    await gateway.call(session, 'server/discover');
    for (const { method, params } of CALLS) await stateless(gateway, method, params);
    await stateless(gateway, 'ping');
    const of = (method: string, era: string) =>
      seriesOf(gateway, 'mcp_requests_total', { method, era });
    expect(await of('tools/list', 'session')).toBe(1);
    expect(await of('tools/list', 'stateless')).toBe(1);
    expect(await of('tools/call', 'stateless')).toBe(2);
    expect(await of('server/discover', 'stateless')).toBe(1);
    // initialize and ping here; server/discover there.
    expect(await of('other', 'stateless')).toBe(2);
    expect(await of('other', 'session')).toBe(1);
    expect(await of('initialize', 'session')).toBe(1);
    expect(await of('initialize', 'stateless')).toBe(0);
  });
});

describe('the token check is the same', () => {
  const askWith = (authorization: string | undefined) => {
    const { message, headers } = statelessRequest('tools/list');
    return gateway.request({
      method: 'POST',
      path: '/mcp',
      body: message,
      headers: { ...headers, ...(authorization !== undefined && { authorization }) },
    });
  };

  test.each([
    { reason: 'missing_token', authorization: async () => undefined },
    { reason: 'invalid_format', authorization: async () => 'Basic eDp5' },
    { reason: 'invalid_token', authorization: async () => 'Bearer a.b.c' },
    { reason: 'expired_token', authorization: signed({ exp: 1 }) },
    { reason: 'invalid_issuer', authorization: signed({ iss: 'https://else.example' }) },
    { reason: 'invalid_audience', authorization: signed({ aud: 'else' }) },
    { reason: 'missing_claim', authorization: signed({ sub: '' }) },
  ])('§5 $reason: 401 with the challenge', async ({ reason, authorization }) => {
    await start();
    const { status, headers, json } = await askWith(await authorization());
    expect(status).toBe(401);
    expect(json.error).toMatchObject({ code: -32001, data: { reason } });
    expect(headers['www-authenticate']).toMatch(/^Bearer .*resource_metadata=/);
  });

  function signed(claims: Readonly<Record<string, unknown>>) {
    return async () => `Bearer ${await gateway.issuer.sign(claims)}`;
  }
});

describe('the limits are the same', () => {
  test('§8 both eras share one counter, and a refusal looks the same', async () => {
    await start({ MCP_RATE_LIMIT_MAX: '4' });
    const session = await gateway.open();
    const remaining = async (answer: Promise<{ headers: Record<string, string | undefined> }>) =>
      (await answer).headers['x-ratelimit-remaining'];
    expect(await remaining(stateless(gateway, 'tools/list'))).toBe('2');
    expect(await remaining(gateway.call(session, 'ping'))).toBe('1');
    expect(await remaining(callTool(gateway, 'works'))).toBe('0');

    const refused = await callTool(gateway, 'works', {}, { id: 'mine' });
    const inSession = await gateway.call(session, 'ping');
    expect(refused.status).toBe(429);
    expect(refused.json.error.data).toMatchObject({
      reason: 'rate_limit_exceeded',
      retryAfter: 60,
    });
    expect(refused.json).toEqual(inSession.json);
    // The clock of node:http is not the test's.
    expect(refused.headers).toEqual({ ...inSession.headers, date: refused.headers.date });
    expect(refused.headers).toMatchObject({ 'x-ratelimit-limit': '4', 'retry-after': '60' });

    clock.advance(60_000);
    expect((await callTool(gateway, 'works')).status).toBe(200);
  });
});
