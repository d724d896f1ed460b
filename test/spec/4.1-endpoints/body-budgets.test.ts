// §12: bodies that arrive slowly, or never end, keep nobody else out.
import { EventEmitter, once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import {
  flushLoopback,
  type ManualConnection,
  openConnection,
  type PostHead,
  postHead,
} from '../../support/gateway/manual-connection.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

const REGISTER = '/oauth/register';
const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;

const waiting = new EventEmitter().setMaxListeners(0);
let entered = 0;
const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'waits',
      description: 'Goes on until the test says so, whoever has left.',
      inputSchema: { type: 'object' },
      async run() {
        entered++;
        await once(waiting, 'go');
        return { content: [] };
      },
    }),
  ],
});

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const clock = manualClock();
const gateway = useGateway({
  env: { DCR_RATE_LIMIT_MAX: '100000', DCR_GLOBAL_RATE_LIMIT_MAX: '100000' },
  deps: { clock, catalog },
});
let port: number;
const opened: ManualConnection[] = [];

beforeAll(async () => {
  port = await gateway.listen();
});
beforeEach(() => {
  entered = 0;
});
afterEach(async () => {
  waiting.emit('go');
  for (const { socket } of opened.splice(0)) socket.destroy();
  await flushLoopback();
});

async function begin(body: PostHead, sent: string | Buffer = ''): Promise<ManualConnection> {
  const slow = await openConnection(port, postHead(body));
  opened.push(slow);
  if (sent.length > 0) slow.send(sent);
  return slow;
}

/** Bodies of which a byte is missing. */
async function beginMany(count: number, body: PostHead): Promise<readonly ManualConnection[]> {
  const all = [];
  for (let at = 0; at < count; at++) {
    all.push(await begin(body, Buffer.alloc(body.length - 1, 'x')));
    await flushLoopback();
  }
  return all;
}

/** What is left after everything that nobody needs was collected. */
async function memoryInUse(): Promise<number> {
  for (let time = 0; time < 4; time++) {
    await flushLoopback();
    collectGarbage();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const statusOf = ({ received }: ManualConnection) =>
  Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1]);
const jsonOf = ({ received }: ManualConnection) =>
  JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4));

const METADATA = JSON.stringify({ redirect_uris: ['https://client.example/cb'] });
const PING = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });

/** A body that comes in two parts, with all others between. */
async function inTwoParts(body: Omit<PostHead, 'length'>, text: string): Promise<ManualConnection> {
  const slow = await begin({ ...body, length: text.length }, text.slice(0, 10));
  await flushLoopback();
  slow.send(text.slice(10));
  await expect.poll(() => slow.received).not.toBe('');
  return slow;
}

describe('8 MiB of bodies without a valid token', () => {
  const STALLED = { path: REGISTER, length: 64 * KIBIBYTE };

  test('§12 stalled ones make room for a new one, and are told why', async () => {
    const stalled = await beginMany(150, STALLED);
    const dropped = stalled.filter(({ received }) => received !== '');
    // 150 bodies of 65,535 bytes are 21 too many.
    expect(dropped).toHaveLength(150 - Math.floor((8 * MEBIBYTE) / (64 * KIBIBYTE - 1)));
    // Those that have waited longest.
    expect(stalled.findIndex(({ received }) => received === '')).toBe(dropped.length);
    for (const one of dropped) {
      expect(statusOf(one)).toBe(503);
      expect(one.received).toMatch(/^Retry-After: 1\r$/m);
      expect(one.received).toMatch(/^Connection: close\r$/m);
      expect(jsonOf(one)).toMatchObject({ error: 'server_error' });
      await one.closed;
    }
    for (let time = 0; time < 5; time++) {
      expect(statusOf(await inTwoParts({ path: REGISTER }, METADATA))).toBe(201);
    }
  });

  test('§12 they do not count against callers with a token', async () => {
    const stalled = await beginMany(128, STALLED);
    const session = await gateway.open();
    const token = await gateway.issuer.sign();
    const slow = await inTwoParts({ path: '/mcp', token, session }, PING);
    expect(statusOf(slow)).toBe(200);
    expect(stalled.filter(({ received }) => received !== '')).toEqual([]);
  });

  test('§12 of two the slower one goes, not the older one', async () => {
    const fast = await begin({ path: REGISTER, length: 60_000 }, 'x'.repeat(1000));
    const stalled = await begin({ path: REGISTER, length: 60_000 }, 'x'.repeat(50_000));
    await flushLoopback();
    clock.advance(1000);
    fast.send('x'.repeat(2000));
    await flushLoopback();
    stalled.send('x');
    await flushLoopback();
    clock.advance(1000);
    const others = await beginMany(139, { path: REGISTER, length: 60_000 });
    // These, with 50,000 and 3,000 bytes, are 4,253 bytes too many.
    expect(statusOf(stalled)).toBe(503);
    expect([fast, ...others].filter(({ received }) => received !== '')).toEqual([]);
  });

  test('§12 a body in pieces of one byte takes no more room than another', async () => {
    const token = await gateway.issuer.sign();
    const head = postHead({ path: '/mcp', token, length: 0 }).replace(
      'Content-Length: 0',
      'Transfer-Encoding: chunked',
    );
    const slow = await openConnection(port, head);
    opened.push(slow);
    const before = await memoryInUse();
    for (let time = 0; time < 40; time++) {
      slow.send('1\r\nx\r\n'.repeat(5000));
      await flushLoopback(5);
    }
    // Two bytes each, and room for everything else: a buffer each were 30 MB.
    expect((await memoryInUse()) - before).toBeLessThan(5 * MEBIBYTE);
    expect(slow.received).toBe('');
  });
});

describe('8 MiB of bodies per user', () => {
  const LARGE = { path: '/mcp', length: MEBIBYTE };

  test('§12 a user whose bodies stall can go on, and so can everybody else', async () => {
    const token = await gateway.issuer.sign({ sub: 'stalls' });
    const stalled = await beginMany(20, { ...LARGE, token });
    const dropped = stalled.filter(({ received }) => received !== '');
    expect(dropped).toHaveLength(12);
    for (const one of dropped) expect(statusOf(one)).toBe(503);
    const session = await gateway.open({ token });
    expect(statusOf(await inTwoParts({ path: '/mcp', token, session }, PING))).toBe(200);
    const other = await gateway.issuer.sign({ sub: 'other' });
    const own = { path: '/mcp', token: other, session: await gateway.open({ token: other }) };
    expect(statusOf(await inTwoParts(own, PING))).toBe(200);
  });

  test('§12 many users together have 64 MiB: the slowest makes room, whose ever it is', async () => {
    const all: ManualConnection[] = [];
    for (let user = 0; user < 9; user++) {
      const token = await gateway.issuer.sign({ sub: `user ${user}` });
      all.push(...(await beginMany(8, { ...LARGE, token })));
    }
    expect(all.filter(({ received }) => received !== '')).toHaveLength(8);
    const token = await gateway.issuer.sign({ sub: 'a tenth' });
    const session = await gateway.open({ token });
    expect(statusOf(await inTwoParts({ path: '/mcp', token, session }, PING))).toBe(200);
  });

  const CALL = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'waits', unused: '' },
  }).replace('""', `"${'x'.repeat(MEBIBYTE - 200)}"`);

  test('§12 the bodies of calls count until the calls end', async () => {
    const token = await gateway.issuer.sign({ sub: 'calls' });
    const session = await gateway.open({ token });
    const calls = [];
    for (let at = 0; at < 8; at++) {
      calls.push(await begin({ path: '/mcp', token, session, length: CALL.length }, CALL));
    }
    await expect.poll(() => entered).toBe(8);

    const refused = await begin({ path: '/mcp', token, session, length: CALL.length }, CALL);
    await refused.closed;
    expect(statusOf(refused)).toBe(503);
    expect(refused.received).toMatch(/^Retry-After: 1\r$/m);
    expect(jsonOf(refused)).toMatchObject({ error: { code: -32000 } });
    // One that comes at once has no more room than one that comes in pieces.
    const small = PING.replace('}', `${' '.repeat(2000)}}`);
    const atOnce = await begin({ path: '/mcp', token, session, length: small.length }, small);
    await atOnce.closed;
    expect(statusOf(atOnce)).toBe(503);
    // What has room is taken, and others are not concerned.
    expect((await gateway.rpc(JSON.parse(PING), { token, session })).status).toBe(200);
    const other = await gateway.issuer.sign({ sub: 'another' });
    const own = { path: '/mcp', token: other, session: await gateway.open({ token: other }) };
    const theirs = await begin({ ...own, length: CALL.length }, CALL);
    await expect.poll(() => entered).toBe(9);

    // A caller who leaves ends no call by that.
    for (const { socket } of calls) socket.destroy();
    await flushLoopback();
    const again = await begin({ path: '/mcp', token, session, length: CALL.length }, CALL);
    await again.closed;
    expect(statusOf(again)).toBe(503);

    waiting.emit('go');
    await expect.poll(() => theirs.received).toMatch(/^HTTP\/1\.1 200/);
    const after = await begin({ path: '/mcp', token, session, length: CALL.length }, CALL);
    await expect.poll(() => entered).toBe(10);
    expect(after.received).toBe('');
  });
});

describe('what a waiting call keeps of its body', () => {
  const junk = 'x'.repeat(1_000_000);
  const sessionCall = (params: object) => ({
    headers: {},
    message: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'waits', ...params } },
  });
  const statelessCall = (params: object) =>
    statelessRequest('tools/call', { name: 'waits', ...params }, { meta: { junk } });

  test.each([
    ['what no method looks at', 'session', sessionCall({ junk })],
    ['_meta', 'session', sessionCall({ _meta: { junk } })],
    ['arguments that its tool does not look at', 'session', sessionCall({ arguments: { junk } })],
    ['_meta', 'stateless', statelessCall({})],
    [
      'arguments that its tool does not look at',
      'stateless',
      statelessRequest('tools/call', { name: 'waits', arguments: { junk } }),
    ],
  ])('§4.4 nothing of %s (%s)', async (_what, era, { headers, message }) => {
    const body = Buffer.from(JSON.stringify(message));
    const users = await Promise.all(
      Array.from({ length: 20 }, async (_, at) => {
        const token = await gateway.issuer.sign({ sub: `${era} ${at}` });
        const session = era === 'session' ? await gateway.open({ token }) : undefined;
        return { token, ...(session !== undefined && { session }) };
      }),
    );
    const before = await memoryInUse();
    for (const user of users) {
      await begin({ path: '/mcp', ...user, headers, length: body.length }, body);
    }
    await expect.poll(() => entered).toBe(20);
    // Twenty bodies of a megabyte.
    expect((await memoryInUse()) - before).toBeLessThan(5 * MEBIBYTE);
    expect(opened.filter(({ received }) => received !== '')).toEqual([]);
  });

  test.each([
    ['session', sessionCall({ arguments: { junk } })],
    ['stateless', statelessCall({})],
  ])('§4.4 nothing once its answer is a stream (%s)', async (era, { headers, message }) => {
    const body = Buffer.from(JSON.stringify(message));
    const accept = 'application/json, text/event-stream';
    const users = await Promise.all(
      Array.from({ length: 20 }, async (_, at) => {
        const token = await gateway.issuer.sign({ sub: `${era} stream ${at}` });
        const session = era === 'session' ? await gateway.open({ token }) : undefined;
        return { token, ...(session !== undefined && { session }) };
      }),
    );
    const before = await memoryInUse();
    for (const user of users) {
      const sent = { path: '/mcp', ...user, headers: { ...headers, accept }, length: body.length };
      await begin(sent, body);
    }
    await expect.poll(() => entered).toBe(20);
    clock.advance(10_250);
    await expect
      .poll(() => opened.filter(({ received }) => received.includes('text/event-stream')).length)
      .toBe(20);
    expect((await memoryInUse()) - before).toBeLessThan(5 * MEBIBYTE);
  });
});

describe('1 KiB per second after the first 5 s', () => {
  test.each([
    ['/mcp', { error: { code: -32000, message: 'Request Timeout' } }],
    [REGISTER, { error: 'invalid_client_metadata' }],
  ])('§12 what stalls at %s is 408 then, and its connection is closed', async (path, error) => {
    const token = await gateway.issuer.sign();
    const slow = await begin({ path, token, length: 2000 }, '{"json');
    await flushLoopback();
    clock.advance(5000);
    await flushLoopback();
    expect(slow.received).toBe('');
    clock.advance(2000);
    await slow.closed;
    expect(statusOf(slow)).toBe(408);
    expect(slow.received).toMatch(/^Connection: close\r$/m);
    expect(jsonOf(slow)).toMatchObject(error);
  });

  test('§12 what brings 1 KiB a second goes on, and what brings less does not', async () => {
    const token = await gateway.issuer.sign();
    const enough = await begin({ path: '/mcp', token, length: 60_000 }, '{');
    const tooLittle = await begin({ path: '/mcp', token, length: 60_000 }, '{');
    await flushLoopback();
    clock.advance(5000);
    for (let second = 0; second < 20; second++) {
      enough.send('x'.repeat(1024));
      tooLittle.send('x'.repeat(800));
      await flushLoopback();
      clock.advance(1000);
    }
    await tooLittle.closed;
    expect(statusOf(tooLittle)).toBe(408);
    expect(enough.received).toBe('');
  });
});

test('§12 bytes count while a call waits for the store, also when its caller has left', async () => {
  const admissions = new EventEmitter().setMaxListeners(0);
  let isHoldingUp = false;
  let heldUp = 0;
  const wrapped = await wrapStore((store) => ({
    async admitRequest(...args) {
      if (isHoldingUp && heldUp < 8) {
        heldUp += 1;
        await once(admissions, 'go on');
      }
      return store.admitRequest(...args);
    },
  }));
  const slow = await startGateway({ deps: { catalog, store: wrapped.store } });
  try {
    const token = await slow.issuer.sign();
    const ownPort = await slow.listen();
    // With the provider's keys at hand a call asks the store once, when its body is there.
    await slow.open({ token });
    isHoldingUp = true;
    const { message, headers } = statelessRequest('tools/call', {
      name: 'waits',
      arguments: { text: 'x'.repeat(1_040_000) },
    });
    const body = JSON.stringify(message);
    const head = postHead({ path: '/mcp', token, headers, length: body.length });
    const send = async () => {
      const one = await openConnection(ownPort, head + body);
      opened.push(one);
      return one;
    };
    const gone = [];
    for (let at = 0; at < 8; at += 1) gone.push(await send());
    await expect.poll(() => heldUp).toBe(8);
    for (const { socket } of gone) socket.resetAndDestroy();
    const next = await send();
    await expect.poll(() => next.received).toMatch(/^HTTP\/1\.1 503 [\s\S]*Your running calls/);
    admissions.emit('go on');
    // And still while the calls run, whoever has left.
    await expect.poll(() => entered).toBe(8);
    const another = await send();
    await expect.poll(() => another.received).toMatch(/^HTTP\/1\.1 503 /);
    expect((await slow.request({ path: '/health' })).status).toBe(200);
    waiting.emit('go');
    await flushLoopback();
    await send();
    await expect.poll(() => entered).toBe(9);
    waiting.emit('go');
  } finally {
    await slow.close();
    await wrapped.remove();
  }
});
