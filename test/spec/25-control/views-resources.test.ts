// Resources, templates, completion and subscriptions of a view.
import { expect, test } from 'vitest';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const resource = (uri: string) => ({ uri, name: uri });

async function startWithResources(view: object, rest: object = {}) {
  const wiki = await serve({
    tools: [buildTool('link')],
    resources: [resource('wiki://start'), resource('wiki://secret'), resource('config://it')],
    resourceTemplates: [
      { uriTemplate: 'wiki://page/{id}', name: 'page' },
      { uriTemplate: 'wiki://draft/{id}', name: 'draft' },
    ],
    capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} },
  });
  const files = await serve({ resources: [resource('config://it'), resource('files://a')] });
  const file = {
    mcpServers: { wiki: wiki.url, files: files.url },
    views: { research: view },
    ...rest,
  };
  const gateway = await start({ file, view: 'research', env: { MCP_STREAMS: 'true' } });
  const session = await gateway.open();
  return {
    wiki,
    files,
    gateway,
    session,
    read: async (uri: string) => (await gateway.call(session, 'resources/read', { uri })).json,
  };
}

test('§25.1 views: resources and templates are those that the patterns fit, by their URIs at /mcp', async () => {
  const { gateway, read } = await startWithResources({
    servers: ['files', 'wiki'],
    resources: ['wiki://start', 'wiki://page/*', 'files+config://it'],
  });
  expect(await gateway.listNames('resources/list')).toEqual(['wiki://start', 'files+config://it']);
  expect(await gateway.listNames('resources/templates/list')).toEqual(['wiki://page/{id}']);
  expect((await read('wiki://start')).result.contents[0].text).toBe('read wiki://start');
  expect((await read('files+config://it')).result.contents[0].text).toBe('read config://it');
  expect((await read('wiki://page/7')).result.contents[0].text).toBe('read wiki://page/7');
  for (const uri of ['wiki://secret', 'wiki://draft/7', 'config://it', 'files://a']) {
    expect([uri, (await read(uri)).error?.code]).toEqual([uri, -32602]);
  }
});

test('§25.1 views: a template that is named has the URIs that fit it, and no listed one that is not named', async () => {
  const { read } = await startWithResources({
    resources: ['wiki://{id}', 'wiki://page/{id}'],
  });
  expect((await read('wiki://page/7')).result.contents[0].text).toBe('read wiki://page/7');
  expect((await read('wiki://draft/7')).error.code).toBe(-32602);
});

test('§25.1 views: of two servers with the same URI it is that of the first at /mcp, though only the second is in the view', async () => {
  const { gateway, read } = await startWithResources({ servers: ['files'] });
  await expect
    .poll(() => gateway.listNames('resources/list'))
    .toEqual(['files://a', 'files+config://it']);
  expect((await read('files+config://it')).result.contents[0].text).toBe('read config://it');
  expect((await read('config://it')).error.code).toBe(-32602);
});

test('§25.1 views: what a result links to can be read only where the patterns fit it', async () => {
  const { wiki, gateway, session, read } = await startWithResources({
    resources: ['linked://good/*'],
  });
  const link = (uri: string) => ({ type: 'resource_link', uri, name: 'it' });
  wiki.listing.answers = {
    'tools/call': () => ({
      result: { content: [link('linked://good/1'), link('linked://bad/1')] },
    }),
  };
  await gateway.call(session, 'tools/call', { name: 'wiki__link' });
  expect((await read('linked://good/1')).result.contents[0].text).toBe('read linked://good/1');
  expect((await read('linked://bad/1')).error.code).toBe(-32602);
  expect(wiki.requests.map(({ params }) => params.uri)).not.toContain('linked://bad/1');
});

test('§25.1 views: URIs are compared decoded, so that no spelling leads past a pattern', async () => {
  const { wiki, read } = await startWithResources({ resources: ['wiki://page/a*'] });
  wiki.listing.resourceTemplates = [{ uriTemplate: 'wiki://{+path}', name: 'any' }];
  for (const uri of [
    'wiki://page/%2e%2e/secret',
    'wiki://page/a/../../secret',
    'wiki://%70age/b',
  ]) {
    expect([uri, (await read(uri)).error?.code]).toEqual([uri, -32602]);
  }
  expect(wiki.count('resources/read')).toBe(0);
});

test('§25.1 views: what is not in a view is neither completed nor subscribed to', async () => {
  const { wiki, gateway, session } = await startWithResources({
    resources: ['wiki://start', 'wiki://page/*'],
  });
  const complete = async (uri: string) =>
    (
      await gateway.call(session, 'completion/complete', {
        ref: { type: 'ref/resource', uri },
        argument: { name: 'id', value: '' },
      })
    ).json;
  expect((await complete('wiki://page/{id}')).result.completion.values).toHaveLength(1);
  expect((await complete('wiki://draft/{id}')).error.code).toBe(-32602);
  const subscribe = async (uri: string) =>
    (await gateway.call(session, 'resources/subscribe', { uri })).json;
  expect((await subscribe('wiki://start')).result).toEqual({});
  expect((await subscribe('wiki://secret')).error.code).toBe(-32602);
  const asked = wiki.requests.filter(({ method }) => method === 'resources/subscribe');
  expect(asked.map(({ params }) => params.uri)).not.toContain('wiki://secret');
});
