// §30.2: tools of apps: what the server learns of the client, whose tool an app means, and what models are not shown.
import { expect, test } from 'vitest';
import type { JsonObject } from '../../../src/platform/json.ts';
import { CLIENT_CAPABILITIES, stateless } from '../../support/clients/stateless.ts';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import {
  type CatalogGateway,
  startForTest as start,
} from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';
import { namesOf, startSearchedView } from '../../support/upstreams/searched-view.ts';

const APPS = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } };

const SHOW = buildTool('show', { _meta: { ui: { resourceUri: 'ui://clock/view' } } });
const FOR_APPS_META = { ui: { visibility: ['app'] } };
const FOR_APPS = buildTool('refresh', { _meta: FOR_APPS_META });
const FOR_MODELS = buildTool('tidy', { _meta: { ui: { visibility: ['model'] } } });
const CLOCK = { tools: [SHOW, FOR_APPS, FOR_MODELS, buildTool('now')] };

/** What a tool says, or why it is unknown, to a client of either era that shows apps. */
async function callAsApp(gateway: CatalogGateway, name: string, token?: string) {
  const { json } = await stateless(
    gateway,
    'tools/call',
    { name, arguments: {} },
    {
      meta: { [CLIENT_CAPABILITIES]: { extensions: APPS } },
      ...(token !== undefined && { token }),
    },
  );
  return json.error ? json.error.message : json.result.content[0].text;
}

const initializeWith = (capabilities: JsonObject) => ({
  ...INITIALIZE_REQUEST,
  params: { ...INITIALIZE_REQUEST.params, capabilities },
});

test('§30.2 an app calls tools by the names of its server, at /mcp and in views', async () => {
  const clock = await serve(CLOCK);
  const other = await serve({ tools: [buildTool('now'), buildTool('only')] });
  const file = {
    mcpServers: { clock: clock.url, other: other.url },
    views: { research: { servers: ['clock'] } },
  };
  for (const view of [undefined, 'research']) {
    const gateway = await start({ file, ...(view !== undefined && { view }) });
    await gateway.list('tools/list');
    expect(await callAsApp(gateway, 'refresh')).toBe('ran refresh');
    // The other server has a tool of that name, and no app that could mean it.
    expect(await callAsApp(gateway, 'now')).toBe('ran now');
    expect(await callAsApp(gateway, 'clock__now')).toBe('ran now');
    expect(await callAsApp(gateway, 'only')).toContain('Unknown tool: only');
    expect(await callAsApp(gateway, 'tidy')).toContain('Unknown tool: tidy');
  }
  expect(clock.count('tools/call')).toBe(6);
  expect(other.count('tools/call')).toBe(0);
});

test('§30.2 in a session it is the same, for clients that show apps alone', async () => {
  const clock = await serve(CLOCK);
  const gateway = await start({ file: { mcpServers: { clock: clock.url } } });
  const openWith = async (capabilities: JsonObject) => {
    const { headers } = await gateway.rpc(initializeWith(capabilities));
    return String(headers['mcp-session-id']);
  };
  const [showing, plain] = [await openWith({ extensions: APPS }), await openWith({})];
  await gateway.list('tools/list', showing);
  const shown = await gateway.call(showing, 'tools/call', { name: 'refresh' });
  expect(shown.json.result.content[0].text).toBe('ran refresh');
  const { json } = await gateway.call(plain, 'tools/call', { name: 'refresh' });
  expect(json.error.message).toContain('Unknown tool: refresh');
});

test('§30.2 a name that the apps of two servers have is unknown, unless the caller sees one of them alone', async () => {
  const one = await serve(CLOCK);
  const two = await serve(CLOCK);
  const mcpServers = { one: one.url, two: two.url };
  const open = await start({ file: { mcpServers } });
  await open.list('tools/list');
  expect(await callAsApp(open, 'refresh')).toContain('Unknown tool: refresh');
  const ruled = await start({
    file: { mcpServers, rules: [{ who: 'everyone', may: ['two__*'] }] },
  });
  await ruled.list('tools/list');
  expect(await callAsApp(ruled, 'refresh')).toBe('ran refresh');
  expect([one.count('tools/call'), two.count('tools/call')]).toEqual([0, 1]);
});

test('§30.2 what an app says to a tool of its server that the caller may not use, no other server hears', async () => {
  const victim = await serve(CLOCK);
  const evil = await serve(CLOCK);
  const gateway = await start({
    file: {
      mcpServers: { victim: victim.url, evil: evil.url },
      rules: [{ who: 'everyone', may: ['victim__show', 'evil__*'] }],
    },
  });
  await gateway.list('tools/list');
  expect(await callAsApp(gateway, 'refresh')).toContain('Unknown tool: refresh');
  expect([victim.count('tools/call'), evil.count('tools/call')]).toEqual([0, 0]);
});

test('§30.2 a server that has not said yet what it has may be the one that an app means', async () => {
  const victim = await serve(CLOCK);
  const evil = await serve(CLOCK);
  const auth = { type: 'identity' };
  const gateway = await start({
    file: { mcpServers: { victim: { url: victim.url, auth }, evil: { url: evil.url, auth } } },
  });
  expect(await callAsApp(gateway, 'evil__now')).toBe('ran now');
  expect(await callAsApp(gateway, 'refresh')).toContain('Unknown tool: refresh');
  expect([victim.count('tools/call'), evil.count('tools/call')]).toEqual([0, 1]);
});

test('§30.2 rules hold for what an app calls by either name', async () => {
  const clock = await serve(CLOCK);
  const rules = [{ who: 'everyone', may: ['clock__show', 'clock__now'] }];
  const gateway = await start({ file: { mcpServers: { clock: clock.url }, rules } });
  await gateway.list('tools/list');
  expect(await callAsApp(gateway, 'now')).toBe('ran now');
  for (const name of ['refresh', 'clock__refresh']) {
    expect(await callAsApp(gateway, name)).toContain(`Unknown tool: ${name}`);
  }
  expect(clock.count('tools/call')).toBe(1);
});

test('§30.2 servers learn that the client shows apps, of which types', async () => {
  const clock = await serve(CLOCK);
  const file = { mcpServers: { clock: { url: clock.url, auth: { type: 'identity' } } } };
  const gateway = await start({ file });
  const { headers } = await gateway.rpc(initializeWith({ extensions: APPS }));
  const session = String(headers['mcp-session-id']);
  await gateway.call(session, 'tools/call', { name: 'clock__show' });
  const declared = clock.requests
    .filter(({ method }) => method === 'initialize')
    .map(({ params }) => Object(params.capabilities).extensions);
  expect(declared).toContainEqual(APPS);
});

test('§30.2 what is for apps alone is listed as it is, and found by no search', async () => {
  const clock = await serve(CLOCK);
  const file = { mcpServers: { clock: clock.url } };
  const gateway = await start({ file });
  const tools = await gateway.list('tools/list');
  expect(tools.find(({ name }) => name === 'clock__refresh')._meta).toEqual(FOR_APPS_META);
  const searched = await startSearchedView({ file });
  const [search] = await searched.list('tools/list');
  expect(search.description).toContain('clock (3 tools: show, tidy, now)');
  expect(namesOf(await searched.search({ query: 'refresh', limit: 20 }))).not.toContain(
    'clock__refresh',
  );
  expect((await searched.describe(['clock__refresh'])).hint).toContain('Unknown: "clock__refresh"');
  // The app itself calls it by its name.
  const { json } = await searched.callTool('clock__refresh');
  expect(json.result.content[0].text).toBe('ran refresh');
});
