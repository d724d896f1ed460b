// §14: names of client documents are looked up by a resolver of their own, against a real
// DNS server of the test's.
import { beforeEach, expect, test } from 'vitest';
import { createClientDocuments } from '../../../src/logins/client-id-metadata/client-documents.ts';
import {
  createPublicNetwork,
  type Network,
} from '../../../src/platform/outbound/public-network.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { collectLog, type LogLine } from '../../support/gateway/log.ts';
import { useFresh } from '../../support/lifetimes.ts';
import { redirectUris } from '../../support/oauth/client-documents.ts';
import {
  type DocumentHost,
  documentAnswer,
  PUBLIC,
  startDocumentHost,
} from '../../support/oauth/document-host.ts';
import { startUpstream } from '../../support/oauth/upstream.ts';
import { startDnsServer } from './dns-server.ts';

let clock: ManualClock;
let network: Network;
const resolve = (host: string, signal = new AbortController().signal) =>
  network.resolve(host, signal);

const dns = useFresh(startDnsServer);
beforeEach(async () => {
  clock = manualClock(1_800_000_000_000);
  network = createPublicNetwork({ clock, dnsServers: [dns.address] });
});

const outcome = (looking: Promise<readonly string[]>) =>
  looking.catch((error: unknown) => String(error));

test.each([
  { what: 'both families', found: [PUBLIC, '2606:4700::1111'] },
  { what: 'IPv4 only', found: [PUBLIC, '1.1.1.1'] },
  { what: 'IPv6 only', found: ['2606:4700::1111'] },
])('§14 document names: all addresses of a host, $what', async ({ found }) => {
  dns.answer(() => found);
  expect(await resolve('client.example')).toEqual(found);
  expect(dns.asked).toEqual(['client.example', 'client.example']);
});

test('§14 document names: a name that does not exist, and one without an address, say so', async () => {
  expect(await outcome(resolve('nobody.example'))).toMatch(
    /ENOTFOUND: DNS has no address for nobody\.example/,
  );
  dns.answer(() => []);
  expect(await outcome(resolve('nobody.example'))).toMatch(/ENODATA/);
});

test('§14 document names: /etc/hosts is not asked', async () => {
  expect(await outcome(resolve('localhost'))).toMatch(/ENOTFOUND/);
  expect(dns.asked).toContain('localhost');
});

test('§14 document names: a silent name is given up after 2 s, and asked for once', async () => {
  dns.answer(() => 'silent');
  const looking = outcome(resolve('silent.example'));
  await expect.poll(() => dns.asked.length).toBe(2);
  clock.advance(1999);
  dns.answer(() => undefined);
  await expect(resolve('other.example')).rejects.toThrow();
  clock.advance(1);
  expect(await looking).toBe(
    'Error: ETIMEOUT: no DNS server answered for silent.example within 2 s',
  );
  expect(dns.asked.filter((name) => name === 'silent.example')).toHaveLength(2);
});

test('§14 document names: without our own clock the resolver gives up after 2 s, too', async () => {
  dns.answer(() => 'silent');
  expect(await outcome(resolve('silent.example'))).toMatch(/ETIMEOUT/);
  expect(dns.asked).toHaveLength(2);
});

test('§14 document names: 8 are looked up at once, 24 wait, and one more is turned away', async () => {
  dns.answer(() => 'silent');
  const looking = Array.from({ length: 32 }, (_, n) => outcome(resolve(`n${n}.example`)));
  await expect.poll(() => dns.asked.length).toBe(16);
  expect(await outcome(resolve('late.example'))).toMatch(/too many/);
  dns.answer(() => [PUBLIC]);
  clock.advance(2000);
  const ended = await Promise.all(looking);
  expect(ended.slice(0, 8).every((text) => /ETIMEOUT/.test(String(text)))).toBe(true);
  expect(ended.slice(8)).toEqual(Array(24).fill([PUBLIC]));
  expect(await resolve('late.example')).toEqual([PUBLIC]);
});

test('§24 names of authorization servers: more are looked up at once where that is said, and none waits for a silent one', async () => {
  const many = createPublicNetwork({ clock, dnsServers: [dns.address], maxLookups: 100 });
  const { signal } = new AbortController();
  dns.answer(() => 'silent');
  const looking = Array.from({ length: 60 }, () => outcome(many.resolve('slow.example', signal)));
  await expect.poll(() => dns.asked.length).toBe(120);
  dns.answer(() => [PUBLIC]);
  expect(await many.resolve('other.example', signal)).toEqual([PUBLIC]);
  clock.advance(2000);
  await Promise.all(looking);
});

test('§14 document names: whoever leaves while it waits is never looked up; whoever leaves later frees its place', async () => {
  dns.answer(() => 'silent');
  const leaving = Array.from({ length: 12 }, () => new AbortController());
  const all = leaving.map(({ signal }, n) => outcome(resolve(`n${n}.example`, signal)));
  await expect.poll(() => dns.asked.length).toBe(16);
  for (const one of leaving) one.abort();
  await Promise.all(all);
  expect(dns.asked).toHaveLength(16);
  dns.answer(() => [PUBLIC]);
  expect(await resolve('client.example')).toEqual([PUBLIC]);
});

test.each([
  ['::1', PUBLIC],
  ['fd00::1', PUBLIC],
  [PUBLIC, '10.0.0.1'],
  ['127.0.0.1', '2606:4700::1111'],
])(
  '§14 document names: with the addresses %s and %s a host is not fetched from',
  async (...found) => {
    const dialled: string[] = [];
    const { documents, lines } = open({
      ...network,
      dial({ addresses }) {
        dialled.push(...addresses);
        return Promise.reject(new Error('not here'));
      },
    });
    dns.answer(() => found);
    await expect(documents.find('https://client.example/a')).rejects.toThrow(
      /public addresses only/,
    );
    expect(dialled).toEqual([]);
    expect(lines.at(-1)?.cause).toMatch(/it has the address/);
  },
);

test('§14 document names: a document is fetched from where the DNS server says', async () => {
  const host = await startDocumentHost({ names: ['client.example'] });
  host.answer(documentAnswer());
  dns.answer(() => [PUBLIC]);
  const { documents } = open(withNames(host));
  expect((await documents.find('https://client.example/a')).client_id).toBe(
    'https://client.example/a',
  );
  expect(host.dialled).toEqual([PUBLIC]);
  await host.close();
});

test('§14 document names: the fetch from a silent name ends in time, and the log says why', async () => {
  dns.answer(() => 'silent');
  const { documents, lines } = open(network);
  const finding = documents.find('https://silent.example/a').catch(String);
  await expect.poll(() => dns.asked.length).toBe(2);
  clock.advance(2000);
  expect(await finding).toMatch(/The host silent.example of the client_id/);
  expect(lines.at(-1)?.cause).toMatch(/ETIMEOUT: no DNS server answered for silent.example/);
});

test('§14 document names: 20 silent names delay neither the provider nor names of the system', async () => {
  const upstream = await startUpstream();
  dns.answer(() => 'silent');
  const gateway = await startGateway({
    deps: { network },
    env: {
      CIMD_ALLOWED_HOSTS: '*',
      OAUTH_AUTHORIZATION_URL: 'https://id.example/authorize',
      // By its name: the resolver of the system has to find it.
      OAUTH_TOKEN_URL: upstream.url.replace('127.0.0.1', 'localhost'),
      OAUTH_CLIENT_ID: 'provider-client',
    },
  });
  let ended = 0;
  const authorizing = Array.from({ length: 20 }, (_, n) => {
    const id = encodeURIComponent(`https://silent${n}.example/client`);
    return gateway.request({ path: `/oauth/authorize?client_id=${id}` }).then(({ status }) => {
      ended += 1;
      return status;
    });
  });
  await expect.poll(() => dns.asked.length).toBe(16);
  const refreshes = Array.from({ length: 10 }, (_, n) =>
    gateway.request({
      method: 'POST',
      path: '/oauth/token',
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: `r${n}`,
        client_id: 'my-app',
      }),
    }),
  );
  for (const { status } of await Promise.all(refreshes)) expect(status).toBe(200);
  expect(ended).toBe(0);
  // Whoever waits in the queue is looked up, or given up with its document, in time.
  for (const ms of [2000, 2000, 1000]) {
    clock.advance(ms);
    await new Promise(setImmediate);
  }
  for (const status of await Promise.all(authorizing)) expect(status).toBe(400);
  await gateway.close();
  await upstream.close();
});

function open(from: Network) {
  const { log, lines } = collectLog();
  const documents = createClientDocuments({ clock, log }, from, {
    allowedHosts: ['*'],
    redirectUris,
    acceptsKeys: false,
  });
  return { documents, lines: lines as readonly LogLine[] };
}

/** The host's own network, but for where names lead. */
const withNames = (host: DocumentHost): Network => ({ ...host.network, resolve: network.resolve });
