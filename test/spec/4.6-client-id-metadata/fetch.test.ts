// OAuth Client ID Metadata Documents §5, §8.6, §8.7: how a document is fetched, and from where not.
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { beforeEach, expect, test } from 'vitest';
import { ClientDocumentRefused } from '../../../src/logins/client-id-metadata/client-document.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import {
  createPublicNetwork,
  isPublicAddress,
} from '../../../src/platform/outbound/public-network.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startClientDocuments } from '../../support/oauth/client-documents.ts';
import { documentAnswer, PUBLIC, startDocumentHost } from '../../support/oauth/document-host.ts';

const started = useShared(() => startClientDocuments(['*']));
let documents: typeof started.documents;
let id = '';
let count = 0;

beforeEach(() => {
  documents = started.open();
  started.host.answer(documentAnswer());
  started.host.resolveTo(async () => [PUBLIC]);
  count += 1;
  id = `https://client.example/${count}`;
});

const publicNetwork = createPublicNetwork({ clock: systemClock });

const refused = async (find: Promise<unknown>, message: string | RegExp) => {
  const error = await find.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ClientDocumentRefused);
  expect(String(error)).toMatch(message);
};
const NOT_PUBLIC = /The host \S+ of the client_id does not resolve to public addresses only\./;

test('§14 client documents: the request carries the name, and nothing of the service', async () => {
  await documents.find(id);
  expect(started.host.requests.at(-1)).toEqual({
    path: new URL(id).pathname,
    method: 'GET',
    servername: 'client.example',
    headers: {
      host: 'client.example',
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'postern',
      connection: 'close',
    },
  });
  await expect.poll(started.host.open).toBe(0);
});

const NO_NAMES = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f000001',
  '0x7f.0.0.1',
  '0177.0.0.1',
  '0',
  '0.0.0.0',
  '127.0.0.1.',
  '127.0.0.1:443',
  '169.254.169.254',
  '93.184.216.34',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[64:ff9b::7f00:1]',
  '[2606:4700::1111]',
  '[fe80::1%25eth0]',
  '①②⑦.0.0.1',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
  'intranet',
  'a..example',
  '-a.example',
  'a-.example',
  'a_b.example',
  '.example',
  `${'a'.repeat(64)}.example`,
  `${'a.'.repeat(124)}example`,
];

test.each(NO_NAMES)('§14 client documents: the host %s is not even looked up', async (name) => {
  const before = started.host.resolved.length;
  await refused(documents.find(`https://${name}/client`), /^ClientDocumentRefused: The client_id /);
  expect(started.host.resolved.length).toBe(before);
  expect(started.host.strays()).toBe(0);
});

/** One of each network, at its ends where it is easily cut wrongly. */
const INNER = [
  ...['0.0.0.0', '0.255.255.255', '10.0.0.1', '10.255.255.255', '100.64.0.0', '100.127.255.255'],
  ...['100.100.100.200', '127.0.0.1', '127.255.255.254', '168.63.129.16', '169.254.0.0'],
  ...['169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.192', '192.0.2.1'],
  ...['192.88.99.1', '192.168.0.1', '198.18.0.1', '198.19.255.255', '198.51.100.7'],
  ...['203.0.113.9', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  ...['::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:93.184.216.34'],
  ...[
    '64:ff9b::a00:1',
    '64:ff9b:1::1',
    '100::1',
    '2001::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  ],
  ...['2001:2::1', '2001:10::1', '2001:20::1', '2001:db8::1', '2002:a00:1::1', '2002:7f00:1::'],
  ...['3fff::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'fe80::1%eth0', 'fec0::1', 'ff02::1'],
  ...['4000::1', 'ffff::1', '2606:4700::1%eth0', 'localhost', '', '127.1', '0x7f.0.0.1'],
];

test.each(INNER)(
  '§14 client documents: a host with the address %j is not fetched from',
  async (inner) => {
    const { strays, dialled } = started.host;
    for (const answer of [[inner], [PUBLIC, inner], [inner, PUBLIC]]) {
      started.host.resolveTo(async () => answer);
      await refused(started.open().find(id), NOT_PUBLIC);
    }
    expect(strays()).toBe(0);
    expect(dialled).not.toContain(inner);
    expect(isPublicAddress(inner)).toBe(false);
  },
);

test.each([
  ...['1.1.1.1', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
  ...['128.0.0.1', '169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0'],
  ...['192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '223.255.255.255'],
  ...['2606:4700:4700::1111', '2001:200::1', '2001:4860:4860::8888', '2a00:1450::1', '2003::1'],
])('§14 client documents: the address %s is public', (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test('§14 client documents: a name that resolves to nothing is told like one that is not public', async () => {
  started.host.resolveTo(async () => []);
  await refused(documents.find(id), NOT_PUBLIC);
  started.host.resolveTo(async () => Promise.reject(new Error('queryA ENOTFOUND')));
  await refused(started.open().find(id), NOT_PUBLIC);
  expect(started.lines.at(-1)).toMatchObject({ level: 'info', clientId: id, cause: /ENOTFOUND/ });
});

test('§14 client documents: a name is resolved once, and its address is the one connected to', async () => {
  const answers = [[PUBLIC], ['127.0.0.1']];
  started.host.resolveTo(async () => answers.shift() ?? ['127.0.0.1']);
  started.host.answer(documentAnswer({}, { 'Cache-Control': 'no-store' }));
  const lookUps = started.host.resolved.length;
  const dials = started.host.dialled.length;
  await documents.find(id);
  expect(started.host.resolved.slice(lookUps)).toEqual(['client.example']);
  expect(started.host.dialled.slice(dials)).toEqual([PUBLIC]);
  await refused(documents.find(id), NOT_PUBLIC);
  expect(started.host.dialled.slice(dials)).toEqual([PUBLIC]);
  expect(started.host.strays()).toBe(0);
});

test.each([301, 302, 303, 307, 308])(
  '§14 client documents: a redirect with %i is not followed',
  async (status) => {
    let reached = 0;
    const canary = createServer((_, res) => {
      reached += 1;
      res.end();
    });
    await new Promise<void>((listening) => canary.listen(0, '127.0.0.1', listening));
    const { port } = canary.address() as AddressInfo;
    const requests = started.host.requests.length;
    for (const location of [
      `http://127.0.0.1:${port}/`,
      'https://client.example/other',
      '/other',
    ]) {
      started.host.answer((res) => res.writeHead(status, { Location: location }).end());
      await refused(
        started.open().find(id),
        `answered with a redirect (${status}), which is not followed`,
      );
    }
    expect(started.host.requests.length).toBe(requests + 3);
    expect(reached + started.host.strays()).toBe(0);
    canary.close();
  },
);

test.each([201, 204, 206, 304, 400, 401, 404, 500, 503])(
  '§14 client documents: an answer %i is no document',
  async (status) => {
    started.host.answer((res) => {
      const body = { client_id: id, redirect_uris: ['https://client.example/callback'] };
      res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    });
    const words = status === 304 ? 'answered with a redirect .304.' : `answered ${status}\\.`;
    await refused(documents.find(id), new RegExp(`The client's metadata document ${id} ${words}`));
  },
);

test.each([
  ['application/json', true],
  ['application/json; charset=utf-8', true],
  ['Application/JSON ;charset=utf-8', true],
  ['application/cimd+json', true],
  ['application/vnd.client-id.v1+json; a=b', true],
  ['text/html', false],
  ['text/json', false],
  ['text/plain; application/json', false],
  ['application/jsonx', false],
  ['application/json-seq', false],
  ['application/+json', false],
  ['application/x+y/json', false],
  ['', false],
  [undefined, false],
])('§14 client documents: whether the content type %j is JSON', async (type, taken) => {
  started.host.answer((res, path) => {
    if (type !== undefined) res.setHeader('Content-Type', type);
    res.end(
      JSON.stringify({
        client_id: `https://client.example${path}`,
        redirect_uris: ['https://client.example/callback'],
      }),
    );
  });
  if (taken) expect((await documents.find(id)).client_id).toBe(id);
  else await refused(documents.find(id), /is not served as application\/json/);
});

test('§14 client documents: what comes compressed all the same is read, up to 32 KiB of the document itself', async () => {
  const answerGzip = (body: string | Buffer) =>
    started.host.answer((res) => {
      res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' });
      res.end(gzipSync(body));
    });
  answerGzip(Buffer.alloc(1_000_000, ' '));
  await refused(documents.find(id), /is longer than 32768 bytes/);
  const redirect_uris = ['https://client.example/callback'];
  answerGzip(`\uFEFF${JSON.stringify({ client_id: id, redirect_uris })}`);
  expect((await started.open().find(id)).client_id).toBe(id);
  started.host.answer(documentAnswer({}, { 'Content-Encoding': 'identity' }));
  expect((await started.open().find(id)).client_id).toBe(id);
});

test('§14 client documents: 32 KiB are read and no more', async () => {
  const sized = (length: number) => {
    const bare = JSON.stringify({ client_id: id, redirect_uris: ['https://client.example/c'] });
    return bare.padEnd(length, ' ');
  };
  const serve = (body: string) =>
    started.host.answer((res) =>
      res.writeHead(200, { 'Content-Type': 'application/json' }).end(body),
    );
  serve(sized(32_768));
  expect((await documents.find(id)).client_id).toBe(id);
  serve(sized(32_769));
  await refused(started.open().find(id), /is longer than 32768 bytes/);
});

test('§14 client documents: an answer without an end is cut off', async () => {
  let written = 0;
  started.host.answer((res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' });
    const more = () => {
      while (!res.destroyed && res.write(Buffer.alloc(16_384, ' '))) written += 16_384;
    };
    res.on('drain', more).on('error', () => {});
    more();
  });
  await refused(documents.find(id), /is longer than 32768 bytes/);
  await expect.poll(started.host.open).toBe(0);
  expect(written).toBeLessThan(16_777_216);
});

test('§14 client documents: what follows a refused answer is not waited for', async () => {
  started.host.answer((res) => {
    res.writeHead(404, { 'Content-Type': 'application/json' }).write('{');
  });
  await refused(documents.find(id), /answered 404/);
  await expect.poll(started.host.open).toBe(0);
});

test('§14 client documents: an answer that breaks off is no document', async () => {
  started.host.answer((res, path) => {
    const whole = JSON.stringify({ client_id: path, redirect_uris: [] });
    res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': whole.length + 9 });
    res.write(whole, () => res.destroy());
  });
  await refused(documents.find(id), /cannot be fetched/);
});

test('§14 client documents: what is no HTTP is no document', async () => {
  started.host.answer((res) => res.socket?.end('HTTP/1.1 2OO Fine\r\n\r\n{}'));
  await refused(documents.find(id), /cannot be fetched/);
});

test('§14 client documents: a certificate for another name is refused', async () => {
  const requests = started.host.requests.length;
  await refused(documents.find('https://other.example/a'), /cannot be fetched/);
  expect(started.host.requests.length).toBe(requests);
  expect(started.lines.at(-1)?.cause).toMatch(/does not match certificate's altnames/);
});

test('§14 client documents: a certificate of an unknown authority is refused, whatever the environment says', async () => {
  const { resolve, dial } = started.host.network;
  const requests = started.host.requests.length;
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  try {
    await refused(started.open({ resolve, dial }).find(id), /cannot be fetched/);
  } finally {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  }
  expect(started.host.requests.length).toBe(requests);
});

test('§14 client documents: a certificate that has expired is refused', async () => {
  const old = await startDocumentHost({
    names: ['client.example'],
    notAfter: new Date(1_700_000_000_000),
  });
  old.answer(documentAnswer());
  await refused(started.open(old.network).find(id), /cannot be fetched/);
  expect(old.requests).toEqual([]);
  await old.close();
});

test('§14 client documents: why a connection failed stands in the log only', async () => {
  const dial = () => Promise.reject(new Error('connect ECONNREFUSED 10.1.2.3:443'));
  const find = started.open({ ...started.host.network, dial }).find(id);
  await refused(find, `The client's metadata document ${id} cannot be fetched.`);
  expect(started.lines.at(-1)).toMatchObject({
    level: 'info',
    msg: expect.stringContaining(`The client's metadata document ${id} cannot be fetched. `),
    clientId: id,
    cause: 'connect ECONNREFUSED 10.1.2.3:443',
  });
});

const TOO_SLOW = /did not arrive in full within 5 s\./;

test('§14 client documents: 5 s are for the name, too; an answer after that dials nobody', async () => {
  let answer = (_: string[]) => {};
  started.host.resolveTo(() => new Promise((resolve) => (answer = resolve)));
  const dials = started.host.dialled.length;
  const find = documents.find(id);
  started.clock.advance(5000);
  await refused(find, TOO_SLOW);
  answer([PUBLIC]);
  await new Promise(setImmediate);
  expect(started.host.dialled.length).toBe(dials);
});

test('§14 client documents: 5 s are for connection, TLS, head and body together', async () => {
  const before = started.host.requests.length;
  const begun = (requests: number) =>
    expect.poll(() => started.host.requests.length).toBe(before + requests);

  // No answer at all, even though the time passes in pieces.
  started.host.answer(() => {});
  const noHead = documents.find(id);
  await begun(1);
  started.clock.advance(2500);
  started.clock.advance(2499);
  started.host.answer((res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' }).write('{');
  });
  const noEnd = started.open().find(id);
  await begun(2);
  started.clock.advance(1);
  await refused(noHead, TOO_SLOW);
  started.clock.advance(4999);
  await refused(noEnd, TOO_SLOW);
  await expect.poll(started.host.open).toBe(0);
});

test('§14 client documents: 5 s are for a host that accepts and says nothing', async () => {
  const silent = createTcpServer((socket) => void socket.resume().on('error', () => {}));
  await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening));
  const { port } = silent.address() as AddressInfo;
  const connections = () =>
    new Promise<number>((done) => silent.getConnections((_, open) => done(open)));
  // Once it is there, the connection is no longer the dial's to close.
  const { signal } = new AbortController();
  const dial = () => publicNetwork.dial({ addresses: ['127.0.0.1'], port, signal });
  const network = { ...started.host.network, dial };
  const find = started.open(network).find(id);
  await expect.poll(connections).toBe(1);
  started.clock.advance(5000);
  await refused(find, TOO_SLOW);
  await expect.poll(connections).toBe(0);
  silent.close();
});

test('§14 client documents: the public network connects to a given address, or to the next one', async () => {
  const { signal } = new AbortController();
  for (const addresses of [['127.0.0.1'], ['::1', '127.0.0.1'], ['127.0.0.2', '127.0.0.1']]) {
    const socket = await publicNetwork.dial({ addresses, port: started.host.port, signal });
    expect(socket.remoteAddress).toMatch(/^127\.0\.0\.1$/);
    socket.destroy();
  }
  const nobody = publicNetwork.dial({
    addresses: ['127.0.0.2', '::1'],
    port: started.host.port,
    signal,
  });
  await expect(nobody).rejects.toThrow();
});

test('§14 client documents: the signal of an attempt ends the attempt, and never the connection', async () => {
  const abort = new AbortController();
  const { port } = started.host;
  const destination = { addresses: ['127.0.0.1'], port, signal: abort.signal };
  const socket = await publicNetwork.dial(destination);
  // What is below TLS must be destroyed by TLS: Node 20.20 crashes else.
  abort.abort();
  expect(socket.destroyed).toBe(false);
  socket.destroy();
  await expect(publicNetwork.dial(destination)).rejects.toThrow('the attempt was ended');
});
