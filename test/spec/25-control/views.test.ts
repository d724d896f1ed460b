// What a view serves, and what it keeps away.
import { expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const serveTools = (...names: string[]) => serve({ tools: names.map((name) => buildTool(name)) });

const builtIn = createLocalCatalog({
  tools: [
    defineTool({
      name: 'ping',
      description: '',
      inputSchema: { type: 'object' },
      run: () => ({ content: [{ type: 'text', text: 'built-in ping' }] }),
    }),
  ],
});

/** `wiki`, `github` and `files`, with the views given; clients come to the first. */
async function startViews(views: Readonly<Record<string, object>>, rest: object = {}) {
  const wiki = await serveTools('search', 'read', 'edit');
  const github = await serveTools('search_code', 'delete_repo', 'search_issues');
  const files = await serveTools('read_file', 'write_file');
  const file = {
    mcpServers: { wiki: wiki.url, github: github.url, files: files.url },
    views,
    ...rest,
  };
  const [view = ''] = Object.keys(views);
  return { wiki, github, files, file, gateway: await start({ file, view, builtIn }) };
}

test('§25.1 views: at /mcp/<view> are the tools that its patterns fit, under their names at /mcp, in the order of the patterns', async () => {
  const { gateway } = await startViews({
    research: { tools: ['github__search_*', 'wiki__*', 'files__read_file', 'ping'] },
  });
  expect(await gateway.listNames('tools/list')).toEqual([
    'github__search_code',
    'github__search_issues',
    'wiki__search',
    'wiki__read',
    'wiki__edit',
    'files__read_file',
    'ping',
  ]);
  const session = await gateway.open();
  for (const [name, text] of [
    ['github__search_code', 'ran search_code'],
    ['files__read_file', 'ran read_file'],
    ['ping', 'built-in ping'],
  ]) {
    const { json } = await gateway.call(session, 'tools/call', { name, arguments: {} });
    expect(json.result.content[0].text).toBe(text);
  }
});

test('§25.1 views: without "tools" all of its servers are there, in the order of "servers", and no other', async () => {
  const { gateway } = await startViews({ research: { servers: ['files', 'wiki'] } });
  expect(await gateway.listNames('tools/list')).toEqual([
    'files__read_file',
    'files__write_file',
    'wiki__search',
    'wiki__read',
    'wiki__edit',
  ]);
});

test.each([
  ['without "servers"', {}, true],
  ['with it', { servers: ['wiki'] }, false],
  ['with builtIn among them', { servers: ['wiki', 'builtIn'] }, true],
])('§25.1 views: the built-in tools are those of a view %s: %s', async (_, view, isThere) => {
  const { gateway } = await startViews({ research: view });
  const names = await gateway.listNames('tools/list');
  expect(names.includes('ping')).toBe(isThere);
  const { json } = await gateway.call(await gateway.open(), 'tools/call', { name: 'ping' });
  expect(json.error?.code).toBe(isThere ? undefined : -32602);
});

test('§25.1 views: [] is none', async () => {
  const { gateway } = await startViews({ research: { tools: [], prompts: [], resources: [] } });
  for (const list of ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']) {
    expect(await gateway.listNames(list)).toEqual([]);
  }
});

test('§25.1 views: what is not in a view is as unknown there as what nobody has, and no server hears of it', async () => {
  const { gateway, github, files } = await startViews({
    research: { servers: ['wiki', 'github'], tools: ['wiki__*', 'github__search_*'] },
  });
  const session = await gateway.open();
  const call = async (name: string) =>
    (await gateway.call(session, 'tools/call', { name, arguments: {} })).json.error;
  const unknown = await call('github__qqqqqqqqqqqqqqqqqqqq');
  const hidden = await call('github__delete_repo');
  expect(hidden.code).toBe(unknown.code);
  expect(hidden.message.replaceAll('github__delete_repo', 'X')).toBe(
    unknown.message.replaceAll('github__qqqqqqqqqqqqqqqqqqqq', 'X'),
  );
  expect((await call('files__write_file')).code).toBe(-32602);
  expect(github.count('tools/call')).toBe(0);
  expect(files.count('tools/call')).toBe(0);
});

test('§25.1 views: a name that is mistyped gets the nearest of the view, never one that is not in it', async () => {
  const { gateway } = await startViews({ research: { tools: ['wiki__read', 'wiki__search'] } });
  const session = await gateway.open();
  const messageOf = async (name: string) =>
    (await gateway.call(session, 'tools/call', { name })).json.error.message;
  expect(await messageOf('wiki__serch')).toContain('wiki__search');
  expect(await messageOf('files__writefile')).not.toContain('files__write_file');
});

test('§25.1 views: descriptions, instructions and title are those of the file', async () => {
  const wiki = await serve({ tools: [buildTool('search')], instructions: 'Ask the wiki.' });
  const file = {
    mcpServers: { wiki: wiki.url },
    views: {
      research: { describe: { wiki__search: 'Finds pages.' }, instructions: 'For research only.' },
      plain: {},
    },
  };
  const gateway = await start({ file, view: 'research' });
  expect(await gateway.list('tools/list')).toMatchObject([
    { name: 'wiki__search', description: 'Finds pages.' },
  ]);
  const { json } = await gateway.rpc({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'c', version: '1' },
    },
  });
  expect(json.result.instructions).toBe('For research only.');
  // What the file says of a view is of that view alone.
  const atAll = await start({ file, view: 'plain' });
  expect(await atAll.list('tools/list')).toMatchObject([{ description: 'Does search.' }]);
});

test('§25.1 views: without instructions of its own a view has those of the servers of which it has something', async () => {
  const wiki = await serve({ tools: [buildTool('search')], instructions: 'Ask the wiki.' });
  const files = await serve({ tools: [buildTool('read')], instructions: 'Ask for files.' });
  const other = await serve({ tools: [buildTool('do')], instructions: 'Ask the other.' });
  const gateway = await start({
    file: {
      mcpServers: { wiki: wiki.url, files: files.url, other: other.url },
      views: { research: { servers: ['wiki', 'files'], tools: ['wiki__*'] } },
    },
    view: 'research',
  });
  const { json } = await gateway.rpc({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'c', version: '1' },
    },
  });
  expect(json.result.instructions).toContain('Ask the wiki.');
  expect(json.result.instructions).not.toContain('files');
  expect(json.result.instructions).not.toContain('other');
});

test('§25.1 views: rules hold as at /mcp', async () => {
  const { gateway } = await startViews(
    { research: { tools: ['wiki__*', 'files__*'] } },
    { rules: [{ who: { groups: ['staff'] }, may: ['wiki__read', 'github__*'] }] },
  );
  const staff = await gateway.issuer.sign({ groups: ['staff'] });
  const session = await gateway.open({ token: staff });
  expect(await gateway.listNames('tools/list', session, staff)).toEqual(['wiki__read']);
  const call = async (name: string) =>
    (
      await gateway.rpc(
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } },
        { session, token: staff },
      )
    ).json;
  expect((await call('wiki__read')).result.content[0].text).toBe('ran read');
  expect((await call('wiki__search')).error.code).toBe(-32602);
  expect((await call('github__search_code')).error.code).toBe(-32602);
});

test('§25.1 views: a session belongs to the view that opened it', async () => {
  const { gateway, file } = await startViews({ research: {}, other: {} });
  const session = await gateway.open();
  const token = await gateway.issuer.sign();
  for (const [path, status] of [
    ['/mcp/research', 200],
    ['/mcp/other', 404],
    ['/mcp/wiki', 404],
    ['/mcp', 404],
  ] as const) {
    const answer = await gateway.request({
      method: 'POST',
      path,
      body: { jsonrpc: '2.0', id: 1, method: 'ping' },
      headers: { authorization: `Bearer ${token}`, 'mcp-session-id': session },
    });
    expect([path, answer.status]).toEqual([path, status]);
  }
  await gateway.reload({ ...file, views: { other: {} } });
  const { status } = await gateway.call(session, 'ping');
  expect(status).toBe(404);
});

test('§25.1 views: a reload adds, changes and takes away views, and tells clients that their lists changed', async () => {
  const { gateway, file } = await startViews({ research: { tools: ['wiki__read'] } });
  const session = await gateway.open();
  expect(await gateway.listNames('tools/list', session)).toEqual(['wiki__read']);
  await gateway.reload({ ...file, views: { research: { tools: ['files__*'] } } });
  expect(await gateway.listNames('tools/list', session)).toEqual([
    'files__read_file',
    'files__write_file',
  ]);
  await gateway.reload({ ...file, views: {} });
  expect((await gateway.call(session, 'tools/list')).status).toBe(404);
  await gateway.reload(file);
  expect(await gateway.listNames('tools/list')).toEqual(['wiki__read']);
});

test('§25.1 views: a server that is not of the view is not waited for, and its failure is none of the view', async () => {
  const never = new Promise(() => {});
  const wiki = await serveTools('search');
  const slow = await serve({
    answers: {
      'tools/list': () => never,
      'prompts/list': () => never,
      'resources/list': () => never,
      'resources/templates/list': () => never,
    },
  });
  const gateway = await start({
    file: {
      mcpServers: { slow: slow.url, wiki: wiki.url },
      views: { research: { servers: ['wiki'] } },
    },
    view: 'research',
  });
  const session = await gateway.open();
  for (const method of [
    'tools/list',
    'prompts/list',
    'resources/list',
    'resources/templates/list',
  ]) {
    expect((await gateway.call(session, method)).status).toBe(200);
  }
  const { json } = await gateway.call(session, 'tools/call', { name: 'wiki__search' });
  expect(json.result.content[0].text).toBe('ran search');
  expect((await gateway.call(session, 'tools/call', { name: 'slow__it' })).json.error.code).toBe(
    -32602,
  );
  const read = await gateway.call(session, 'resources/read', { uri: 'nothing://here' });
  expect(read.json.error.code).toBe(-32602);
}, 10_000);
