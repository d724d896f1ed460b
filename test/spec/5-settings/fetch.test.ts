// §14: how the gateway asks the provider, and whatever else the settings name, against a server of bytes.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createOutbound } from '../../../src/connections/servers/outbound.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import {
  type Fetch,
  FetchError,
  type FetchResponse,
  fetchWithLimits,
} from '../../../src/platform/fetch-with-limits.ts';
import { toProxyError } from '../../../src/platform/http-client/connect.ts';
import { openOutboundNetwork } from '../../../src/platform/outbound/outbound-network.ts';
import { toConnectionError } from '../../../src/servers/http/failures.ts';
import { freePort } from '../../support/gateway/ports.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { issueCertificate } from '../../support/upstreams/certificates.ts';
import {
  type RawConnection,
  startRawConnections,
} from '../../support/upstreams/raw-connections.ts';

const NO_PROXY = { httpProxy: undefined, httpsProxy: undefined, noProxy: [] };
const LIMITS = { timeoutMs: 60_000, maxBytes: 1000 };

async function open({ keepsConnections = true, isProxy = false } = {}) {
  const server = closeAfterTest(await startRawConnections());
  const outbound = isProxy ? { ...NO_PROXY, httpsProxy: server.url.origin } : NO_PROXY;
  const { fetch, close } = closeAfterTest(openOutboundNetwork({ outbound, keepsConnections }));
  return { server, fetch, close, url: server.url.href };
}

const answer = (body: string | Buffer, headers = '', status = '200 OK') =>
  Buffer.concat([
    Buffer.from(
      `HTTP/1.1 ${status}\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`,
    ),
    Buffer.from(body),
  ]);

/** The connection with that number, once its request is answered. */
async function answerOn(
  { server }: Awaited<ReturnType<typeof open>>,
  at: number,
  bytes: string | Buffer,
): Promise<RawConnection> {
  const connection = await server.connection(at);
  connection.socket.write(bytes);
  return connection;
}

async function readText({ body }: FetchResponse): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of body ?? []) parts.push(part);
  return Buffer.concat(parts).toString();
}

describe('connections', () => {
  test('§14 the next request goes over the same one, until the gateway stops', async () => {
    const opened = await open();
    const first = opened.fetch(opened.url, {});
    const connection = await answerOn(opened, 0, answer('one'));
    expect(await readText(await first)).toBe('one');
    const second = opened.fetch(opened.url, {});
    await connection.requests(2);
    connection.socket.write(answer('two'));
    expect(await readText(await second)).toBe('two');
    opened.close();
    await expect.poll(connection.isClosed).toBe(true);
    await expect(opened.fetch(opened.url, {})).rejects.toMatchObject({ name: 'PoolClosed' });
    expect(opened.server.connections).toHaveLength(1);
  });

  test('§14 a request that has no answer holds no other one up', async () => {
    const opened = await open();
    const silent = opened.fetch(`${opened.url}?user=a`, {}).catch(String);
    await opened.server.connection(0);
    const other = opened.fetch(`${opened.url}?user=b`, {});
    await answerOn(opened, 1, answer('for b'));
    expect(await readText(await other)).toBe('for b');
    opened.close();
    expect(await silent).toContain('PoolClosed');
  });

  test('§14 doctor has a new one for each request: behind one address may be several gateways', async () => {
    const opened = await open({ keepsConnections: false });
    for (const at of [0, 1]) {
      const asked = opened.fetch(opened.url, {});
      const connection = await answerOn(opened, at, answer('yes'));
      expect(await readText(await asked)).toBe('yes');
      expect(connection.received()).toMatch(/^connection: close\r$/m);
      await expect.poll(connection.isClosed).toBe(true);
    }
  });
});

test('§14 a request says who asks, wants no compression, and what is given goes before that', async () => {
  const opened = await open();
  const asked = opened.fetch(`${opened.url}/token?a=1`, {
    method: 'POST',
    headers: { accept: 'application/json\n', 'Content-Type': 'text/plain' },
    body: 'ä',
  });
  const connection = await answerOn(opened, 0, answer(''));
  expect((await asked).status).toBe(200);
  const [head = '', body] = connection.received().split('\r\n\r\n');
  const [line, ...headers] = head.split('\r\n');
  expect(line).toBe('POST /mcp/token?a=1 HTTP/1.1');
  expect(headers.map((header) => header.toLowerCase()).sort()).toEqual([
    'accept-encoding: identity',
    'accept: application/json',
    'connection: keep-alive',
    'content-length: 2',
    'content-type: text/plain',
    `host: ${opened.server.url.host}`,
    'user-agent: postern',
  ]);
  expect(Buffer.from(body ?? '', 'latin1').toString()).toBe('ä');
});

test('§14 a POST without a body says so', async () => {
  const opened = await open();
  const asked = opened.fetch(opened.url, { method: 'POST' });
  const connection = await answerOn(opened, 0, answer(''));
  expect((await asked).status).toBe(200);
  expect(connection.received()).toMatch(/\r\ncontent-length: 0\r\n/);
});

test('§14 a redirect is an answer; names of headers have no case, and two of one name are joined', async () => {
  const opened = await open();
  const asked = opened.fetch(opened.url, {});
  const headers = 'Location: http://inside.example/\r\nX-A: 1\r\nx-a: 2\r\n';
  await answerOn(opened, 0, answer('', headers, '302 Found'));
  const { status, headers: received } = await asked;
  expect(status).toBe(302);
  expect(received.get('LOCATION')).toBe('http://inside.example/');
  expect(received.get('x-A')).toBe('1, 2');
  expect(received.get('set-cookie')).toBeNull();
  expect(opened.server.connections).toHaveLength(1);
});

describe('an end before its time', () => {
  test('§14 who asked gives up before the answer: the connection is closed', async () => {
    const opened = await open();
    const abort = new AbortController();
    const asked = opened.fetch(opened.url, { signal: abort.signal });
    const connection = await opened.server.connection(0);
    abort.abort(new Error('given up'));
    await expect(asked).rejects.toThrow('given up');
    await expect.poll(connection.isClosed).toBe(true);
    await expect(opened.fetch(opened.url, { signal: abort.signal })).rejects.toThrow('given up');
    expect(opened.server.connections).toHaveLength(1);
  });

  test.each(['as it is', 'compressed'])(
    '§14 who asked gives up in the middle of the body, which comes %s',
    async (how) => {
      const opened = await open();
      const abort = new AbortController();
      const asked = opened.fetch(opened.url, { signal: abort.signal });
      const coding = how === 'compressed' ? 'Content-Encoding: gzip\r\n' : '';
      const head = `HTTP/1.1 200 OK\r\n${coding}Content-Length: 100\r\n\r\n`;
      const begun = gzipSync('begun').subarray(0, 12);
      const connection = await answerOn(opened, 0, Buffer.concat([Buffer.from(head), begun]));
      const text = readText(await asked);
      abort.abort(new Error('given up'));
      await expect(text).rejects.toThrow('given up');
      await expect.poll(connection.isClosed).toBe(true);
    },
  );

  test.each(['as it is', 'compressed'])(
    '§14 a body that nobody wants, and that comes %s, closes its connection',
    async (how) => {
      const opened = await open();
      const asked = opened.fetch(opened.url, {});
      const coding = how === 'compressed' ? 'Content-Encoding: br\r\n' : '';
      const head = `HTTP/1.1 200 OK\r\n${coding}Content-Length: 100\r\n\r\n`;
      const connection = await answerOn(opened, 0, head);
      await (await asked).body?.cancel();
      await expect.poll(connection.isClosed).toBe(true);
    },
  );

  test('§14 a server that ends in the middle is told of, also before anybody reads', async () => {
    const opened = await open();
    const asked = opened.fetch(opened.url, {});
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
    await answerOn(opened, 0, `${head}not a chunk\r\n`);
    const response = await asked;
    await new Promise(setImmediate);
    await expect(readText(response)).rejects.toThrow('a chunk of its answer is malformed');
    const again = opened.fetch(opened.url, {});
    const connection = await answerOn(opened, 1, `${head}3\r\nabc`);
    const text = readText(await again);
    connection.socket.destroy();
    await expect(text).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  test('§14 a slow reader has the server wait', async () => {
    const opened = await open();
    const asked = opened.fetch(opened.url, {});
    const size = 64 * 1024 * 1024;
    const connection = await answerOn(
      opened,
      0,
      `HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`,
    );
    for (let part = 0; part < 1024; part += 1) connection.socket.write(Buffer.alloc(size / 1024));
    const response = await asked;
    const seen: number[] = [];
    const countStill = () => seen.push(connection.socket.writableLength) - new Set(seen).size;
    await expect.poll(countStill).toBeGreaterThan(2);
    expect(seen.at(-1)).toBeGreaterThan(size / 2);
    expect(await readText(response)).toHaveLength(size);
  });
});

describe('a proxy', () => {
  test.each([
    { what: 'closes the connection', bytes: '', code: 'ERR_PROXY_FAILED' },
    { what: 'speaks no HTTP', bytes: 'SSH-2.0\r\n', code: 'ERR_PROXY_FAILED' },
    { what: 'refuses', bytes: 'HTTP/1.1 407 No\r\n\r\n', code: 'ERR_PROXY_REFUSED' },
  ])('§14 one that $what is named, and not the server', async ({ bytes, code }) => {
    const opened = await open({ isProxy: true });
    const asked = opened.fetch('https://id.example/keys', {});
    const connection = await opened.server.connection(0);
    expect(connection.received()).toMatch(/^CONNECT id\.example:443 HTTP\/1\.1\r\n/);
    connection.socket.end(bytes);
    await expect(asked).rejects.toMatchObject({ name: 'ProxyError', code });
    await expect.poll(connection.isClosed).toBe(true);
  });

  test.each(['http://id.example/keys', 'https://id.example/keys'])(
    '§14 one that is not there is named, and not the server: %s',
    async (url) => {
      const proxy = `http://127.0.0.1:${await freePort()}`;
      const outbound = { httpProxy: proxy, httpsProxy: proxy, noProxy: [] };
      const { fetch } = closeAfterTest(openOutboundNetwork({ outbound }));
      await expect(fetch(url, {})).rejects.toMatchObject({
        name: 'ProxyError',
        code: 'ERR_PROXY_UNREACHABLE',
        cause: { code: 'ECONNREFUSED' },
      });
    },
  );

  test('§14 that this machine has no more files is no fault of the proxy', () => {
    const shortage = Object.assign(new Error('connect'), { code: 'EMFILE' });
    expect(toProxyError(shortage)).toBe(shortage);
    expect(toConnectionError(toProxyError(shortage), 'unsent')).toMatchObject({ isOwn: true });
  });

  test('§14 one that says nothing is left by whoever gives up', async () => {
    const opened = await open({ isProxy: true });
    const abort = new AbortController();
    const asked = opened.fetch('https://id.example/keys', { signal: abort.signal });
    const connection = await opened.server.connection(0);
    abort.abort(new Error('given up'));
    await expect(asked).rejects.toThrow('given up');
    await expect.poll(connection.isClosed).toBe(true);
  });

  test('§14 what comes right behind its word is a part of TLS', async () => {
    const opened = await open({ isProxy: true });
    const asked = opened.fetch('https://id.example/keys', {});
    await answerOn(opened, 0, 'HTTP/1.1 200 OK\r\n\r\nno TLS');
    await expect(asked).rejects.toMatchObject({ code: 'ERR_SSL_WRONG_VERSION_NUMBER' });
  });

  test('§14 one with TLS proves its own name, and not that of the server', async () => {
    const names: string[] = [];
    const proxy = createTlsServer({
      ...(await issueCertificate('localhost')),
      SNICallback: (name, done) => {
        names.push(name);
        done(null);
      },
    });
    proxy.on('tlsClientError', () => {}).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const { port } = proxy.address() as AddressInfo;
    const outbound = { ...NO_PROXY, httpsProxy: `https://localhost:${port}` };
    const { fetch } = closeAfterTest(openOutboundNetwork({ outbound }));
    await expect(fetch('https://id.example/keys', {})).rejects.toMatchObject({
      code: 'ERR_PROXY_FAILED',
      cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
    });
    expect(names).toEqual(['localhost']);
    proxy.close();
  });
});

describe('whether the server may have got a request that failed', () => {
  const server = { name: 'a', url: 'http://127.0.0.1/', auth: { allowPrivate: true } };
  const sendBy = (fetch: Fetch, url: string) =>
    createOutbound({ fetch, clock: systemClock }, {} as never)
      .send(url, { method: 'POST', body: 'refresh_token=r' }, server as never)
      .catch((error: unknown) => error);

  test('§24 it may, where the gateway stops while it waits for the answer', async () => {
    const opened = await open();
    const sent = sendBy(opened.fetch, opened.url);
    const connection = await opened.server.connection(0);
    await expect.poll(connection.received).toContain('refresh_token=r');
    opened.close();
    expect(await sent).toMatchObject({ name: 'NoAnswer', mayHaveArrived: true });
  });

  test('§24 it has not, where the proxy let nothing through', async () => {
    const opened = await open({ isProxy: true });
    const sent = sendBy(opened.fetch, 'https://id.example/token');
    await answerOn(opened, 0, 'HTTP/1.1 403 No\r\n\r\n');
    expect(await sent).toMatchObject({ name: 'NoAnswer', mayHaveArrived: false });
  });
});

describe('compression that nobody asked for', () => {
  test.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['GZIP', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['identity', Buffer.from],
  ])('§14 %s is undone', async (coding, compress) => {
    const opened = await open();
    const asked = fetchWithLimits(opened.fetch, opened.url, {}, LIMITS);
    await answerOn(opened, 0, answer(compress('{"keys":[]}'), `Content-Encoding: ${coding}\r\n`));
    expect((await asked).body.toString()).toBe('{"keys":[]}');
  });

  test('§14 what becomes too long is read no further', async () => {
    const opened = await open();
    const asked = fetchWithLimits(opened.fetch, opened.url, {}, LIMITS);
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    await answerOn(opened, 0, answer(bomb, 'Content-Encoding: gzip\r\n'));
    const failure = await asked.catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(FetchError);
    expect(failure).toMatchObject({ cause: { message: 'answered with more than 1000 bytes' } });
  });

  test.each(['utf-8', 'none', 'aws-chunked', '', 'identity, identity', 'zstd'])(
    '§14 what is said to be "%s" is taken as it is',
    async (coding) => {
      const opened = await open();
      const asked = fetchWithLimits(opened.fetch, opened.url, {}, LIMITS);
      await answerOn(opened, 0, answer('{"keys":[]}', `Content-Encoding: ${coding}\r\n`));
      expect((await asked).body.toString()).toBe('{"keys":[]}');
    },
  );

  test.each([
    ['gzip', 204],
    ['gzip', 304],
    ['gzip', 200],
    ['deflate', 200],
    ['br', 401],
  ])('§14 no body at all may be said to be %s: %i', async (coding, status) => {
    const opened = await open();
    const asked = fetchWithLimits(
      opened.fetch,
      opened.url,
      {},
      { ...LIMITS, acceptsRedirects: true },
    );
    const length = status === 204 || status === 304 ? '' : 'Content-Length: 0\r\n';
    const head = `HTTP/1.1 ${status} X\r\nContent-Encoding: ${coding}\r\n${length}\r\n`;
    await answerOn(opened, 0, head);
    expect(await asked).toMatchObject({ status, body: Buffer.alloc(0) });
  });

  test('§14 what is no gzip after all closes its connection', async () => {
    const opened = await open();
    const asked = fetchWithLimits(opened.fetch, opened.url, {}, LIMITS);
    const head = 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 100\r\n\r\n';
    const connection = await answerOn(opened, 0, `${head}not compressed`);
    await expect(asked).rejects.toMatchObject({ cause: { message: 'incorrect header check' } });
    await expect.poll(connection.isClosed).toBe(true);
  });
});

test.each([
  ['ftp://127.0.0.1/', 'its address is neither http nor https'],
  ['http://user:secret@127.0.0.1/', 'its address has a user'],
  ['nowhere', 'Invalid URL'],
])('§14 an address that cannot be asked: %s', async (address, message) => {
  const { fetch } = await open();
  await expect(fetch(address, {})).rejects.toThrow(message);
});
