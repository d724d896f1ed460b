// §12: calls that run for long: so many of one user, so many in a process.
import { EventEmitter, once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import { createCountCall } from '../../../src/mcp/calls/observe-calls.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { callTool } from '../../support/clients/stateless.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import {
  startGateway,
  type TestGateway,
  type TestOptions,
  type TestResponse,
} from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const ends = new EventEmitter().setMaxListeners(0);
let running = 0;
const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'waits',
      description:
        'Runs until the test says so, whoever has left; speaks first where it is asked to.',
      inputSchema: { type: 'object' },
      async run(_args, { progress }) {
        progress(1);
        running++;
        await once(ends, 'end');
        running--;
        return { content: [] };
      },
    }),
    defineTool({
      name: 'quick',
      description: 'Ends at once.',
      inputSchema: { type: 'object' },
      run: () => ({ content: [] }),
    }),
  ],
});

interface Started extends TestGateway {
  readonly clock: ManualClock;
}

let gateway: Started;
afterEach(async () => {
  ends.emit('end');
  await expect.poll(() => running).toBe(0);
});

async function start(env: TestOptions['env'] = {}): Promise<void> {
  const clock = manualClock();
  const started = closeAfterTest(
    await startGateway({
      env: { MCP_STREAMS: 'true', MCP_USER_CALLS_MAX: '3', ...env },
      deps: { clock, catalog },
    }),
  );
  gateway = { ...started, clock };
}

interface User {
  readonly token: string;
  readonly session: string;
}

async function logIn(sub: string): Promise<User> {
  const token = await gateway.issuer.sign({ sub });
  return { token, session: await gateway.open({ token }) };
}

const call = (user: User, name: string, id = 1) =>
  gateway.rpc({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } }, user);

/** Calls that run for over a second; resolves to what they are answered with. */
async function beginLong(count: number, begin: () => Promise<unknown>) {
  const before = running;
  const answers = Array.from({ length: count }, begin);
  await expect.poll(() => running).toBe(before + count);
  gateway.clock.advance(1001);
  return { answers };
}

function expectRefused({ status, headers, json }: TestResponse, id: unknown): void {
  expect(status).toBe(429);
  expect(headers['retry-after']).toBe('1');
  expect(Object.keys(headers).filter((name) => name.startsWith('x-ratelimit'))).toEqual([]);
  expect(json).toMatchObject({
    jsonrpc: '2.0',
    error: { code: -32000, message: 'Too Many Requests', data: { reason: 'too_many_calls' } },
    id,
  });
}

describe('MCP_USER_CALLS_MAX', () => {
  test('§12 one more than so many calls of a user is 429, with its id and without headers of a limit', async () => {
    await start();
    const ada = await logIn('ada');
    const { answers } = await beginLong(3, () => call(ada, 'waits'));
    expectRefused(await call(ada, 'quick', 77), 77);
    // Everybody else, and what is no call of a method that may take long, is not concerned.
    const bob = await logIn('bob');
    expect((await call(bob, 'quick')).status).toBe(200);
    expect((await gateway.rpc({ jsonrpc: '2.0', id: 1, method: 'ping' }, ada)).status).toBe(200);
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } };
    expect((await gateway.rpc(cancel, ada)).status).toBe(202);
    expect((await gateway.rpc({ jsonrpc: '2.0', id: 'x', result: {} }, ada)).status).toBe(202);
    await gateway.open({ token: ada.token });

    ends.emit('end');
    await Promise.all(answers);
    expect((await call(ada, 'quick')).status).toBe(200);
  });

  test('§12 calls that have run for a second or less do not count', async () => {
    await start();
    const ada = await logIn('ada');
    const answers = Array.from({ length: 20 }, () => call(ada, 'waits'));
    await expect.poll(() => running).toBe(20);
    gateway.clock.advance(1000);
    expect((await call(ada, 'quick')).status).toBe(200);
    gateway.clock.advance(1);
    expectRefused(await call(ada, 'quick'), 1);
    ends.emit('end');
    await Promise.all(answers);
  });

  test('§12 both eras count, and all sessions of a user', async () => {
    await start();
    const ada = await logIn('ada');
    const again = await logIn('ada');
    const { token } = ada;
    const begins = [
      () => call(ada, 'waits'),
      () => call(again, 'waits'),
      () => callTool(gateway, 'waits', {}, { token }),
    ];
    for (const begin of begins) await beginLong(1, begin);
    expectRefused(await callTool(gateway, 'quick', {}, { token, id: 'seven' }), 'seven');
    expectRefused(await call(again, 'quick'), 1);
  });

  test('§12 a call whose answer is a stream counts, a stream of notifications does not', async () => {
    await start();
    const client = await openClient(gateway, { token: await gateway.issuer.sign({ sub: 'ada' }) });
    const streams = [await client.watch()];
    for (let id = 0; id < 2; id++) {
      streams.push(await client.call('waits', {}, { id, progressToken: id }));
    }
    gateway.clock.advance(1001);
    expect((await call(client, 'quick')).status).toBe(200);
    streams.push(await client.call('waits', {}, { id: 2, progressToken: 2 }));
    gateway.clock.advance(1001);
    expectRefused(await call(client, 'quick'), 1);
    for (const stream of streams) stream.hangUp();
  });

  test('§12 a call counts until its tool has ended, whoever has left or cancelled', async () => {
    await start();
    const client = await openClient(gateway, { token: await gateway.issuer.sign({ sub: 'ada' }) });
    const streams = [];
    for (let id = 1; id <= 3; id++) {
      streams.push(await client.call('waits', {}, { id, progressToken: id }));
    }
    await client.cancel(1);
    for (const stream of streams) stream.hangUp();
    gateway.clock.advance(1001);
    expectRefused(await call(client, 'quick'), 1);
    ends.emit('end');
    await expect.poll(() => running).toBe(0);
    expect((await call(client, 'quick')).status).toBe(200);
  });

  test('§12 a call that is refused counts as a request, and is no call of a tool', async () => {
    await start();
    const ada = await logIn('ada');
    await beginLong(3, () => call(ada, 'waits'));
    await call(ada, 'quick');
    const { text } = await gateway.request({ path: '/metrics' });
    expect(text).not.toMatch(/mcp_tool_invocations_total\{[^}]*tool="quick"/);
  });

  test('§12 0 means none', async () => {
    await start({ MCP_USER_CALLS_MAX: '0' });
    const ada = await logIn('ada');
    await beginLong(100, () => call(ada, 'waits'));
    expect((await call(ada, 'quick')).status).toBe(200);
  });
});

test('§12 without authentication there is no limit per user', async () => {
  await start({ AUTH_REQUIRED: 'false' });
  await beginLong(20, () => callTool(gateway, 'waits'));
  expect((await callTool(gateway, 'quick')).status).toBe(200);
});

describe('4,096 calls in a process', () => {
  test('§12 one more is 503 with Retry-After, once they have run for over a second', () => {
    const clock = manualClock();
    const config = loadConfig({ AUTH_REQUIRED: 'false', STREAM_AFTER_MS: '0' });
    const countCall = createCountCall({ config, clock });
    let released = 0;
    const begin = () =>
      countCall({
        user: undefined,
        holdBody: () => () => released++,
        abort() {},
        stream: { begin() {} },
      });
    const all = Array.from({ length: 4096 }, begin);
    clock.advance(1000);
    all.push(begin());
    clock.advance(1);
    expect(begin).toThrow(
      expect.objectContaining({
        key: 'overloaded',
        failure: expect.objectContaining({ headers: { 'Retry-After': '1' } }),
      }),
    );
    for (const end of all) end();
    expect(released).toBe(4097);
    begin();
  });
});
