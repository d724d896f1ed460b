// A view's path: its document, its tokens, what it is called, and real clients at it.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { expect, test } from 'vitest';
import { connect, createMemory } from '../../support/clients/sdk-1-client.ts';
import { SERVER_INFO, stateless } from '../../support/clients/stateless.ts';
import { startCollector } from '../../support/gateway/collector.ts';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { startService } from '../../support/gateway/service.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { BASE, MCP, startBroker } from '../../support/oauth/broker.ts';
import { parseServers, startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const DOCUMENTS = '/.well-known/oauth-protected-resource';
const RESEARCH = `${MCP}/research`;

/** Nobody listens there: what is tested here needs no server. */
const fileOf = (views: object) =>
  readFile({ mcpServers: { wiki: { url: 'http://127.0.0.1:9/mcp' } }, views });

const startBrokerWith = async (views: object = { research: { title: 'Research desk' } }) =>
  closeAfterTest(await startBroker({}, { file: await fileOf(views) }));

test('§25.1 RFC 9728: the document of a view names its URL and its title, and comes and goes with it', async () => {
  const { gateway } = await startBrokerWith();
  const all = await gateway.request({ path: `${DOCUMENTS}/mcp` });
  const one = await gateway.request({ path: `${DOCUMENTS}/mcp/research` });
  expect(one.json).toEqual({ ...all.json, resource: RESEARCH, resource_name: 'Research desk' });
  const refused = await gateway.request({ method: 'POST', path: '/mcp/research', body: {} });
  expect([refused.status, refused.headers['www-authenticate']]).toEqual([
    401,
    `Bearer resource_metadata="${BASE}${DOCUMENTS}/mcp/research"`,
  ]);
  await gateway.gateway.reload({ file: await fileOf({ other: {} }) });
  const statusOf = async (path: string) => (await gateway.request({ path })).status;
  expect(await statusOf(`${DOCUMENTS}/mcp/research`)).toBe(404);
  expect(await statusOf(`${DOCUMENTS}/mcp/other`)).toBe(200);
});

test('§25.1 RFC 8707: the URL of a view is a resource of ours, and an audience of tokens, as long as there is the view', async () => {
  const { gateway, logIn, steps } = await startBrokerWith();
  const client = await steps.register();
  const { access_token: token } = await logIn(client, { resource: RESEARCH });
  const statusAt = async (path: string) =>
    (
      await gateway.request({
        method: 'POST',
        path,
        body: INITIALIZE_REQUEST,
        headers: { authorization: `Bearer ${token}` },
      })
    ).status;
  expect(await statusAt('/mcp/research')).toBe(200);
  await gateway.gateway.reload({ file: await fileOf({ other: {} }) });
  expect(await statusAt('/mcp/research')).toBe(404);
  expect(await statusAt('/mcp/other')).toBe(401);
});

test('§25.1 views: a client is told the title, in both eras', async () => {
  const wiki = await serve({ tools: [buildTool('search')] });
  const gateway = await start({
    file: { mcpServers: { wiki: wiki.url }, views: { research: { title: 'Research desk' } } },
    view: 'research',
  });
  const { json } = await gateway.rpc(INITIALIZE_REQUEST);
  expect(json.result.serverInfo).toMatchObject({ name: 'postern', title: 'Research desk' });
  const listed = await stateless(gateway, 'tools/list');
  expect(listed.json.result._meta[SERVER_INFO]).toMatchObject({ title: 'Research desk' });
  const called = await stateless(gateway, 'tools/call', { name: 'wiki__search', arguments: {} });
  expect(called.json.result._meta[SERVER_INFO]).toMatchObject({ title: 'Research desk' });
  await gateway.reload({
    mcpServers: { wiki: wiki.url },
    views: { research: { title: 'Reading room' } },
  });
  const { json: again } = await gateway.rpc(INITIALIZE_REQUEST);
  expect(again.result.serverInfo.title).toBe('Reading room');
});

test('§25.1 views: a stateless client finds, lists and calls as one with a session does', async () => {
  const wiki = await serve({ tools: [buildTool('search'), buildTool('edit')] });
  const gateway = await start({
    file: { mcpServers: { wiki: wiki.url }, views: { research: { tools: ['wiki__search'] } } },
    view: 'research',
  });
  const { json } = await stateless(gateway, 'tools/list');
  expect(json.result.tools).toMatchObject([{ name: 'wiki__search' }]);
  const call = async (name: string) =>
    (await stateless(gateway, 'tools/call', { name, arguments: {} })).json;
  expect((await call('wiki__search')).result.content[0].text).toBe('ran search');
  expect((await call('wiki__edit')).error.code).toBe(-32602);
});

test('§25.1 views: the official client logs in at a view, lists eight tools of three servers and calls one', async () => {
  const wiki = await serve({ tools: ['search', 'read', 'edit'].map((name) => buildTool(name)) });
  const github = await serve({
    tools: ['search_code', 'search_issues', 'get_file', 'delete_repo'].map((name) =>
      buildTool(name),
    ),
  });
  const files = await serve({
    tools: ['read_file', 'list_directory', 'write_file', 'move_file'].map((name) =>
      buildTool(name),
    ),
  });
  const file = await parseServers({
    mcpServers: { wiki: wiki.url, github: github.url, files: files.url },
    views: {
      research: {
        tools: [
          'wiki__*',
          'github__search_*',
          'github__get_file',
          'files__read_file',
          'files__list_*',
        ],
      },
    },
  });
  const service = closeAfterTest(await startService({ deps: { file } }));
  const { client } = await connect(new URL(`${service.mcpUrl}/research`), createMemory());
  expect(client).toBeInstanceOf(Client);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([
    'wiki__search',
    'wiki__read',
    'wiki__edit',
    'github__search_code',
    'github__search_issues',
    'github__get_file',
    'files__read_file',
    'files__list_directory',
  ]);
  const called = await client.callTool({ name: 'github__get_file', arguments: {} });
  expect(called.content).toEqual([{ type: 'text', text: 'ran get_file' }]);
  await expect(client.callTool({ name: 'files__write_file', arguments: {} })).rejects.toThrow();
});

test('§25.1 views: spans and log lines say at which view a call came', async () => {
  const collector = closeAfterTest(await startCollector());
  const wiki = await serve({ tools: [buildTool('search')] });
  const gateway = await start({
    file: { mcpServers: { wiki: wiki.url }, views: { research: {} } },
    view: 'research',
    env: collector.env,
  });
  await stateless(gateway, 'tools/call', { name: 'wiki__search', arguments: {} });
  expect(gateway.log.filter(({ of }) => of === 'wiki__search')).toMatchObject([
    { path: '/mcp/research' },
  ]);
  await gateway.close();
  expect(collector.only('tools/call wiki__search').attributes).toMatchObject({
    'postern.view': 'research',
  });
});

test('§25.1 views: requests are counted by view', async () => {
  const wiki = await serve({ tools: [buildTool('search')] });
  const gateway = await start({
    file: { mcpServers: { wiki: wiki.url }, views: { research: {} } },
    view: 'research',
  });
  await stateless(gateway, 'tools/list');
  await stateless(gateway, 'tools/list');
  const { text } = await gateway.request({ path: '/metrics' });
  expect(text).toMatch(
    /^mcp_requests_total\{method="tools\/list",era="stateless",view="research"\} 2$/m,
  );
});
