// Which paths are one: a slash behind an MCP endpoint, and the path of BASE_URL.
import { describe, expect, test } from 'vitest';
import { INITIALIZE_REQUEST, type TestGateway } from '../../support/gateway/gateway.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { useShared } from '../../support/lifetimes.ts';
import { type Broker, startBroker } from '../../support/oauth/broker.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';

/** Nobody listens there: what is tested here needs no server. */
const WIKI = { url: 'http://127.0.0.1:9/mcp' };

const start = async (env: Readonly<Record<string, string>> = {}) =>
  startBroker(
    { METRICS_ENABLED: 'true', SERVER_CARD: 'true', ...env },
    { file: await readFile({ mcpServers: { wiki: WIKI }, views: { desk: { tools: ['*'] } } }) },
  );

const initialize = async (
  { gateway, sign }: Broker,
  path: string,
  aud = `${gateway.baseUrl}/mcp`,
) =>
  gateway.request({
    method: 'POST',
    path,
    body: INITIALIZE_REQUEST,
    headers: { authorization: `Bearer ${await sign({ aud })}` },
  });

const getStatus = async (gateway: TestGateway, path: string) =>
  (await gateway.request({ path })).status;

describe('a slash behind an MCP endpoint', () => {
  const broker = useShared(() => start());

  test.each([{ path: '/mcp' }, { path: '/mcp/wiki' }, { path: '/mcp/desk' }])(
    '§4.1 $path/ is $path: a session of one goes on at the other',
    async ({ path }) => {
      const opened = await initialize(broker, `${path}/`);
      expect(opened.status).toBe(200);
      const session = opened.headers['mcp-session-id'] ?? '';
      for (const [body, at] of [
        [{ jsonrpc: '2.0', id: 2, method: 'ping' }, path],
        [{ jsonrpc: '2.0', id: 3, method: 'ping' }, `${path}/`],
      ] as const) {
        const answer = await broker.gateway.request({
          method: 'POST',
          path: at,
          body,
          headers: { authorization: `Bearer ${await broker.sign()}`, 'mcp-session-id': session },
        });
        expect([at, answer.status, answer.json.result]).toEqual([at, 200, {}]);
      }
      const ended = await broker.gateway.request({
        method: 'DELETE',
        path: `${path}/`,
        headers: { authorization: `Bearer ${await broker.sign()}`, 'mcp-session-id': session },
      });
      expect(ended.status).toBe(204);
    },
  );

  test('§4.1 a session of /mcp/wiki/ is none of /mcp/', async () => {
    const { headers } = await initialize(broker, '/mcp/wiki/');
    const { status } = await broker.gateway.request({
      method: 'POST',
      path: '/mcp/',
      body: { jsonrpc: '2.0', id: 2, method: 'ping' },
      headers: {
        authorization: `Bearer ${await broker.sign()}`,
        'mcp-session-id': headers['mcp-session-id'] ?? '',
      },
    });
    expect(status).toBe(404);
  });

  test.each([{ path: '/mcp' }, { path: '/mcp/wiki' }, { path: '/mcp/desk' }])(
    '§5.6 the 401 of $path/ is that of $path, and so is the document where its client looks',
    async ({ path }) => {
      const { gateway } = broker;
      for (const method of ['POST', 'GET', 'DELETE']) {
        const [with_, without] = await Promise.all(
          [`${path}/`, path].map((at) => gateway.request({ method, path: at })),
        );
        expect(with_?.status).toBe(401);
        expect(with_?.headers['www-authenticate']).toBe(without?.headers['www-authenticate']);
        expect(with_?.headers['www-authenticate']).toContain(
          `/.well-known/oauth-protected-resource${path}"`,
        );
      }
      const documents = await Promise.all(
        [`${path}/`, path].map((at) =>
          gateway.request({ path: `/.well-known/oauth-protected-resource${at}` }),
        ),
      );
      expect(documents[0]?.json.resource).toBe(`${gateway.baseUrl}${path}`);
      expect(documents[0]?.json).toEqual(documents[1]?.json);
    },
  );

  test('§4.11 it is counted as what it is', async () => {
    const labels = { route: '/mcp', method: 'POST', status_code: '200' };
    const before = (await seriesOf(broker.gateway, 'http_requests_total', labels)) ?? 0;
    await initialize(broker, '/mcp/');
    expect(await seriesOf(broker.gateway, 'http_requests_total', labels)).toBe(before + 1);
    const { text } = await broker.gateway.request({ path: '/metrics' });
    expect(text).not.toContain('route="/mcp/"');
  });

  test.each([
    '//mcp',
    '//mcp/',
    '/mcp//',
    '/mcp///',
    '/%6dcp',
    '/%6dcp/',
    '/mcp%2f',
    '/mcp/%2f',
    '/mcp/wiki//',
    '/mcp//wiki/',
    '/mcp/WIKI/',
    '/mcp/unknown/',
    '/MCP/',
    '/mcp;/',
    '/health/',
    '/oauth/token/',
    '/metrics/',
    '/.well-known/oauth-protected-resource//mcp/',
    '/.well-known/oauth-protected-resource/mcp//',
  ])('§4.1 %s leads nowhere, with a token or without', async (path) => {
    for (const method of ['GET', 'POST']) {
      expect((await broker.gateway.request({ method, path })).status).toBe(404);
    }
    expect((await initialize(broker, path)).status).toBe(404);
  });
});

describe('BASE_URL with a path', () => {
  const BASE_URL = 'https://gw.example/tools/gateway';
  const broker = useShared(() => start({ BASE_URL }));

  test.each([
    ['', BASE_URL],
    ['/mcp', `${BASE_URL}/mcp`],
    ['/mcp/', `${BASE_URL}/mcp`],
    ['/mcp/wiki', `${BASE_URL}/mcp/wiki`],
    ['/mcp/wiki/', `${BASE_URL}/mcp/wiki`],
    ['/mcp/desk', `${BASE_URL}/mcp/desk`],
  ])(
    '§4.9 the document of <path>%s is wherever requests for it come to',
    async (path, resource) => {
      for (const at of [
        `/.well-known/oauth-protected-resource/tools/gateway${path}`,
        `/.well-known/oauth-protected-resource${path}`,
        `/tools/gateway/.well-known/oauth-protected-resource${path}`,
      ]) {
        const { status, json } = await broker.gateway.request({ path: at });
        expect([at, status, json.resource]).toEqual([at, 200, resource]);
      }
    },
  );

  test.each([
    '/.well-known/oauth-authorization-server/tools/gateway',
    '/.well-known/openid-configuration/tools/gateway',
    '/tools/gateway/.well-known/openid-configuration',
    '/tools/gateway/.well-known/oauth-authorization-server',
    '/.well-known/oauth-authorization-server',
    '/.well-known/openid-configuration',
  ])('§4.10 %s is the document of the authorization server', async (path) => {
    const { status, json } = await broker.gateway.request({ path });
    expect([status, json.issuer]).toEqual([200, BASE_URL]);
  });

  test.each(['', '/tools/gateway'])(
    '§4.1 all of it is served below "%s": endpoints, pages and probes',
    async (prefix) => {
      const { gateway } = broker;
      const refused = await gateway.request({
        method: 'POST',
        path: `${prefix}/mcp/wiki`,
        body: {},
      });
      expect(refused.headers['www-authenticate']).toContain(
        `"${BASE_URL}/.well-known/oauth-protected-resource/mcp/wiki"`,
      );
      expect((await initialize(broker, `${prefix}/mcp`)).status).toBe(200);
      expect((await initialize(broker, `${prefix}/mcp/desk/`)).status).toBe(200);
      for (const path of ['/health', '/health/ready', '/', '/mcp/server-card']) {
        const status = await getStatus(gateway, prefix + path);
        expect([path, status]).toEqual([path, 200]);
      }
      const { status } = await gateway.request({
        method: 'POST',
        path: `${prefix}/oauth/register`,
        body: { redirect_uris: ['http://localhost:1/callback'] },
      });
      expect(status).toBe(201);
    },
  );

  test('§4.11 metrics have one path: a proxy that removes the path closes it by one name', async () => {
    expect(await getStatus(broker.gateway, '/metrics')).toBe(200);
    expect(await getStatus(broker.gateway, '/tools/gateway/metrics')).toBe(404);
  });

  test.each([
    '/tools/gateway//mcp',
    '/tools/gateway/tools/gateway/mcp',
    '/tools//gateway/mcp',
    '/tools/gateway%2fmcp',
    '/tools/gatewaymcp',
    '/tools/gateway2/mcp',
    '/tools/mcp',
    '/TOOLS/gateway/mcp',
    '/tools/gateway/%6dcp',
    '/.well-known/oauth-protected-resource/other/mcp',
    '/.well-known/oauth-authorization-server/tools/gateway/mcp',
    '/.well-known/mcp/catalog.json/tools/gateway',
  ])('§4.1 %s leads nowhere', async (path) => {
    expect((await initialize(broker, path)).status).toBe(404);
    expect(await getStatus(broker.gateway, path)).toBe(404);
  });

  test('§4.1 a path that begins as those of the gateway do hides none of them', async () => {
    const base = 'https://gw.example/mcp/wiki';
    const below = await start({ BASE_URL: base });
    try {
      expect((await initialize(below, '/mcp/wiki')).status).toBe(200);
      expect((await initialize(below, '/mcp/wiki/mcp')).status).toBe(200);
      const { json } = await below.gateway.request({
        path: '/.well-known/oauth-protected-resource/mcp/wiki/mcp/wiki',
      });
      expect(json.resource).toBe(`${base}/mcp/wiki`);
    } finally {
      await below.close();
    }
  });
});
