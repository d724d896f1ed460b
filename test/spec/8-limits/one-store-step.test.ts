// §11: what was judged good is counted and slides its session in one step of the store; what was not
// is counted, and slides nothing.
import { once } from 'node:events';
import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { servicePing } from '../../../src/built-in/entries.ts';
import { createLocalCatalog } from '../../../src/index.ts';
import { age } from '../../contract/redis-age.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import {
  INITIALIZE_REQUEST,
  startGateway,
  type TestGateway,
} from '../../support/gateway/gateway.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

const TTL = 60;
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };
const UNKNOWN_ID = '6f1f4a4e-5b7f-4f0e-9d6c-0a1b2c3d4e5f';
/** Where the tests come from that prepare something: it counts for no other. */
const ELSEWHERE = { 'x-forwarded-for': '192.0.2.99' };

const catalog = createLocalCatalog({ logging: true, tools: [servicePing] });

interface Backend {
  readonly env: Readonly<Record<string, string>>;
  clear(): Promise<unknown>;
  /** What is not aged by the gateway's clock. */
  age(ms: number): Promise<void>;
  close(): Promise<void>;
}

async function openRedis(): Promise<Backend> {
  const redis = await startRedis();
  const client = redis.client();
  return {
    env: { REDIS_URL: redis.url },
    clear: () => client.flushall(),
    age: (ms) => age(client, ms),
    close: redis.close,
  };
}

const openEmbedded = (): Backend => ({
  env: {},
  clear: async () => {},
  age: async () => {},
  close: async () => {},
});

describe.each([
  { name: 'embedded store', open: openEmbedded },
  { name: 'Redis', open: openRedis },
])('$name', ({ open }) => {
  const backend = useShared<Backend>(open);
  let clock: ManualClock;
  let gateway: TestGateway;

  async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    await backend.clear();
    clock = manualClock();
    const defaults = { ...backend.env, MCP_SESSION_TTL_SECONDS: String(TTL), MCP_STREAMS: 'true' };
    gateway = closeAfterTest(
      await startGateway({ env: { ...defaults, ...env }, deps: { clock, catalog } }),
    );
  }

  async function passSeconds(seconds: number): Promise<void> {
    clock.advance(seconds * 1000);
    await backend.age(seconds * 1000);
  }

  const openSession = () => gateway.open({ headers: ELSEWHERE });
  const ping = (session: string, headers = {}) => gateway.rpc(PING, { session, headers });
  const authorize = async (claims = {}) => ({
    authorization: `Bearer ${await gateway.issuer.sign(claims)}`,
  });
  const ask = async (method: 'GET' | 'DELETE', session: string, headers = {}, claims = {}) =>
    gateway.request({
      method,
      path: '/mcp',
      headers: { ...(await authorize(claims)), 'mcp-session-id': session, ...headers },
    });
  const callStateless = (session?: string, headers = {}) => {
    const { message, headers: own } = statelessRequest('tools/call', { name: 'service_ping' });
    return gateway.rpc(message, {
      headers: { ...own, ...headers, ...(session !== undefined && { 'mcp-session-id': session }) },
    });
  };

  /** The head now; the body once the clock has moved on. */
  async function sendLate(session: string, claims: object, seconds: number) {
    const body = JSON.stringify(PING);
    const sent = request({
      host: '127.0.0.1',
      port: await gateway.listen(),
      method: 'POST',
      path: '/mcp',
      agent: false,
      headers: {
        host: new URL(gateway.baseUrl).host,
        ...(await authorize(claims)),
        'content-type': 'application/json',
        'content-length': body.length,
        'mcp-session-id': session,
      },
    });
    sent.write(body.slice(0, 1));
    const before = await countOperations();
    await expect.poll(readAttempts).toBe(2);
    expect(await countOperations()).toEqual(before);
    clock.advance(seconds * 1000);
    sent.end(body.slice(1));
    const [answer] = await once(sent, 'response');
    answer.resume();
    return { status: answer.statusCode, headers: answer.headers };
  }

  /** Tokens judged so far. */
  const readAttempts = async () => sumLines(await scrape(), 'auth_attempts_total');
  const scrape = async () => (await gateway.request({ path: '/metrics' })).text;

  /** Calls of the store by operation, without those of the scrape itself. */
  async function countOperations(): Promise<Readonly<Record<string, number>>> {
    const text = await scrape();
    const counts = [...text.matchAll(/^redis_operations_total\{(.*)\} (\d+)/gm)].map(
      ([, labels = '', count]) => [/operation="(\w+)"/.exec(labels)?.[1] ?? '', Number(count)],
    );
    const { sweep_sessions: _, count_sessions: __, ...rest } = Object.fromEntries(counts);
    return rest;
  }

  /** What `work` asks of the store. */
  async function findOperations(work: () => Promise<unknown>) {
    const before = await countOperations();
    await work();
    const after = Object.entries(await countOperations());
    return Object.fromEntries(
      after
        .map(([name, count]) => [name, count - (before[name] ?? 0)] as const)
        .filter(([, count]) => count > 0),
    );
  }

  describe('what is refused slides nothing', () => {
    const expired = { exp: Math.floor(Date.now() / 1000) - 3600 };
    const rows: readonly Refusal[] = [
      ['a body that is broken', 400, (session) => gateway.rpc('{"broken', { session })],
      ['a batch', 400, (session) => gateway.rpc([PING], { session })],
      ['no JSON-RPC', 400, (session) => gateway.rpc({ ...PING, jsonrpc: '1.0' }, { session })],
      ['an id that is none', 400, (session) => gateway.rpc({ ...PING, id: { a: 1 } }, { session })],
      [
        'a version of no era',
        400,
        (session) => ping(session, { 'mcp-protocol-version': '2020-01-01' }),
      ],
      ['a body that is too large', 413, (session) => gateway.rpc('x'.repeat(3000), { session })],
      ['a body of another type', 415, (session) => ping(session, { 'content-type': 'text/plain' })],
      [
        'a body that outlasts its token',
        401,
        (session) => sendLate(session, { exp: clock.now() / 1000 + 1 }, 2),
      ],
      [
        'another user',
        404,
        async (session) =>
          gateway.rpc(PING, { session, token: await gateway.issuer.sign({ sub: 'eve' }) }),
      ],
      [
        'an expired token',
        401,
        async (session) =>
          gateway.rpc(PING, { session, token: await gateway.issuer.sign(expired) }),
      ],
      ['another user’s DELETE', 404, (session) => ask('DELETE', session, {}, { sub: 'eve' })],
      ['an expired token’s DELETE', 401, (session) => ask('DELETE', session, {}, expired)],
      ['GET without its Accept', 406, (session) => ask('GET', session, { accept: 'text/html' })],
      [
        'GET of an unknown version',
        400,
        (session) =>
          ask('GET', session, {
            accept: 'text/event-stream',
            'mcp-protocol-version': '1999-01-01',
          }),
      ],
      [
        'another user’s GET',
        404,
        (session) => ask('GET', session, { accept: 'text/event-stream' }, { sub: 'eve' }),
      ],
      ['a stateless call that names it', 200, (session) => callStateless(session)],
    ];

    test.each(rows)('§3.1 %s: %d', async (_what, status, send) => {
      await start({ MAX_BODY_BYTES: '2048', OIDC_CLOCK_TOLERANCE_SECONDS: '0' });
      const session = await openSession();
      await passSeconds(40);
      const answer = await send(session);
      expect(answer.status).toBe(status);
      expect(answer.headers['x-session-expires-at']).toBeUndefined();
      await passSeconds(TTL - 40 - 3);
      const gauge = /^mcp_sessions_active (\d+)/m.exec(await scrape())?.[1];
      expect(gauge).toBe('1');
      await passSeconds(4);
      expect((await ping(session)).status).toBe(404);
    });

    test.each([
      ['address', 'MCP_RATE_LIMIT_MAX', 'rate_limit_exceeded'],
      ['user', 'MCP_USER_RATE_LIMIT_MAX', 'user_rate_limit_exceeded'],
      ['global', 'MCP_GLOBAL_RATE_LIMIT_MAX', 'global_rate_limit_exceeded'],
    ])('§8.1 a call over the limit: %s', async (_scope, variable, reason) => {
      await start({ [variable]: '2' });
      const session = await gateway.open();
      await gateway.open();
      await passSeconds(40);
      const refused = await ping(session);
      expect(refused.json.error.data.reason).toBe(reason);
      await passSeconds(TTL - 40 + 1);
      expect((await ping(session)).status).toBe(404);
    });

    test('§8.1 at the edge of a limit, those that are admitted slide and no others', async () => {
      await start({ MCP_RATE_LIMIT_MAX: '10' });
      const opening = Array.from({ length: 20 }, (_, at) =>
        gateway.open({ headers: { 'x-forwarded-for': `198.51.100.${at}` } }),
      );
      const sessions = await Promise.all(opening);
      await passSeconds(40);
      const answers = await Promise.all(sessions.map((session) => ping(session)));
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
      await passSeconds(TTL - 40 + 1);
      const later = await Promise.all(
        sessions.map((session, at) => ping(session, { 'x-forwarded-for': `203.0.113.${at}` })),
      );
      expect(later.map(({ status }) => status)).toEqual(
        answers.map(({ status }) => (status === 200 ? 200 : 404)),
      );
    });
  });

  test.each<readonly [string, number, object]>([
    ['a request', 200, PING],
    ['an unknown method', 200, { ...PING, method: 'nope' }],
    ['a notification', 202, { jsonrpc: '2.0', method: 'notifications/initialized' }],
    ['a response', 202, { jsonrpc: '2.0', id: 'x', result: {} }],
    ['another initialize', 400, INITIALIZE_REQUEST],
  ])('§3.1 %s is accepted: it slides the session and says until when', async (...row) => {
    const [, status, message] = row;
    await start();
    const session = await openSession();
    for (let turn = 0; turn < 3; turn += 1) {
      await passSeconds(40);
      const answer = await gateway.rpc(message, { session });
      expect(answer.status).toBe(status);
      expect(answer.headers['x-session-expires-at']).toBe(
        new Date(clock.now() + TTL * 1000).toISOString(),
      );
    }
    expect((await ping(session)).status).toBe(200);
  });

  test('§3.1 a body that is late but good slides the session, once its token was judged again', async () => {
    await start();
    const session = await openSession();
    await passSeconds(40);
    const { status, headers } = await sendLate(session, {}, 2);
    expect([status, headers['x-session-expires-at']]).toEqual([
      200,
      new Date(clock.now() + TTL * 1000).toISOString(),
    ]);
    expect(await readAttempts()).toBe(3);
    await passSeconds(40);
    expect((await ping(session)).status).toBe(200);
  });

  test('§15 logging/setLevel is stored before its answer, and slides like any call', async () => {
    await start();
    const session = await openSession();
    await passSeconds(40);
    const operations = await findOperations(async () => {
      const answer = await gateway.call(session, 'logging/setLevel', { level: 'error' });
      expect(answer.json.result).toEqual({});
      expect(answer.headers['x-session-expires-at']).toBe(
        new Date(clock.now() + TTL * 1000).toISOString(),
      );
    });
    expect(operations).toEqual({ admit: 1, set_session_log_level: 1 });
    await passSeconds(40);
    expect((await ping(session)).status).toBe(200);
  });

  test('§11 a call is one operation of the store', async () => {
    await start({ MCP_STREAMS: 'false' });
    const session = await openSession();
    const rows: readonly (readonly [Readonly<Record<string, number>>, () => Promise<unknown>])[] = [
      [{ admit: 1 }, () => gateway.call(session, 'tools/call', { name: 'service_ping' })],
      [{ admit: 1 }, () => gateway.rpc({ jsonrpc: '2.0', method: 'x' }, { session })],
      [{ admit: 1 }, () => callStateless()],
      [{ admit: 1 }, () => gateway.rpc(PING, { token: 'a.b.c' })],
      [{ admit: 1 }, () => gateway.rpc('{', { session })],
      [{ admit: 1, create_session: 1 }, () => gateway.open()],
      [{ admit: 1, end_session: 1 }, () => ask('DELETE', session)],
      [{ admit: 1, take_expired_session: 1 }, () => ping(session)],
    ];
    for (const [expected, work] of rows) expect(await findOperations(work)).toEqual(expected);
  });

  test('§8.3 without limits it is the same step, and none without a session', async () => {
    await start({ RATE_LIMIT_ENABLED: 'false' });
    const session = await openSession();
    await passSeconds(40);
    expect(await findOperations(() => ping(session))).toEqual({ admit: 1 });
    expect(await findOperations(() => callStateless())).toEqual({});
    expect(await findOperations(() => gateway.rpc('{', { session }))).toEqual({});
    await passSeconds(40);
    const eve = await gateway.issuer.sign({ sub: 'eve' });
    expect((await gateway.rpc(PING, { session, token: eve })).status).toBe(404);
    expect((await ping(session)).status).toBe(200);
  });

  test('§5.3 AUTH_REQUIRED=false: a session of nobody slides for everybody', async () => {
    await start({ AUTH_REQUIRED: 'false' });
    const session = await openSession();
    for (let turn = 0; turn < 3; turn += 1) {
      await passSeconds(40);
      expect((await ping(session)).status).toBe(200);
    }
  });

  test('§8.1 an expired token is counted among the anonymous', async () => {
    await start({ MCP_GLOBAL_RATE_LIMIT_MAX: '2' });
    const session = await openSession();
    const token = await gateway.issuer.sign({ exp: Math.floor(clock.now() / 1000) - 3600 });
    const statuses = [];
    for (let turn = 0; turn < 3; turn += 1) {
      statuses.push((await gateway.rpc(PING, { session, token })).status);
    }
    expect(statuses).toEqual([401, 401, 429]);
    expect((await ping(session)).status).toBe(200);
    expect((await ping(session)).status).toBe(429);
  });

  test.each<readonly [string, number, (session: string) => Promise<{ readonly status: number }>]>([
    ['calls in a session', 200, (session) => ping(session)],
    ['stateless calls', 200, () => callStateless()],
    ['DELETEs', 404, () => ask('DELETE', UNKNOWN_ID)],
    ['initialize', 200, () => gateway.rpc(INITIALIZE_REQUEST)],
    ['calls that are broken', 400, (session) => gateway.rpc('{', { session })],
    ['calls without a token', 401, () => gateway.rpc(PING, { token: 'a.b.c' })],
  ])('§8.1 of 200 %s at once, a limit of 100 admits exactly 100', async (_what, status, send) => {
    await start({ MCP_RATE_LIMIT_MAX: '100' });
    const session = await openSession();
    const answers = await Promise.all(Array.from({ length: 200 }, () => send(session)));
    const statuses = answers.map((answer) => answer.status);
    expect(statuses.filter((one) => one === status)).toHaveLength(100);
    expect(statuses.filter((one) => one === 429)).toHaveLength(100);
  });
});

test('§11 a DELETE that fails has given its session no time', async () => {
  const clock = manualClock();
  const wrapped = await wrapStore(
    () => ({ endSession: () => Promise.reject(new Error('down')) }),
    clock,
  );
  const env = { MCP_SESSION_TTL_SECONDS: String(TTL) };
  const gateway = await startGateway({ env, deps: { clock, store: wrapped.store } });
  closeAfterTest({ close: () => gateway.close().then(wrapped.remove) });
  const session = await gateway.open();
  clock.advance(40_000);
  const headers = {
    authorization: `Bearer ${await gateway.issuer.sign()}`,
    'mcp-session-id': session,
  };
  const failed = await gateway.request({ method: 'DELETE', path: '/mcp', headers });
  expect(failed.status).toBe(500);
  clock.advance((TTL - 40) * 1000 + 1);
  expect((await gateway.rpc(PING, { session })).status).toBe(404);
});

type Refusal = readonly [
  what: string,
  status: number,
  send: (session: string) => Promise<{
    readonly status: number | undefined;
    readonly headers: Readonly<Record<string, unknown>>;
  }>,
];

const sumLines = (text: string, family: string): number =>
  text
    .split('\n')
    .filter((line) => line.startsWith(`${family}{`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
