// §2.1, §3.1: a user is issuer and sub together. Two users of one sub have nothing of each other's.

import { beforeEach, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { openStore } from '../../../src/store/open.ts';
import { BASE_URL, startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { type GrantedGateway, startGrantedGateway } from '../../support/gateway/granted-gateway.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { closeAfterTest, useFresh, useShared } from '../../support/lifetimes.ts';
import { type Issuer, startIssuer } from '../../support/oauth/issuer.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

type Env = Readonly<Record<string, string>>;

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };
const SET_LEVEL = { jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level: 'error' } };
const STREAM = { accept: 'text/event-stream' };

/** Each way of naming a session. */
const WAYS = [
  { way: 'a call', method: 'POST', body: PING, headers: {} },
  { way: 'logging/setLevel', method: 'POST', body: SET_LEVEL, headers: {} },
  { way: 'a GET stream', method: 'GET', body: undefined, headers: STREAM },
  { way: 'DELETE', method: 'DELETE', body: undefined, headers: {} },
] as const;

const folder = useFresh(createTemporaryFolder);
const redis = useShared(startRedis);
const STORES = [
  { kind: 'DATA_DIR', place: (): Env => ({ DATA_DIR: folder.path }) },
  { kind: 'Redis', place: (): Env => ({ REDIS_URL: redis.url }) },
];

beforeEach(async () => {
  await redis.client().flushall();
});

describe.each(STORES)('two users of one sub at one gateway, with $kind', ({ place }) => {
  let gateway: GrantedGateway;
  let ada: string;
  let namesake: string;
  let eve: string;

  async function start(env: Env = {}): Promise<void> {
    const settings = { BASE_URL, OAUTH_MODE: 'proxy', OIDC_ISSUER: 'https://issuer.example' };
    const store = await openStore(loadConfig({ ...settings, ...place() }), {
      clock: systemClock,
      log: collectLog().log,
    });
    gateway = await startGrantedGateway(store, { env: { MCP_STREAMS: 'true', ...env } });
    closeAfterTest({
      async close() {
        await gateway.close();
        await store.close();
      },
    });
    const issuer = 'https://other.example';
    ada = await gateway.grant('ada-1', 'AAAAAAAAAAAAAAA1', { sub: 'ada', name: 'Ada' });
    namesake = await gateway.grant('ada-2', 'AAAAAAAAAAAAAAA2', { sub: 'ada', name: 'A', issuer });
    eve = await gateway.grant('eve-1', 'AAAAAAAAAAAAAAA3', { sub: 'eve', name: 'Eve' });
  }

  const statusOf = async (token: string, session: string) =>
    (await gateway.send(token, PING, { session })).status;

  test.each(WAYS)('§3.1 $way does not find the session of the other', async (sending) => {
    await start();
    const { body, method, headers } = sending;
    for (const [owner, other] of [
      [ada, namesake],
      [namesake, ada],
    ] as const) {
      const session = await gateway.open(owner);
      const refused = await gateway.send(other, body, { session, method, headers });
      const ofEve = await gateway.send(eve, body, { session, method, headers });
      expect(refused.status).toBe(404);
      expect(refused.json.error.data.reason).toBe('session_not_found');
      expect(refused.json).toEqual(ofEve.json);
      expect(await statusOf(owner, session)).toBe(200);
    }
  });

  test('§8.1 each has requests of its own in a window', async () => {
    await start({ MCP_USER_RATE_LIMIT_MAX: '2' });
    const answers = [];
    for (const token of [ada, ada, ada, namesake, namesake, namesake]) {
      answers.push((await gateway.send(token, PING)).status);
    }
    expect(answers.map((status) => status === 429)).toEqual([
      false,
      false,
      true,
      false,
      false,
      true,
    ]);
  });

  test('§12 each has sessions of its own', async () => {
    await start({ MCP_USER_SESSIONS_MAX: '1' });
    const own = await gateway.open(ada);
    const first = await gateway.open(namesake);
    expect(await statusOf(ada, own)).toBe(200);
    const second = await gateway.open(namesake);
    expect(await statusOf(namesake, first)).toBe(404);
    expect(await statusOf(namesake, second)).toBe(200);
    expect(await statusOf(ada, own)).toBe(200);
  });
});

describe.each(STORES)('after OIDC_ISSUER has changed, with $kind', ({ place }) => {
  const issuers = useShared(async () => {
    const [before, after] = await Promise.all([startIssuer(), startIssuer()]);
    return {
      before,
      after,
      async close() {
        await before.close();
        await after.close();
      },
    };
  });

  /** Until the next one is started. */
  let running: TestGateway | undefined;

  async function restart({ url }: Issuer): Promise<TestGateway> {
    await running?.close();
    running = await startGateway({
      env: { OIDC_ISSUER: url, MCP_STREAMS: 'true', MCP_USER_SESSIONS_MAX: '1', ...place() },
    });
    return running;
  }

  beforeEach(() => {
    running = undefined;
    closeAfterTest({ close: async () => running?.close() });
  });

  test.each(WAYS)('§3.1 $way of the new user does not find the old one', async (sending) => {
    const { before, after } = issuers;
    const { body, method, headers } = sending;
    const [token, other] = [await before.sign({ sub: 'ada' }), await after.sign({ sub: 'ada' })];
    const session = await (await restart(before)).open({ token });
    const gateway = await restart(after);
    const refused = await gateway.request({
      method,
      path: '/mcp',
      body,
      headers: { ...headers, authorization: `Bearer ${other}`, 'mcp-session-id': session },
    });
    expect(refused.status).toBe(404);
    expect(refused.json.error.data.reason).toBe('session_not_found');
    const again = await restart(before);
    expect((await again.rpc(PING, { session, token })).status).toBe(200);
  });

  test('§12 the new user has as many sessions as are allowed', async () => {
    const { before, after } = issuers;
    await (await restart(before)).open({ token: await before.sign({ sub: 'ada' }) });
    const gateway = await restart(after);
    const token = await after.sign({ sub: 'ada' });
    const own = await gateway.open({ token });
    expect((await gateway.rpc(PING, { session: own, token })).status).toBe(200);
  });
});
