// How clients call what servers have.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createLocalCatalog, definePrompt, defineTool } from '../../../src/index.ts';
import { LISTING_CONTEXT } from '../../../src/mcp/catalog/own-catalog.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const serveTools = (...names: string[]) => serve({ tools: names.map((name) => buildTool(name)) });

const builtIn = createLocalCatalog({
  tools: ['ping', 'a__own'].map((name) =>
    defineTool({
      name,
      description: '',
      inputSchema: { type: 'object' },
      run: () => ({ content: [{ type: 'text', text: `built-in ${name}` }] }),
    }),
  ),
  prompts: [
    definePrompt({
      name: 'greet',
      description: '',
      get: () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'built-in' } }] }),
    }),
  ],
});

test('§18.2 names: tools and prompts of all servers are under one URL, each with the name of its server', async () => {
  const github = await serve({ tools: [buildTool('search')], prompts: [{ name: 'review' }] });
  const wiki = await serveTools('search', 'edit');
  const gateway = await start({ file: { mcpServers: { github: github.url, wiki: wiki.url } } });
  expect(await gateway.listNames('tools/list')).toEqual([
    'github__search',
    'wiki__search',
    'wiki__edit',
  ]);
  expect(await gateway.listNames('prompts/list')).toEqual(['github__review']);

  const session = await gateway.open();
  const called = await gateway.call(session, 'tools/call', { name: 'wiki__edit', arguments: {} });
  expect(called.json.result.content[0].text).toBe('ran edit');
  const got = await gateway.call(session, 'prompts/get', { name: 'github__review' });
  expect(got.json.result.messages[0].content.text).toBe('got review');
});

test('§18.2 names: separator and prefix come from the file; none leaves names as they are', async () => {
  const one = await serveTools('search');
  const other = await serveTools('edit');
  const file = {
    separator: '.',
    mcpServers: { one: { url: one.url, prefix: 'gh' }, other: { url: other.url, prefix: '' } },
  };
  const gateway = await start({ file });
  expect(await gateway.listNames('tools/list')).toEqual(['gh.search', 'edit']);
  const session = await gateway.open();
  const { json } = await gateway.call(session, 'tools/call', { name: 'edit' });
  expect(json.result.content[0].text).toBe('ran edit');
});

test('§18.2 names: one of more than 64 characters is cut, ends in its hash, and can be called', async () => {
  const long = 'x'.repeat(80);
  const server = await serveTools(long, `${long}y`);
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const hash = createHash('sha256').update(`a__${long}`).digest('hex').slice(0, 8);
  const [first = '', second = ''] = await gateway.listNames('tools/list');
  expect(first).toBe(`a__${'x'.repeat(52)}_${hash}`);
  expect([first.length, second.length]).toEqual([64, 64]);
  expect(second).not.toBe(first);
  const session = await gateway.open();
  const { json } = await gateway.call(session, 'tools/call', { name: second });
  expect(json.result.content[0].text).toBe(`ran ${long}y`);
});

test('§18.2 names: the built-in catalogue is first and has no prefix; "builtIn": false takes it away', async () => {
  const server = await serveTools('search');
  const file = { mcpServers: { a: server.url } };
  const gateway = await start({ file, builtIn });
  expect(await gateway.listNames('tools/list')).toEqual(['ping', 'a__own', 'a__search']);
  const session = await gateway.open();
  const { json } = await gateway.call(session, 'tools/call', { name: 'ping' });
  expect(json.result.content[0].text).toBe('built-in ping');
  const prompt = await gateway.call(session, 'prompts/get', { name: 'greet' });
  expect(prompt.json.result.messages[0].content.text).toBe('built-in');

  await gateway.reload({ ...file, builtIn: false });
  expect(await gateway.listNames('tools/list', session)).toEqual(['a__search']);
  const gone = await gateway.call(session, 'tools/call', { name: 'ping' });
  expect(gone.json.error.code).toBe(-32602);
});

test('§18.2 names: a built-in catalogue whose list changes has a name for as long as it lists it', async () => {
  const server = await serveTools('ping');
  let items = (await builtIn.listTools(undefined, LISTING_CONTEXT)).items;
  const changing = { ...builtIn, listTools: async () => ({ items }) };
  const gateway = await start({
    file: { mcpServers: { a: { url: server.url, prefix: '' } } },
    builtIn: changing,
  });
  const session = await gateway.open();
  const ping = async () =>
    (await gateway.call(session, 'tools/call', { name: 'ping' })).json.result.content[0].text;
  expect(await ping()).toBe('built-in ping');
  items = [];
  expect(await ping()).toBe('ran ping');
});

test('§18.2 collisions: the earlier in order has the name; the later one is hidden, with one warning', async () => {
  const one = await serveTools('ping', 'search');
  const other = await serveTools('search', 'edit');
  const file = {
    mcpServers: { one: { url: one.url, prefix: '' }, other: { url: other.url, prefix: '' } },
  };
  const gateway = await start({ file, builtIn });
  for (let time = 0; time < 2; time += 1) {
    expect(await gateway.listNames('tools/list')).toEqual(['ping', 'a__own', 'search', 'edit']);
  }
  const session = await gateway.open();
  const search = await gateway.call(session, 'tools/call', { name: 'search' });
  expect(search.json.result.content[0].text).toBe('ran search');
  expect([one.count('tools/call'), other.count('tools/call')]).toEqual([1, 0]);
  const ping = await gateway.call(session, 'tools/call', { name: 'ping' });
  expect(ping.json.result.content[0].text).toBe('built-in ping');
  const warnings = gateway
    .lines()
    .map(({ msg }) => msg)
    .filter((msg) => msg.includes('is hidden'));
  expect(warnings).toEqual([
    'Server one: tool "ping" is hidden: the built-in catalogue has that name, too.',
    'Server other: tool "search" is hidden: server one has that name, too.',
  ]);
});

test('§18.2 collisions: two replicas agree, whichever server answers them first', async () => {
  const names = ['search', 'edit', 'github__search'];
  const slow = await serveTools(...names);
  const fast = await serveTools(...names, 'more');
  const github = await serveTools('search');
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const file = {
    mcpServers: {
      slow: { url: slow.url, prefix: '' },
      fast: { url: fast.url, prefix: '' },
      github: github.url,
    },
  };
  const early = await start({ file });
  const listed = await early.listNames('tools/list');
  slow.listing.answers = {
    'tools/list': async () => {
      await released;
      return { result: { tools: slow.listing.tools } };
    },
  };
  const late = await start({ file });
  const listing = late.listNames('tools/list');
  await expect.poll(() => fast.count('tools/list'), { timeout: 20_000 }).toBe(2);
  release();
  expect(await listing).toEqual(listed);
  expect(listed).toEqual(['search', 'edit', 'more', 'github__search']);
});

test('§18.2 a tool does not break out of its prefix, or into that of another server', async () => {
  const evil = await serveTools('git__search', '__search', 'own');
  const bare = await serveTools('evil__own', 'git__search', 'git__other', 'plain');
  const git = await serveTools('search');
  const file = {
    mcpServers: { bare: { url: bare.url, prefix: '' }, evil: evil.url, git: git.url },
  };
  const gateway = await start({ file });
  expect(await gateway.listNames('tools/list')).toEqual([
    'plain',
    'evil__git__search',
    'evil____search',
    'evil__own',
    'git__search',
  ]);
  const session = await gateway.open();
  await gateway.call(session, 'tools/call', { name: 'git__search' });
  expect([git.count('tools/call'), bare.count('tools/call')]).toEqual([1, 0]);
  const { json } = await gateway.call(session, 'tools/call', { name: 'git__other' });
  expect(json.error.data.details).toBe('Unknown tool "git__other"');
  expect(gateway.lines().map(({ msg }) => msg)).toContain(
    'Server bare: tool "git__search" is hidden: its name begins with the prefix of another server.',
  );
});

test.each([
  ['a space', 'my tool'],
  ['a line end', 'tool\nname'],
  ['a control character', 'tool\u0007'],
  ['a mark that turns the reading direction', 'tool\u202egnp'],
  ['129 characters', 'x'.repeat(129)],
  ['none', ''],
])(
  '§18.2 names: a tool whose name has %s is hidden, and the others are not',
  async (_what, name) => {
    const server = await serveTools('good', name);
    const gateway = await start({ file: { mcpServers: { a: server.url } } });
    expect(await gateway.listNames('tools/list')).toEqual(['a__good']);
    const session = await gateway.open();
    const { json } = await gateway.call(session, 'tools/call', { name: `a__${name}` });
    expect(json.error.code).toBe(-32602);
    expect(server.count('tools/call')).toBe(0);
    const warning = gateway.lines().find(({ level }) => level === 'warn');
    expect(warning?.msg).toContain('Server a: tool');
  },
);

test.each([
  ['no input schema', { inputSchema: undefined }],
  ['an input schema that is no object', { inputSchema: { type: 'string' } }],
  ['an input schema that is null', { inputSchema: null }],
])('§18.2 lists: a tool with %s costs clients nothing but this tool', async (_what, members) => {
  const server = await serve({ tools: [buildTool('bad', members), buildTool('good'), 7, null] });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  expect(await gateway.listNames('tools/list')).toEqual(['a__good']);
});

test.each([
  [{ description: 7 }, 'description'],
  [{ title: null }, 'title'],
  [{ annotations: [] }, 'annotations'],
  [{ annotations: { readOnlyHint: null } }, 'annotations.readOnlyHint'],
  [{ icons: [{ src: null }] }, 'icons.0'],
  [{ outputSchema: { type: 'object', $ref: '#/$defs/gone' } }, 'outputSchema'],
])(
  '§18.2 lists: a tool with %j is listed without what MCP does not allow, with one warning',
  async (members, path) => {
    const server = await serve({ tools: [buildTool('odd', members), buildTool('good')] });
    const gateway = await start({ file: { mcpServers: { a: server.url } } });
    for (let time = 0; time < 2; time += 1) {
      expect(await gateway.listNames('tools/list')).toEqual(['a__odd', 'a__good']);
    }
    const warnings = gateway.lines().filter(({ msg }) => msg.includes('MCP does not allow'));
    expect(warnings.map(({ msg }) => msg)).toEqual([
      `Server a: tool "odd" is listed without what MCP does not allow: "${path}".`,
    ]);
    const [odd] = await gateway.list('tools/list');
    const left = path.split('.').reduce<unknown>((value, step) => Object(value)[step], odd);
    expect(left).toBeUndefined();
    expect(odd.inputSchema).toEqual({ type: 'object' });
  },
);

test('§18.2 descriptions: what cannot be seen is taken out, at any depth; names of members stay', async () => {
  const hidden = '\u0007\u001b[31m\u009b\u202e\u2066\u{e0041}';
  const text = `One${hidden}\n\ttwo`;
  const tool = buildTool('t', {
    title: `T${hidden}`,
    description: text,
    inputSchema: {
      type: 'object',
      properties: {
        description: { type: 'string', description: text, pattern: '\u0007' },
      },
    },
    'x-other': { description: 'stays' },
  });
  const server = await serve({ tools: [tool] });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  expect(await gateway.list('tools/list')).toEqual([
    {
      ...tool,
      name: 'a__t',
      title: 'T[31m',
      description: 'One[31m\n\ttwo',
      inputSchema: {
        type: 'object',
        properties: {
          description: { type: 'string', description: 'One[31m\n\ttwo', pattern: '\u0007' },
        },
      },
    },
  ]);
});

test('§18.2 descriptions: a long one is cut', async () => {
  const server = await serve({ tools: [buildTool('t', { description: 'x'.repeat(50_000) })] });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const [tool] = await gateway.list('tools/list');
  expect(tool.description).toHaveLength(16_384);
});

test('§18.2 lists: members that are not known stay', async () => {
  const tool = buildTool('t', { 'x-new': { a: [1] }, _meta: { b: 2 }, execution: { c: 3 } });
  const server = await serve({ tools: [tool] });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  expect(await gateway.list('tools/list')).toEqual([{ ...tool, name: 'a__t' }]);
});

test('§18.1 tools: include and exclude decide which are served, describe what they are said to do', async () => {
  const server = await serveTools('get_a', 'get_b', 'delete_a', 'Delete_b', 'toString');
  const tools = {
    include: ['get_*', '*elete_*', 'to*'],
    exclude: ['delete_*', 'get_b'],
    describe: { get_a: 'Ours.' },
  };
  const gateway = await start({ file: { mcpServers: { a: { url: server.url, tools } } } });
  const listed = await gateway.list('tools/list');
  expect(listed.map(({ name, description }) => [name, description])).toEqual([
    ['a__get_a', 'Ours.'],
    ['a__Delete_b', 'Does Delete_b.'],
    ['a__toString', 'Does toString.'],
  ]);
  const session = await gateway.open();
  for (const name of ['a__get_b', 'a__delete_a']) {
    const { json } = await gateway.call(session, 'tools/call', { name });
    expect(json.error).toMatchObject({
      code: -32602,
      data: { details: `Unknown tool "${name}"` },
    });
  }
  expect(server.count('tools/call')).toBe(0);
});

test('§18.2 /mcp/<server>: one server under its own names', async () => {
  const server = await serveTools('search', 'x'.repeat(80));
  const other = await serveTools('edit');
  const gateway = await start({
    file: { mcpServers: { a: server.url, b: other.url } },
    view: 'a',
    builtIn,
  });
  expect(await gateway.listNames('tools/list')).toEqual(['search', 'x'.repeat(80)]);
  const session = await gateway.open();
  const { json } = await gateway.call(session, 'tools/call', { name: 'search' });
  expect(json.result.content[0].text).toBe('ran search');
  for (const name of ['a__search', 'edit', 'b__edit', 'ping']) {
    const { json: refused } = await gateway.call(session, 'tools/call', { name });
    expect(refused.error.code).toBe(-32602);
  }
});

test('§18.2 texts without anything that cannot be seen: also names of resources, and what selectors spell', async () => {
  const hidden = '\u202e\u200b\u2060\ufeff\u{e0100}\u{e01ef}';
  const seen = 'Read \u{1f469}\u200d\u{1f680} and \u2764\ufe0f.';
  const name = `report${hidden}`;
  const server = await serve({
    tools: [buildTool('t', { description: seen + hidden })],
    resources: [{ uri: 'x://a', name }],
    resourceTemplates: [{ uriTemplate: 'x://{b}', name }],
  });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const session = await gateway.open();
  expect(await gateway.list('tools/list', session)).toMatchObject([{ description: seen }]);
  expect(await gateway.list('resources/list', session)).toMatchObject([{ name: 'report' }]);
  expect(await gateway.list('resources/templates/list', session)).toMatchObject([
    { name: 'report' },
  ]);
});
