// §18.3: connections to a server, and whose answer is whose. One request's failure, answer or slowness is no other one's.
import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test } from 'vitest';
import { InvalidResponse } from '../../../../src/platform/http-client/read-response.ts';
import { openServerPool } from '../../../../src/platform/outbound/outbound-network.ts';
import { type ManualClock, manualClock } from '../../../support/gateway/clock.ts';
import { closeAfterTest } from '../../../support/lifetimes.ts';
import { startProxy } from '../../../support/oauth/proxy.ts';
import { issueCertificate } from '../../../support/upstreams/certificates.ts';
import { startRawConnections } from '../../../support/upstreams/raw-connections.ts';
import { sendOver, type Told } from '../../../support/upstreams/sent-requests.ts';

const NO_PROXY = { httpProxy: undefined, httpsProxy: undefined, noProxy: [] };
const answer = (text: string, headers = '') =>
  `HTTP/1.1 200 OK\r\n${headers}Content-Length: ${text.length}\r\n\r\n${text}`;

function openPool(url: URL, given: Partial<Parameters<typeof openServerPool>[1]> = {}) {
  return closeAfterTest(
    openServerPool(url, {
      ca: undefined,
      connectTimeoutMs: 900,
      outbound: NO_PROXY,
      clock: manualClock(),
      ...given,
    }),
  );
}

async function openRaw(clock: ManualClock = manualClock()) {
  const server = closeAfterTest(await startRawConnections());
  return { server, clock, pool: openPool(server.url, { clock }) };
}

/** One request that was answered: its connection is idle. */
async function openIdle(headers = '') {
  const opened = await openRaw();
  const first = sendOver(opened.pool);
  const connection = await opened.server.connection(0);
  connection.write(answer('first', headers));
  expect(await first.ended()).toBe('first');
  return { ...opened, connection };
}

test('§18.3 a connection is used again, by one request at a time', async () => {
  const { server, pool, connection } = await openIdle();
  const second = sendOver(pool, { body: '{"second":true}' });
  const third = sendOver(pool, { body: '{"third":true}' });
  await connection.requests(2);
  const other = await server.connection(1);
  expect(connection.received()).toContain('{"second":true}');
  expect(other.received()).toContain('{"third":true}');
  other.write(answer('three'));
  connection.write(answer('two'));
  expect([await second.ended(), await third.ended()]).toEqual(['two', 'three']);
  expect(server.connections).toHaveLength(2);
});

test.each([
  ['a server that says nothing', '', 1400, 1600],
  ['a server that closes after 10 s', 'Keep-Alive: timeout=10, max=100\r\n', 7900, 8100],
  ['a server that closes after a day', 'Keep-Alive: timeout=86400\r\n', 599_000, 601_000],
])(
  '§18.3 the connection to %s is used as long as it surely stays',
  async (_what, headers, used, closed) => {
    const again = await openIdle(headers);
    again.clock.sleep(used);
    const second = sendOver(again.pool);
    await again.connection.requests(2);
    again.connection.write(answer('second'));
    expect(await second.ended()).toBe('second');

    const gone = await openIdle(headers);
    gone.clock.sleep(closed);
    const other = sendOver(gone.pool);
    (await gone.server.connection(1)).write(answer('other'));
    expect(await other.ended()).toBe('other');
    await expect.poll(gone.connection.isClosed).toBe(true);
  },
);

test('§18.3 a server that closes at once has no connection used twice', async () => {
  const { server, pool, connection } = await openIdle('Keep-Alive: timeout=2\r\n');
  const second = sendOver(pool);
  (await server.connection(1)).write(answer('second'));
  expect(await second.ended()).toBe('second');
  await expect.poll(connection.isClosed).toBe(true);
});

test('§18.3 a connection that nobody uses is closed', async () => {
  const { clock, connection } = await openIdle();
  clock.advance(5100);
  await expect.poll(connection.isClosed).toBe(true);
});

test('§18.3 a connection that its server closed is not used', async () => {
  const { server, pool, connection } = await openIdle();
  connection.socket.end();
  await expect.poll(connection.isClosed).toBe(true);
  const second = sendOver(pool);
  (await server.connection(1)).write(answer('second'));
  expect(await second.ended()).toBe('second');
});

test.each([
  ['with the answer before', (text: string) => answer('first') + text, ''],
  ['while nobody asks', () => answer('first'), answer('for somebody else')],
])(
  '§18.3 an answer that comes %s is no answer to the next request',
  async (_when, write, later) => {
    const { server, pool } = await openRaw();
    const mine = sendOver(pool);
    const poisoned = await server.connection(0);
    poisoned.write(write(answer('for somebody else')));
    expect(await mine.ended()).toBe('first');
    if (later !== '') poisoned.write(later);
    await expect.poll(poisoned.isClosed).toBe(true);
    const others = sendOver(pool);
    (await server.connection(1)).write(answer('the right one'));
    expect(await others.ended()).toBe('the right one');
  },
);

test('§18.3 a connection whose answer came before all of the request was sent is not used again', async () => {
  const { server, pool } = await openRaw();
  // With the first bytes: a moment later it might have read all of them.
  server.server.once('connection', (socket) => socket.once('data', () => socket.pause()));
  const long = sendOver(pool, { body: 'x'.repeat(20_000_000) });
  const slow = await server.connection(0);
  slow.write(answer('too long'));
  expect(await long.ended()).toBe('too long');
  const next = sendOver(pool);
  (await server.connection(1)).write(answer('next'));
  expect(await next.ended()).toBe('next');
});

test.each([
  ['closes the connection', (socket: { end(): unknown }) => socket.end(), 'ConnectionClosed'],
  [
    'breaks the connection',
    (socket: { resetAndDestroy(): unknown }) => socket.resetAndDestroy(),
    'Error',
  ],
])('§18.3 a server that %s fails the request on it, and no other', async (_what, fail, name) => {
  const { server, pool } = await openRaw();
  const [mine, others] = [sendOver(pool), sendOver(pool)];
  const [first, second] = [await server.connection(0), await server.connection(1)];
  fail(first.socket);
  expect(await mine.failed()).toMatchObject({ name, code: 'ECONNRESET' });
  second.write(answer('mine alone'));
  expect(await others.ended()).toBe('mine alone');
});

test('§18.3 an answer that breaks off fails its request after what came of it', async () => {
  const { server, pool } = await openRaw();
  const mine = sendOver(pool);
  const connection = await server.connection(0);
  connection.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf');
  await expect.poll(mine.text).toBe('half');
  connection.socket.end();
  expect(await mine.failed()).toMatchObject({ code: 'ECONNRESET' });
  expect(mine.text()).toBe('half');
});

test('§18.3 what is no HTTP fails its request, and closes the connection', async () => {
  const { server, pool } = await openRaw();
  const mine = sendOver(pool);
  const connection = await server.connection(0);
  connection.write('220 mail.example ESMTP\r\n\r\n');
  expect(await mine.failed()).toBeInstanceOf(InvalidResponse);
  await expect.poll(connection.isClosed).toBe(true);
});

test('§18.3 a handler that fails ends its own request', async () => {
  const { server, pool } = await openRaw();
  const others = sendOver(pool);
  const second = await server.connection(0);
  const mine = sendOver(pool, {}, () => {
    throw new Error('a mistake');
  });
  (await server.connection(1)).write(answer('mine'));
  expect((await mine.failed()).message).toBe('a mistake');
  second.write(answer('theirs'));
  expect(await others.ended()).toBe('theirs');
});

test('§18.3 a handler that fails at the end of its answer does not end the request after it', async () => {
  const { server, pool } = await openRaw();
  const mine = sendOver(pool);
  let others: Told | undefined;
  mine.onEnd = () => {
    others = sendOver(pool);
    throw new Error('a mistake');
  };
  const connection = await server.connection(0);
  connection.write(answer('mine'));
  expect((await mine.failed()).message).toBe('a mistake');
  await connection.requests(2);
  connection.write(answer('theirs'));
  expect(await others?.ended()).toBe('theirs');
});

test('§18.3 who no longer waits is told nothing, and ends nobody else’s request', async () => {
  const { server, pool, connection } = await openIdle();
  const mine = sendOver(pool);
  await connection.requests(2);
  const others = sendOver(pool);
  const second = await server.connection(1);
  mine.sent.abort(mine);
  await expect.poll(connection.isClosed).toBe(true);
  second.write(answer('theirs'));
  expect(await others.ended()).toBe('theirs');
  // The connection may be another request's by now.
  const next = sendOver(pool);
  others.sent.abort(others);
  others.sent.pause(others);
  await second.requests(2);
  second.write(answer('next'));
  expect(await next.ended()).toBe('next');
  expect([mine.status(), mine.error()]).toEqual([undefined, undefined]);
});

test('§18.3 a request that is given up while it connects takes its connection with it', async () => {
  const { server, pool } = await openRaw();
  const mine = sendOver(pool);
  mine.sent.abort(mine);
  const others = sendOver(pool, { body: '{"others":true}' });
  await expect
    .poll(() => server.connections.some((one) => one.received().includes('others')))
    .toBe(true);
  expect(
    server.connections.every((one) => one.isClosed() || one.received().includes('others')),
  ).toBe(true);
  server.connections.find((one) => one.received().includes('others'))?.write(answer('theirs'));
  expect(await others.ended()).toBe('theirs');
  expect(mine.error()).toBeUndefined();
});

test('§18.3 a stream that is paused is not read, and the next request on its connection is', async () => {
  const { server, pool } = await openRaw();
  const mine = sendOver(pool);
  const connection = await server.connection(0);
  const all = 32_000_000;
  connection.write(`HTTP/1.1 200 OK\r\nContent-Length: ${all}\r\n\r\n${'x'.repeat(1000)}`);
  await expect.poll(() => mine.text().length).toBe(1000);
  mine.sent.pause(mine);
  connection.write('x'.repeat(all - 1000));
  // More than the buffers of two sockets hold.
  await expect.poll(() => connection.socket.bytesWritten).toBeGreaterThan(1000);
  expect(connection.socket.writableLength).toBeGreaterThan(0);
  expect(mine.text().length).toBe(1000);
  mine.sent.resume(mine);
  expect((await mine.ended()).length).toBe(all);
  const next = sendOver(pool);
  await connection.requests(2);
  connection.write(answer('next'));
  expect(await next.ended()).toBe('next');
});

test.each([
  ['a line end in a value', ['x-a', 'a\r\nx-b: b']],
  ['a line feed in a value', ['x-a', 'a\nb']],
  ['a zero byte in a value', ['x-a', 'a\0b']],
  ['letters that no header can have', ['x-a', 'łódź']],
  ['a line end in a name', ['x-a: a\r\nx-b', 'b']],
  ['a space in a name', ['x a', 'b']],
  ['an empty name', ['', 'b']],
  ['a length', ['Content-Length', '3']],
  ['a coding', ['Transfer-Encoding', 'chunked']],
  ['a host', ['host', 'other.example']],
  ['a connection', ['connection', 'close']],
  ['what is for a proxy', ['Proxy-Authorization', 'Basic bWU6bXk=']],
])('§18.3 a request with %s among its headers is not sent', async (_what, headers) => {
  const { server, pool, connection } = await openIdle();
  expect(() => sendOver(pool, { headers: [[], headers] })).toThrow(
    'a header of the request cannot be sent',
  );
  const next = sendOver(pool);
  await connection.requests(2);
  connection.write(answer('next'));
  expect(await next.ended()).toBe('next');
  expect(server.connections).toHaveLength(1);
  expect(connection.received().match(/POST/g)).toHaveLength(2);
});

test('§18.3 headers in Latin letters and bodies in any are sent as they are', async () => {
  const { server, pool } = await openRaw();
  sendOver(pool, { headers: [['x-name', 'Zoë']], body: '{"name":"łódź 🦭"}' });
  const connection = await server.connection(0);
  const body = Buffer.from('{"name":"łódź 🦭"}');
  await expect.poll(connection.received).toMatch(/\}$/);
  expect(connection.received()).toBe(
    `POST /mcp HTTP/1.1\r\nhost: ${server.url.host}\r\nconnection: keep-alive\r\nx-name: Zo\xeb\r\ncontent-length: ${body.length}\r\n\r\n${body.toString('latin1')}`,
  );
});

test('§18.3 a request without a body says nothing of one', async () => {
  const { server, pool } = await openRaw();
  sendOver(pool, { method: 'DELETE', path: '/mcp?a=b', body: null });
  const connection = await server.connection(0);
  expect(connection.received()).toBe(
    `DELETE /mcp?a=b HTTP/1.1\r\nhost: ${server.url.host}\r\nconnection: keep-alive\r\n\r\n`,
  );
});

test('§18.3 what is read on a connection is no part of the request that opened it', async () => {
  const trace = new AsyncLocalStorage<string>();
  const { pool, server } = await openRaw();
  const seen: unknown[] = [];
  const first = trace.run('mine', () => sendOver(pool, {}, () => seen.push(trace.getStore())));
  const connection = await server.connection(0);
  connection.write(answer('first'));
  await first.ended();
  const second = trace.run('theirs', () => sendOver(pool, {}, () => seen.push(trace.getStore())));
  await connection.requests(2);
  connection.write(answer('second'));
  await second.ended();
  expect(seen).toEqual([undefined, undefined]);
});

test('§18.3 once the pool is closed requests fail, those under way and later ones', async () => {
  const { server, pool } = await openRaw();
  const mine = sendOver(pool);
  const connection = await server.connection(0);
  pool.close();
  expect(await mine.failed()).toMatchObject({ name: 'PoolClosed' });
  expect(() => sendOver(pool)).toThrow(expect.objectContaining({ name: 'PoolClosed' }));
  await expect.poll(connection.isClosed).toBe(true);
});

test('§18.3 a name with several addresses is reached at the one where the server is', async () => {
  const server = closeAfterTest(await startRawConnections());
  const pool = openPool(new URL(`http://localhost:${server.port}/mcp`));
  const mine = sendOver(pool);
  (await server.connection(0)).write(answer('here'));
  expect(await mine.ended()).toBe('here');
});

test('§18.3 a connection that is not made in time fails its request', async () => {
  const clock = manualClock();
  const server = closeAfterTest(await startRawConnections());
  // It speaks no TLS: nothing comes back.
  const pool = openPool(new URL(`https://127.0.0.1:${server.port}/mcp`), { clock });
  const mine = sendOver(pool);
  await expect.poll(() => server.connections.length).toBe(1);
  clock.advance(900);
  expect(await mine.failed()).toMatchObject({ name: 'ConnectTimeout', code: 'ETIMEDOUT' });
  await expect.poll(() => server.connections[0]?.isClosed()).toBe(true);
});

test('§18.3 TLS goes on from that of an earlier connection, and answers come by it as without', async () => {
  const own = await issueCertificate('127.0.0.1');
  const server = closeAfterTest(await startRawConnections(own));
  const pool = openPool(server.url, { ca: own.cert });
  const resumed: boolean[] = [];
  server.server.on('secureConnection', (socket) => resumed.push(socket.isSessionReused()));
  const first = sendOver(pool);
  const connection = await server.connection(0);
  connection.write(answer('x'.repeat(300_000)));
  expect(await first.ended()).toBe('x'.repeat(300_000));
  connection.socket.destroy();
  await expect.poll(connection.isClosed).toBe(true);
  const second = sendOver(pool);
  (await server.connection(1)).write(answer('second'));
  expect(await second.ended()).toBe('second');
  expect(resumed).toEqual([false, true]);
});

test('§18.3 TLS begins anew after a connection that could not be made', async () => {
  const own = await issueCertificate('127.0.0.1');
  const server = closeAfterTest(await startRawConnections(own));
  const pool = openPool(server.url, { ca: own.cert });
  const resumed: boolean[] = [];
  server.server.on('secureConnection', (socket) => resumed.push(socket.isSessionReused()));
  const first = sendOver(pool);
  const connection = await server.connection(0);
  connection.write(answer('first'));
  await first.ended();
  connection.socket.destroy();
  await expect.poll(connection.isClosed).toBe(true);
  server.server.once('connection', (socket) => socket.destroy());
  await sendOver(pool).failed();
  const third = sendOver(pool);
  (await server.connection(1)).write(answer('third'));
  expect(await third.ended()).toBe('third');
  expect(resumed).toEqual([false, false]);
});

test('§18.3 a certificate of somebody else, or for somebody else, is refused', async () => {
  const [own, other] = [
    await issueCertificate('127.0.0.1'),
    await issueCertificate('other.example'),
  ];
  const stranger = closeAfterTest(await startRawConnections(own));
  expect(await sendOver(openPool(stranger.url)).failed()).toMatchObject({
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  });
  const wrong = closeAfterTest(await startRawConnections(other));
  expect(await sendOver(openPool(wrong.url, { ca: other.cert })).failed()).toMatchObject({
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  });
  expect(
    [...stranger.connections, ...wrong.connections].map((one) => one.received()).join(''),
  ).toBe('');
});

test('§14 a server with TLS is reached through the tunnel of a proxy, which sees none of it', async () => {
  const own = await issueCertificate('mcp.example');
  const server = closeAfterTest(await startRawConnections(own));
  const proxy = closeAfterTest(await startProxy(['me', 'my:word']));
  proxy.lead('mcp.example:443', server.port);
  const outbound = { httpProxy: undefined, httpsProxy: proxy.url, noProxy: [] };
  const pool = openPool(new URL('https://mcp.example/mcp'), { ca: own.cert, outbound });
  const first = sendOver(pool);
  const connection = await server.connection(0);
  connection.write(answer('first'));
  expect(await first.ended()).toBe('first');
  const second = sendOver(pool);
  await connection.requests(2);
  connection.write(answer('second'));
  expect(await second.ended()).toBe('second');
  expect(proxy.asked).toEqual(['CONNECT mcp.example:443']);
  expect(connection.received()).toContain('host: mcp.example\r\n');
  expect(connection.received()).not.toContain('proxy-authorization');
});

test('§14 a server without TLS is asked for by its whole URL, with the credentials for the proxy', async () => {
  const proxy = closeAfterTest(await startRawConnections());
  const outbound = {
    httpProxy: `http://me:my%3Aword@127.0.0.1:${proxy.port}`,
    httpsProxy: undefined,
    noProxy: [],
  };
  const mine = sendOver(openPool(new URL('http://mcp.example:8080/mcp'), { outbound }));
  const connection = await proxy.connection(0);
  expect(connection.received()).toContain(
    'POST http://mcp.example:8080/mcp HTTP/1.1\r\nhost: mcp.example:8080\r\n',
  );
  expect(connection.received()).toContain(
    `proxy-authorization: Basic ${Buffer.from('me:my:word').toString('base64')}\r\n`,
  );
  connection.write(answer('through the proxy'));
  expect(await mine.ended()).toBe('through the proxy');
});

test('§14 a proxy that opens no tunnel fails the request', async () => {
  const proxy = closeAfterTest(await startProxy());
  const outbound = { httpProxy: undefined, httpsProxy: proxy.url, noProxy: [] };
  const mine = sendOver(openPool(new URL('https://mcp.example/mcp'), { outbound }));
  expect((await mine.failed()).message).toBe('the proxy answered 502 to CONNECT mcp.example:443');
});
