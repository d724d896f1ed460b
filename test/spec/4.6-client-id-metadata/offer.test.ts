// §14: client_id_metadata_document_supported is said only while documents can be fetched.
// Clients that read it (Claude Code, Codex) have no other way to log in.
import { createServer } from 'node:net';
import { beforeEach, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { createDocumentOffer } from '../../../src/logins/client-id-metadata/document-offer.ts';
import { createServerMetadata } from '../../../src/logins/endpoints.ts';
import type { Network } from '../../../src/platform/outbound/public-network.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { collectLog, type LogLine } from '../../support/gateway/log.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { PUBLIC, startDocumentHost } from '../../support/oauth/document-host.ts';

const HOSTS = ['a.example', 'b.example'];
const TEN_MINUTES = 600_000;
const notFound = (name: string) => Promise.reject(new Error(`queryA ENOTFOUND ${name}`));

const host = useFresh(() => startDocumentHost({ names: HOSTS }));
let clock: ManualClock;
let lines: readonly LogLine[];
beforeEach(() => {
  clock = manualClock(1_800_000_000_000);
});

/** The member of the metadata, as a client would see it now. */
function start(hosts: readonly string[] = HOSTS, network: Network = host.network) {
  const collected = collectLog();
  lines = collected.lines;
  const offer = closeAfterTest(createDocumentOffer({ clock, log: collected.log }, network, hosts));
  offer.start();
  const config = loadConfig({
    BASE_URL: 'https://gw.example',
    OIDC_ISSUER: 'https://id.example',
    OIDC_JWKS_URL: 'https://id.example/jwks',
    OAUTH_MODE: 'broker',
    OAUTH_CLIENT_ID: 'client-1',
  });
  const provider = { issuer: 'https://id.example', get: () => Promise.reject(new Error('down')) };
  const server = createServerMetadata(config, provider, offer.isOffered, () => false);
  return {
    close: offer.close,
    async supported(document: 'getMetadata' | 'getOpenidConfiguration' = 'getMetadata') {
      const { body } = await server[document]();
      return JSON.parse(String(body)).client_id_metadata_document_supported;
    },
  };
}

/** What is to come within the check that was started last. */
const warnings = () => lines.filter(({ level }) => level === 'warn');

test('§14 document offer: while a host can be reached, both documents say so, and the log says nothing', async () => {
  const { supported } = start();
  expect(await supported()).toBe(true);
  expect(await supported('getOpenidConfiguration')).toBe(true);
  expect(lines.filter(({ level }) => level !== 'debug')).toEqual([]);
  expect(new Set(host.resolved)).toEqual(new Set(HOSTS));
  expect(host.requests).toEqual([]);
  await expect.poll(host.open).toBe(0);
});

test('§14 document offer: one host of many is enough', async () => {
  host.resolveTo(async (name) => (name === 'b.example' ? [PUBLIC] : notFound(name)));
  expect(await start().supported()).toBe(true);
  expect(warnings()).toEqual([]);
});

test('§14 document offer: when all fail it is left out, and one warning says why and what to set', async () => {
  host.resolveTo(notFound);
  const { supported } = start();
  expect(await supported()).toBeUndefined();
  expect(await supported('getOpenidConfiguration')).toBeUndefined();
  expect(warnings()).toEqual([
    expect.objectContaining({
      msg: expect.stringMatching(/CIMD_ALLOWED_HOSTS.*HTTPS_PROXY/),
      reasons: {
        'a.example': expect.stringMatching(/ENOTFOUND/),
        'b.example': expect.stringMatching(/ENOTFOUND/),
      },
    }),
  ]);
});

test('§14 document offer: however many hosts there are, Node.js warns of no leak', async () => {
  host.resolveTo(notFound);
  const warned: unknown[] = [];
  const note = (warning: Error) => void warned.push(warning.name);
  process.on('warning', note);
  expect(await start(Array.from({ length: 30 }, (_, at) => `h${at}.example`)).supported()).toBe(
    undefined,
  );
  await new Promise(setImmediate);
  process.off('warning', note);
  expect(warned).toEqual([]);
});

test('§14 document offer: an answer before the first check has ended waits for it, and nothing flaps', async () => {
  let answer = (_: readonly string[]) => {};
  host.resolveTo(() => new Promise((resolve) => (answer = resolve)));
  const { supported } = start(['a.example']);
  const asked = [supported(), supported('getOpenidConfiguration')];
  await expect.poll(() => host.resolved.length).toBe(1);
  answer([PUBLIC]);
  expect(await Promise.all(asked)).toEqual([true, true]);
  expect(await supported()).toBe(true);
});

test('§14 document offer: the wait is 5 s at most', async () => {
  const silent = createServer((socket) => void socket.resume().on('error', () => {}));
  await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening));
  let accepted = 0;
  silent.on('connection', () => (accepted += 1));
  const { supported } = start(HOSTS, silentNetwork(silent));
  const asked = supported();
  await expect.poll(() => accepted).toBe(2);
  clock.advance(5000);
  expect(await asked).toBeUndefined();
  expect(warnings()[0]?.reasons).toEqual({
    'a.example': 'no TLS connection within 5 s',
    'b.example': 'no TLS connection within 5 s',
  });
  const connections = () =>
    new Promise<number>((done) => silent.getConnections((_, open) => done(open)));
  await expect.poll(connections).toBe(0);
  await new Promise((closed) => silent.close(closed));
});

test('§14 document offer: every ten minutes it is checked again; off and on are said once each', async () => {
  const { supported } = start();
  expect(await supported()).toBe(true);
  host.resolveTo(notFound);
  const checks = async (count: number) => {
    const before = host.resolved.length;
    for (let check = 1; check <= count; check += 1) {
      clock.advance(TEN_MINUTES);
      await expect.poll(() => host.resolved.length).toBe(before + check * 2);
      await new Promise(setImmediate);
    }
  };
  await checks(3);
  expect(await supported()).toBeUndefined();
  expect(warnings()).toHaveLength(1);
  host.resolveTo(async () => [PUBLIC]);
  clock.advance(TEN_MINUTES - 1);
  expect(await supported()).toBeUndefined();
  clock.advance(1);
  await expect.poll(supported).toBe(true);
  expect(lines.filter(({ level }) => level !== 'debug').map(({ level }) => level)).toEqual([
    'warn',
    'info',
  ]);
  expect(lines.at(-1)?.msg).toMatch(/CIMD_ALLOWED_HOSTS/);
});

test('§14 document offer: a host with an inner address, or another certificate, does not count', async () => {
  host.resolveTo(async () => ['10.0.0.1']);
  const { supported, close } = start(['a.example']);
  expect(await supported()).toBeUndefined();
  expect(warnings()[0]?.reasons).toEqual({ 'a.example': 'it has the address 10.0.0.1' });
  close();
  host.resolveTo(async () => [PUBLIC]);
  expect(await start(['other.example']).supported()).toBeUndefined();
  expect(JSON.stringify(warnings()[0]?.reasons)).toMatch(/altnames/);
  expect(host.strays()).toBe(0);
});

test('§14 document offer: * is never switched off, and nothing is checked', async () => {
  host.resolveTo(notFound);
  const { supported } = start(['a.example', '*']);
  expect(await supported()).toBe(true);
  clock.advance(TEN_MINUTES);
  expect(await supported()).toBe(true);
  expect(host.resolved).toEqual([]);
  expect(lines).toEqual([]);
});

test('§14 document offer: without hosts there is none, and nothing is checked', async () => {
  expect(await start([]).supported()).toBeUndefined();
  expect(host.resolved).toEqual([]);
});

test('§14 document offer: a check ends with the gateway, and says nothing then', async () => {
  host.resolveTo(() => new Promise(() => {}));
  const { supported, close } = start();
  const asked = supported();
  await expect.poll(() => host.resolved.length).toBe(2);
  close();
  expect(await asked).toBeUndefined();
  clock.advance(TEN_MINUTES);
  await new Promise(setImmediate);
  expect(host.resolved.length).toBe(2);
  expect(lines).toEqual([]);
});

test('§14 document offer: a gateway with a network of the test’s own offers documents and checks nothing', async () => {
  const env = { OAUTH_MODE: 'broker', OAUTH_CLIENT_ID: 'gateway' };
  const gateway = await startGateway({ env, deps: { network: host.network } });
  const { json } = await gateway.request({ path: '/.well-known/oauth-authorization-server' });
  expect(json.client_id_metadata_document_supported).toBe(true);
  expect(host.resolved).toEqual([]);
  await gateway.close();
});

/** Every address leads to a server that accepts and says nothing. */
function silentNetwork(server: ReturnType<typeof createServer>): Network {
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    ...host.network,
    dial: ({ signal }) => host.dialTo(port, signal),
  };
}
