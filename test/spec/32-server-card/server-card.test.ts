// §32.1, §32.2: server cards, and the catalogue that leads to them.
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { findCardProblems } from '../../support/clients/server-documents.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { findProblems } from '../../support/upstreams/gateway-file.ts';

const BASE = 'https://mcp.example.com';
const ON = { SERVER_CARD: 'true', BASE_URL: BASE };
const CARD = '/mcp/server-card';
const CATALOG = '/.well-known/mcp/catalog.json';

/** Nobody listens there: a card is made of what the gateway knows itself. */
const FILE = {
  mcpServers: { wiki: { url: 'http://127.0.0.1:9/mcp' } },
  views: { research: { title: 'Research desk' } },
};

const start = async (env: Readonly<Record<string, string>> = ON) =>
  closeAfterTest(await startGateway({ env }));
const startWithServers = () => startForTest({ file: FILE, env: ON });

test('§32.1 server card: without SERVER_CARD=true there is neither card nor catalogue', async () => {
  const gateway = await startForTest({ file: FILE });
  for (const path of [CARD, '/mcp/wiki/server-card', CATALOG])
    expect((await gateway.request({ path })).status, path).toBe(404);
});

test('§32.1 server card: it says who the gateway is and where clients connect, without a token', async () => {
  const gateway = await start({ ...ON, SERVICE_DISPLAY_NAME: 'Acme tools' });
  const { status, headers, json } = await gateway.request({ path: CARD });
  expect([status, headers['content-type'], headers['cache-control']]).toEqual([
    200,
    'application/mcp-server-card+json',
    'public, max-age=3600',
  ]);
  expect(findCardProblems(json)).toEqual([]);
  const token = await gateway.issuer.sign({ aud: `${BASE}/mcp` });
  const discovered = await stateless(gateway, 'server/discover', {}, { token });
  const { supportedVersions, _meta: meta } = discovered.json.result;
  expect(json).toEqual({
    $schema: expect.any(String),
    name: 'com.example.mcp/postern',
    title: 'Acme tools',
    description: expect.any(String),
    version: meta['io.modelcontextprotocol/serverInfo'].version,
    websiteUrl: `${BASE}/`,
    remotes: [
      {
        type: 'streamable-http',
        url: `${BASE}/mcp`,
        supportedProtocolVersions: supportedVersions,
      },
    ],
  });
});

test('§32.1 server card: name, description and logo are settings', async () => {
  const gateway = await start({
    ...ON,
    SERVER_CARD_NAME: 'com.acme/tools',
    SERVER_CARD_DESCRIPTION: 'What Acme works with.',
    SERVICE_LOGO_URL: 'https://acme.com/logo.svg',
  });
  const { json } = await gateway.request({ path: CARD });
  expect(json).toMatchObject({
    name: 'com.acme/tools',
    description: 'What Acme works with.',
    icons: [{ src: 'https://acme.com/logo.svg' }],
  });
  expect(findCardProblems(json)).toEqual([]);
  const { entries } = (await gateway.request({ path: CATALOG })).json;
  expect(entries[0].identifier).toBe('urn:air:acme.com:tools');
});

test.each([
  ['http://localhost:3000', 'localhost/postern'],
  ['http://127.0.0.1:3000', '127.0.0.1/postern'],
  ['http://[::1]:3000', '--1/postern'],
  ['https://gw.example/tools', 'example.gw/postern'],
  [`https://${'a'.repeat(60)}.${'b'.repeat(60)}.${'c'.repeat(60)}.example`, expect.any(String)],
])('§32.1 server card: the name that follows from %s is one', async (baseUrl, name) => {
  const gateway = await startForTest({ file: FILE, env: { ...ON, BASE_URL: baseUrl } });
  const { json } = await gateway.request({ path: CARD });
  expect(json.name).toEqual(name);
  expect(findCardProblems(json)).toEqual([]);
  const named = await gateway.request({ path: '/mcp/research/server-card' });
  expect(findCardProblems(named.json)).toEqual([]);
});

test('§32.1 server card: a name as long as may be has room for that of a view', async () => {
  const gateway = await startForTest({
    file: { ...FILE, views: { [`v${'i'.repeat(31)}`]: { title: 'T'.repeat(100) } } },
    env: {
      ...ON,
      SERVER_CARD_NAME: `com.example/${'n'.repeat(148)}`,
      SERVICE_DISPLAY_NAME: 'N'.repeat(300),
    },
  });
  for (const path of [CARD, `/mcp/v${'i'.repeat(31)}/server-card`])
    expect(findCardProblems((await gateway.request({ path })).json), path).toEqual([]);
});

test('§32.1 server card: one of each server and view, for those who know its name', async () => {
  const gateway = await startWithServers();
  const [view, server, unknown] = await Promise.all(
    ['research', 'wiki', 'secret'].map((name) =>
      gateway.request({ path: `/mcp/${name}/server-card` }),
    ),
  );
  expect(view?.json).toMatchObject({
    name: 'com.example.mcp/postern.research',
    title: 'Research desk',
    remotes: [{ url: `${BASE}/mcp/research` }],
  });
  expect(server?.json).toMatchObject({
    name: 'com.example.mcp/postern.wiki',
    title: 'Postern: wiki',
    remotes: [{ url: `${BASE}/mcp/wiki` }],
  });
  for (const answer of [view, server]) expect(findCardProblems(answer?.json)).toEqual([]);
  expect(unknown?.status).toBe(404);
  const { json, text } = await gateway.request({ path: CATALOG });
  expect(json.entries).toHaveLength(1);
  expect(text).not.toMatch(/wiki|research/i);
  expect((await gateway.request({ path: CARD })).text).not.toMatch(/wiki|research/i);
});

test('§32.1 server card: that of a view comes and goes with it', async () => {
  const gateway = await startWithServers();
  const statusOf = async (name: string) =>
    (await gateway.request({ path: `/mcp/${name}/server-card` })).status;
  await gateway.reload({ ...FILE, views: { other: {} } });
  expect([await statusOf('research'), await statusOf('other')]).toEqual([404, 200]);
});

test('§32.2 catalogue: one entry, which leads to the card', async () => {
  const gateway = await start();
  const { headers, json } = await gateway.request({ path: CATALOG });
  expect(headers['content-type']).toBe('application/json');
  expect(json).toEqual({
    specVersion: 'draft',
    entries: [
      {
        identifier: 'urn:air:mcp.example.com:postern',
        displayName: 'Postern',
        type: 'application/mcp-server-card+json',
        url: `${BASE}${CARD}`,
      },
    ],
  });
});

test.each([CARD, CATALOG, '/mcp/wiki/server-card'])(
  '§32.2 %s: a page of any origin may read it, without credentials',
  async (path) => {
    const gateway = await startWithServers();
    for (const origin of ['https://elsewhere.example', BASE])
      for (const method of ['GET', 'OPTIONS', 'HEAD']) {
        const { status, headers } = await gateway.request({ method, path, headers: { origin } });
        expect(status).toBe(method === 'OPTIONS' ? 204 : 200);
        expect(headers).toMatchObject({
          'access-control-allow-origin': '*',
          'access-control-allow-methods': 'GET',
          'access-control-allow-headers': 'Content-Type',
        });
        expect(headers).not.toHaveProperty('access-control-allow-credentials');
      }
    const elsewhere = await gateway.request({
      method: 'POST',
      path: '/mcp',
      headers: { origin: 'https://elsewhere.example' },
      body: {},
    });
    expect(elsewhere.status).toBe(403);
  },
);

test.each([CARD, CATALOG, '/mcp/wiki/server-card'])(
  '§32.2 %s: who has it already is told so, and what is no GET is refused',
  async (path) => {
    const gateway = await startWithServers();
    const { etag = '' } = (await gateway.request({ path })).headers;
    const again = await gateway.request({ path, headers: { 'if-none-match': etag } });
    expect([again.status, again.text, again.headers.etag]).toEqual([304, '', etag]);
    expect(again.headers['cache-control']).toBe('public, max-age=3600');
    const posted = await gateway.request({ method: 'POST', path, body: {} });
    expect([posted.status, posted.headers.allow]).toEqual([405, 'GET, HEAD']);
  },
);

test('§32.2 an etag changes with the title of the view', async () => {
  const gateway = await startWithServers();
  const path = '/mcp/research/server-card';
  const { etag = '' } = (await gateway.request({ path })).headers;
  await gateway.reload({ ...FILE, views: { research: { title: 'Other desk' } } });
  const again = await gateway.request({ path, headers: { 'if-none-match': etag } });
  expect([again.status, again.json.title]).toEqual([200, 'Other desk']);
});

test('§32.1 server card: no server and no view can stand at its path', async () => {
  expect(
    await findProblems({ mcpServers: { 'Server Card': { url: 'https://a.example' } } }),
  ).toEqual([expect.stringMatching(/A server cannot be called server-card.*Rename it\./)]);
  expect(await findProblems({ views: { 'server-card': {} } })).toEqual([
    expect.stringMatching(/A view cannot be called server-card.*Rename it\./),
  ]);
});

test.each([
  ['SERVER_CARD_NAME', 'postern'],
  ['SERVER_CARD_NAME', 'com.example/a/b'],
  ['SERVER_CARD_NAME', `com.example/${'n'.repeat(149)}`],
  ['SERVER_CARD_DESCRIPTION', 'x'.repeat(101)],
  ['SERVER_CARD_DESCRIPTION', 'one\ntwo'],
  ['SERVER_CARD', 'yes'],
])('§32.1 %s: %j is refused, with what is allowed', (variable, value) => {
  expect(() => loadConfig({ AUTH_REQUIRED: 'false', [variable]: value })).toThrow(
    new RegExp(`^${variable}: .* It must be `),
  );
});
