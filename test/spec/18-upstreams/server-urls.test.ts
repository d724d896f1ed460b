import { describe, expect, test } from 'vitest';
import { INITIALIZE_REQUEST, startGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { BASE, MCP, startBroker } from '../../support/oauth/broker.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';

const DOCUMENTS = '/.well-known/oauth-protected-resource';
const WIKI = `${MCP}/wiki`;

/** Nobody listens there: what is tested here needs no server. */
const fileOf = (...names: readonly string[]) =>
  readFile({
    mcpServers: Object.fromEntries(names.map((name) => [name, { url: 'http://127.0.0.1:9/mcp' }])),
  });

const startBrokerWith = async (env: Readonly<Record<string, string>> = {}) =>
  closeAfterTest(await startBroker(env, { file: await fileOf('wiki', 'files') }));

describe('the document of a server', () => {
  test('§18.2 RFC 9728: names the URL of the server as its resource, and is cacheable', async () => {
    const { gateway } = await startBrokerWith();
    const all = await gateway.request({ path: `${DOCUMENTS}/mcp` });
    const one = await gateway.request({ path: `${DOCUMENTS}/mcp/wiki` });
    expect(one.status).toBe(200);
    expect(one.json).toEqual({ ...all.json, resource: WIKI });
    expect(one.headers['cache-control']).toBe('public, max-age=300');
  });

  test.each([
    { path: `${DOCUMENTS}/mcp/unknown` },
    { path: `${DOCUMENTS}/mcp/WIKI` },
    { path: `${DOCUMENTS}/mcp/wiki//` },
    { path: `${DOCUMENTS}/mcp/w%69ki` },
    { path: `${DOCUMENTS}/mcp//` },
    { path: `${DOCUMENTS}/wiki` },
    { path: '/mcp/wiki/.well-known/oauth-protected-resource' },
  ])('§18.2 $path: 404', async ({ path }) => {
    const { gateway } = await startBrokerWith();
    expect((await gateway.request({ path })).status).toBe(404);
  });

  test('§18.2 comes and goes with its server', async () => {
    const { gateway } = await startBrokerWith();
    const getStatus = async () => (await gateway.request({ path: `${DOCUMENTS}/mcp/new` })).status;
    expect(await getStatus()).toBe(404);
    await gateway.gateway.reload({ file: await fileOf('wiki', 'new') });
    expect(await getStatus()).toBe(200);
    await gateway.gateway.reload({ file: await fileOf('wiki') });
    expect(await getStatus()).toBe(404);
  });

  test('§18.2 without a configuration file there is none', async () => {
    const gateway = closeAfterTest(await startGateway());
    for (const method of ['GET', 'POST']) {
      const { status } = await gateway.request({ method, path: `${DOCUMENTS}/mcp/wiki` });
      expect(status).toBe(404);
    }
  });
});

describe('the 401 of a server', () => {
  const ASKED = [
    { what: 'POST', method: 'POST', body: INITIALIZE_REQUEST, headers: {} },
    {
      what: 'POST with a bad token',
      method: 'POST',
      body: INITIALIZE_REQUEST,
      headers: { authorization: 'Bearer x' },
    },
    { what: 'GET', method: 'GET', headers: {} },
    { what: 'DELETE', method: 'DELETE', headers: {} },
  ];

  test.each(ASKED)(
    '§18.2 broker mode: $what: names the document of the server',
    async ({ what, ...asked }) => {
      const { gateway } = await startBrokerWith();
      const { status, headers } = await gateway.request({ path: '/mcp/wiki', ...asked });
      expect([what, status]).toEqual([what, 401]);
      expect(headers['www-authenticate']).toBe(
        `Bearer resource_metadata="${BASE}${DOCUMENTS}/mcp/wiki"`,
      );
      const { status: found } = await gateway.request({ path: `${DOCUMENTS}/mcp/wiki` });
      expect(found).toBe(200);
    },
  );

  test.each(ASKED)(
    '§18.2 proxy mode: $what: names the one document that there is',
    async ({ what, ...asked }) => {
      const gateway = closeAfterTest(await startGateway({ deps: { file: await fileOf('wiki') } }));
      const { status, headers } = await gateway.request({ path: '/mcp/wiki', ...asked });
      expect([what, status]).toEqual([what, 401]);
      expect(headers['www-authenticate']).toBe(
        `Bearer resource_metadata="${gateway.baseUrl}${DOCUMENTS}"`,
      );
    },
  );

  test('§18.2 broker mode: /mcp names its own document', async () => {
    const { gateway } = await startBrokerWith();
    const { headers } = await gateway.request({ method: 'POST', path: '/mcp', body: {} });
    expect(headers['www-authenticate']).toBe(`Bearer resource_metadata="${BASE}${DOCUMENTS}/mcp"`);
  });

  test('§18.2 an unknown server: 404, and no challenge', async () => {
    const { gateway } = await startBrokerWith();
    const { status, headers } = await gateway.request({
      method: 'POST',
      path: '/mcp/unknown',
      body: {},
    });
    expect([status, headers['www-authenticate']]).toEqual([404, undefined]);
  });
});

describe('the server as a resource', () => {
  test.each([WIKI, `${WIKI}/`])(
    '§18.2 RFC 8707: resource=%s is ours, and a token for it serves that server alone',
    async (resource) => {
      const { gateway, steps } = await startBrokerWith();
      const client = await steps.register();
      const { json } = await steps.redeem(client, await steps.logIn(client, { resource }), {
        resource,
      });
      const statusAt = async (path: string) =>
        (
          await gateway.request({
            method: 'POST',
            path,
            body: INITIALIZE_REQUEST,
            headers: { authorization: `Bearer ${json.access_token}` },
          })
        ).status;
      expect(await statusAt('/mcp/wiki')).toBe(200);
      expect(await statusAt('/mcp')).toBe(401);
      const { status } = await steps.refresh(client, json.refresh_token, { resource });
      expect(status).toBe(200);
    },
  );

  test.each([
    { resource: `${MCP}/unknown` },
    { resource: `${MCP}/wiki/x` },
    { resource: `${MCP}/wiki?x` },
    { resource: `${MCP}//wiki` },
    { resource: 'https://gw.example.evil/mcp/wiki' },
  ])('§18.2 RFC 8707: resource=$resource is not ours', async ({ resource }) => {
    const { steps } = await startBrokerWith();
    const client = await steps.register();
    const { status, json } = await steps.authorize(client, { resource });
    expect([status, json.error]).toEqual([400, 'invalid_target']);
  });
});

describe('the server as an audience', () => {
  const startProxyWith = (env: Readonly<Record<string, string>> = {}) =>
    startBrokerWith({ OAUTH_MODE: 'proxy', ...env });

  test.each([
    { what: 'a server', aud: WIKI, env: {}, status: 200 },
    { what: 'a list with a server', aud: ['https://other.example', WIKI], env: {}, status: 200 },
    { what: 'a server with a slash', aud: `${WIKI}/`, env: {}, status: 401 },
    { what: 'an unknown server', aud: `${MCP}/unknown`, env: {}, status: 401 },
    { what: 'an object', aud: { [WIKI]: 1 }, env: {}, status: 401 },
    { what: 'a list in a list', aud: [[WIKI]], env: {}, status: 401 },
    { what: 'a server, with OIDC_AUDIENCE', aud: WIKI, env: { OIDC_AUDIENCE: MCP }, status: 401 },
  ])('§18.2 a token whose aud is $what: $status', async ({ aud, env, status }) => {
    const { gateway, sign } = await startProxyWith(env);
    const token = await sign({ aud });
    for (const path of ['/mcp', '/mcp/wiki']) {
      const answer = await gateway.request({
        method: 'POST',
        path,
        body: INITIALIZE_REQUEST,
        headers: { authorization: `Bearer ${token}` },
      });
      expect(answer.status).toBe(status);
    }
  });

  test('§18.2 a server that goes takes its audience with it', async () => {
    const { gateway, sign } = await startProxyWith();
    const token = await sign({ aud: WIKI });
    expect((await gateway.rpc(INITIALIZE_REQUEST, { token })).status).toBe(200);
    await gateway.gateway.reload({ file: await fileOf('files') });
    const { status, json } = await gateway.rpc(INITIALIZE_REQUEST, { token });
    expect([status, json.error.data.reason]).toEqual([401, 'invalid_audience']);
  });
});
