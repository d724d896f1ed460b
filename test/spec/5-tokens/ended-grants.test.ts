// §5, §8, §11: callers who came by the gateway's own tokens, once their grant has ended, changed, or cannot be read.
import { describe, expect, test } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { BASE_URL, INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import {
  type GrantedGateway,
  grantKeyOf,
  startGrantedGateway,
} from '../../support/gateway/granted-gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

const ONE = 'AAAAAAAAAAAAAAA1';
const TWO = 'AAAAAAAAAAAAAAA2';
const ADA = { sub: 'ada', name: 'Ada' };
const GRACE = { sub: 'grace', name: 'Grace' };

const ping = { jsonrpc: '2.0', id: 7, method: 'ping' };
const greet = { jsonrpc: '2.0', id: 7, method: 'prompts/get', params: { name: 'user-context' } };

let store: Store;
let gateway: GrantedGateway;

async function start(
  env: Readonly<Record<string, string>> = {},
  steps: (store: Store) => Partial<Store> = () => ({}),
): Promise<void> {
  const wrapped = await wrapStore(steps);
  store = wrapped.store;
  gateway = await startGrantedGateway(store, { env });
  closeAfterTest({
    async close() {
      await gateway.close();
      await store.close();
      await wrapped.remove();
    },
  });
}

type Answer = Awaited<ReturnType<GrantedGateway['send']>>;

function expectRevoked({ status, headers, json }: Answer, id: unknown = null): void {
  expect(status).toBe(401);
  expect(json).toEqual({
    jsonrpc: '2.0',
    error: {
      code: -32001,
      message: 'Unauthorized',
      data: {
        reason: 'token_revoked',
        details: 'The login that this token belongs to has ended. Log in again.',
      },
    },
    id,
  });
  expect(headers['www-authenticate']).toBe(
    `Bearer error="invalid_token", resource_metadata="${BASE_URL}/.well-known/oauth-protected-resource/mcp"`,
  );
}

const reasonOf = ({ status, json }: Answer) => [status, json.error?.data?.reason];

describe('a grant that was ended', () => {
  test('§5 the next call is refused with 401 token_revoked, and nobody else notices', async () => {
    await start();
    const ada = await gateway.grant('ada-1', ONE, ADA);
    const grace = await gateway.grant('grace-1', ONE, GRACE);
    const sessions = { ada: await gateway.open(ada), grace: await gateway.open(grace) };
    const call = (token: string, session: string) => gateway.send(token, ping, { session });
    expect((await call(ada, sessions.ada)).status).toBe(200);
    await store.delete(grantKeyOf('ada-1'));
    expectRevoked(await call(ada, sessions.ada));
    expectRevoked(await gateway.send(ada, INITIALIZE_REQUEST));
    const { message, headers } = statelessRequest('tools/list');
    expectRevoked(await gateway.send(ada, message, { headers }));
    expect((await call(grace, sessions.grace)).status).toBe(200);
    // The same user's session goes on by another login.
    const again = await gateway.grant('ada-2', ONE, ADA);
    expect((await call(again, sessions.ada)).status).toBe(200);
    expect(gateway.countReloads()).toBe(0);
  });

  test.each([
    { what: 'what is no JSON', body: '{' },
    { what: 'what is no message', body: { hello: 'world' } },
  ])('§11 the token is refused before the body: $what', async ({ body }) => {
    await start();
    const ada = await gateway.grant('ada-1', ONE, ADA);
    expect((await gateway.send(ada, body)).status).toBe(400);
    await store.delete(grantKeyOf('ada-1'));
    expectRevoked(await gateway.send(ada, body));
  });

  test.each([
    { what: 'calls', body: INITIALIZE_REQUEST },
    { what: 'what is no JSON', body: '{' },
    { what: 'what is no message', body: {} },
  ])(
    '§8.1 a flood of $what counts as that of anonymous callers, and takes nothing from the user or all callers',
    async ({ body }) => {
      await start({ MCP_GLOBAL_RATE_LIMIT_MAX: '5', MCP_USER_RATE_LIMIT_MAX: '3' });
      const ended = await gateway.grant('ada-1', ONE, ADA);
      const ada = await gateway.grant('ada-2', ONE, ADA);
      const grace = await gateway.grant('grace-1', ONE, GRACE);
      await store.delete(grantKeyOf('ada-1'));
      const flood = [];
      for (let at = 0; at < 12; at += 1) {
        flood.push(reasonOf(await gateway.send(ended, body, { ip: `10.1.0.${at}` })));
      }
      expect(flood.slice(0, 5)).toEqual(Array(5).fill([401, 'token_revoked']));
      expect(flood.slice(5)).toEqual(Array(7).fill([429, 'global_rate_limit_exceeded']));
      for (const [at, token] of [ada, ada, ada, grace, grace].entries()) {
        const { status } = await gateway.send(token, INITIALIZE_REQUEST, { ip: `10.2.0.${at}` });
        expect(status).toBe(200);
      }
    },
  );

  test('§8.1 a flood from one address fills the window of that address, and no other', async () => {
    await start({ MCP_RATE_LIMIT_MAX: '3', MCP_USER_RATE_LIMIT_MAX: '2' });
    const ended = await gateway.grant('ada-1', ONE, ADA);
    const ada = await gateway.grant('ada-2', ONE, ADA);
    await store.delete(grantKeyOf('ada-1'));
    const answers = [];
    for (let at = 0; at < 5; at += 1) answers.push(await gateway.send(ended, INITIALIZE_REQUEST));
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 429, 429]);
    expect(answers.map(({ headers }) => headers['x-ratelimit-remaining'])).toEqual([
      '2',
      '1',
      '0',
      '0',
      '0',
    ]);
    for (let at = 0; at < 2; at += 1) {
      const { status } = await gateway.send(ada, INITIALIZE_REQUEST, { ip: '10.0.0.2' });
      expect(status).toBe(200);
    }
  });

  test('§4.11 a refused call is one check of the limits, as any other', async () => {
    await start();
    const ada = await gateway.grant('ada-1', ONE, ADA);
    await gateway.send(ada, INITIALIZE_REQUEST);
    await store.delete(grantKeyOf('ada-1'));
    for (let at = 0; at < 3; at += 1) await gateway.send(ada, INITIALIZE_REQUEST);
    const checks = /^http_request_rate_limit_requests_total\{.*limited="false"\} (\d+)$/m;
    expect(checks.exec(await gateway.readMetrics())?.[1]).toBe('4');
  });

  test('§8.3 without limits a call is refused all the same', async () => {
    await start({ RATE_LIMIT_ENABLED: 'false' });
    const ada = await gateway.grant('ada-1', ONE, ADA);
    expect((await gateway.send(ada, INITIALIZE_REQUEST)).status).toBe(200);
    await store.delete(grantKeyOf('ada-1'));
    expectRevoked(await gateway.send(ada, INITIALIZE_REQUEST));
  });
});

describe('a grant that has changed since this process read it', () => {
  const greeting = async (token: string, session: string) => {
    const answer = await gateway.send(token, greet, { session });
    return { ...answer, text: answer.json.result.messages[0].content.text as string };
  };

  test.each([
    { limits: 'with limits', env: {} },
    { limits: 'without limits', env: { RATE_LIMIT_ENABLED: 'false' } },
  ])('§5 $limits: the call is answered for the user as it is now', async ({ env }) => {
    await start(env);
    const ada = await gateway.grant('ada-1', ONE, ADA);
    const session = await gateway.open(ada);
    expect((await greeting(ada, session)).text).toContain('Welcome Ada and');
    await gateway.grant('ada-1', TWO, { sub: 'ada', name: 'Ada Lovelace' }, false);
    expect((await greeting(ada, session)).text).toContain('Welcome Ada Lovelace and');
    expect(gateway.countReloads()).toBe(1);
    expect((await gateway.send(ada, { ...ping, id: {} }, { session })).status).toBe(400);
  });

  test('§8.1 and counted once', async () => {
    await start({ MCP_RATE_LIMIT_MAX: '10' });
    const ada = await gateway.grant('ada-1', ONE, ADA);
    const session = await gateway.open(ada);
    await gateway.grant('ada-1', TWO, ADA, false);
    const left = [];
    for (let at = 0; at < 3; at += 1) {
      left.push((await greeting(ada, session)).headers['x-ratelimit-remaining']);
    }
    expect(left).toEqual(['8', '7', '6']);
  });

  test('§5 and is gone when it is read: 401 token_revoked', async () => {
    let isEnding = false;
    await start({}, (own) => ({
      async admitRequest(...args) {
        const admission = await own.admitRequest(...args);
        if (isEnding) await own.delete(grantKeyOf('ada-1'));
        return admission;
      },
    }));
    const ada = await gateway.grant('ada-1', ONE, ADA);
    await gateway.grant('ada-1', TWO, ADA, false);
    isEnding = true;
    expectRevoked(await gateway.send(ada, INITIALIZE_REQUEST));
  });
});

describe('a grant that cannot be read', () => {
  test.each([
    { what: 'the whole step fails', isWhole: true, env: {} },
    { what: 'its lookup alone fails', isWhole: false, env: {} },
    { what: 'without limits', isWhole: true, env: { RATE_LIMIT_ENABLED: 'false' } },
  ])('§8.4 $what: 500, with a session or without one', async ({ isWhole, env }) => {
    let isDown = false;
    const failure = new Error('down');
    await start(env, (own) => ({
      async admitRequest(...args) {
        if (isDown && isWhole) throw failure;
        const admission = await own.admitRequest(...args);
        return isDown ? { ...admission, grant: { failure } } : admission;
      },
    }));
    const ada = await gateway.grant('ada-1', ONE, ADA);
    const session = await gateway.open(ada);
    const { message, headers } = statelessRequest('tools/list');
    const callBoth = async () => {
      const answers = [
        await gateway.send(ada, ping, { session }),
        await gateway.send(ada, message, { headers }),
      ];
      return answers.map(({ status }) => status);
    };
    expect(await callBoth()).toEqual([200, 200]);
    isDown = true;
    expect(await callBoth()).toEqual([500, 500]);
    isDown = false;
    expect(await callBoth()).toEqual([200, 200]);
  });
});
