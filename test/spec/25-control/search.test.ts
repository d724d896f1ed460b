// A view that is searched: what it lists, what its tools answer, and what they refuse.
import { expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';
import { namesOf, startSearchedView } from '../../support/upstreams/searched-view.ts';

const SEARCH_TOOLS = ['search_tools', 'describe_tools', 'call_tool'];

const schema = (...names: string[]) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
});

const GITHUB = [
  buildTool('merge_pull_request', {
    title: 'Merge',
    description: 'Merges a pull request.',
    inputSchema: schema('owner', 'number'),
    annotations: { destructiveHint: true },
  }),
  buildTool('create_issue', { description: 'Creates an issue in a repository.' }),
  buildTool('search_code', { description: 'Searches code.' }),
];
const FILES = [
  buildTool('read_file', { description: 'Reads a file.' }),
  buildTool('write_file', { description: 'Writes a file.' }),
];

async function startView(view: object = {}, rest: object = {}) {
  const github = await serve({ tools: GITHUB });
  const files = await serve({ tools: FILES, resources: [{ uri: 'file:///a', name: 'a' }] });
  const mcpServers = { github: github.url, files: files.url };
  const gateway = await startSearchedView({ file: { mcpServers, ...rest } }, view);
  return { gateway, github, files, mcpServers };
}

test('§25.3 search: such a view lists three tools and those that are pinned; all else as without it', async () => {
  const { gateway } = await startView({ pinned: ['files__read_*', 'nothing'] });
  expect(await gateway.listNames('tools/list')).toEqual([...SEARCH_TOOLS, 'files__read_file']);
  expect(await gateway.listNames('resources/list')).toEqual(['file:///a']);
  const [search] = await gateway.list('tools/list');
  expect(search.description).toContain(
    'There are tools from files (2 tools: read_file, write_file); github (3 tools: merge_pull_request, create_issue, search_code).',
  );
  expect(search.annotations).toMatchObject({ readOnlyHint: true });
});

test('§25.3 search: without "search" there are no such tools, and a name of theirs is unknown', async () => {
  const { gateway } = await startView({ search: false });
  expect(await gateway.listNames('tools/list')).toHaveLength(5);
  for (const name of SEARCH_TOOLS) {
    const { json } = await gateway.callTool(name, { query: 'x', names: ['x'], name: 'x' });
    expect(json.error).toMatchObject({ code: -32602 });
  }
});

test('§25.3 search: search_tools answers with the best tools, whole', async () => {
  const { gateway } = await startView();
  const found = await gateway.search({ query: 'merge the pull request 12' });
  expect(found.tools[0]).toEqual({
    name: 'github__merge_pull_request',
    title: 'Merge',
    description: 'Merges a pull request.',
    inputSchema: schema('owner', 'number'),
    annotations: { destructiveHint: true },
  });
  expect(namesOf(await gateway.search({ query: 'file', limit: 1 }))).toEqual(['files__read_file']);
  expect(await gateway.search({ query: 'zzz' })).toEqual({
    tools: [],
    hint: expect.stringContaining('Nothing matches.'),
  });
});

test('§25.3 search: only the tools of the view are found, as the view describes them', async () => {
  const { gateway } = await startView({
    tools: ['github__*'],
    describe: { github__search_code: 'Finds functions in our own monorepo.' },
  });
  const other = await gateway.search({ query: 'read write file', limit: 20 });
  expect(namesOf(other)).not.toContainEqual(expect.stringContaining('files__'));
  expect((await gateway.search({ query: 'monorepo functions' })).tools).toMatchObject([
    { name: 'github__search_code', description: 'Finds functions in our own monorepo.' },
  ]);
});

test('§25.3 search: describe_tools tells tools whole, and says which are unknown', async () => {
  const { gateway } = await startView();
  const found = await gateway.describe(['files__read_file', 'files__nope', 'files__read_file']);
  expect(found).toEqual({
    tools: [
      { name: 'files__read_file', description: 'Reads a file.', inputSchema: { type: 'object' } },
    ],
    hint: 'Unknown: "files__nope". Find names with search_tools.',
  });
  const { json } = await gateway.callTool('describe_tools', { names: ['search_tools'] });
  expect(json.result).toMatchObject({ isError: true });
});

test('§25.3 search: call_tool calls the tool, with its arguments alone', async () => {
  const { gateway, github } = await startView();
  const { json } = await gateway.callTool('call_tool', {
    name: 'github__merge_pull_request',
    arguments: { owner: 'a', number: '1' },
  });
  expect(json.result.content).toEqual([{ type: 'text', text: 'ran merge_pull_request' }]);
  const sent = github.requests.filter(({ method }) => method === 'tools/call');
  expect(sent.map(({ params }) => params)).toMatchObject([
    { name: 'merge_pull_request', arguments: { owner: 'a', number: '1' } },
  ]);
  await gateway.callTool('call_tool', { name: 'github__create_issue' });
  expect(github.requests.at(-1)?.params).toMatchObject({ name: 'create_issue', arguments: {} });
});

test('§25.3 search: what is not pinned can be called by its own name, too', async () => {
  const { gateway } = await startView();
  const { json } = await gateway.callTool('files__read_file');
  expect(json.result.content[0].text).toBe('ran read_file');
});

test('§25.3 search: an unknown tool is as unknown by call_tool as by itself', async () => {
  const { gateway } = await startView({ tools: ['github__*'] });
  for (const name of ['github__merge_pull_reqest', 'files__read_file', 'constructor']) {
    const direct = await gateway.callTool(name);
    const inner = await gateway.callTool('call_tool', { name });
    expect(inner.json.error).toEqual(direct.json.error);
    expect(inner.json.error.code).toBe(-32602);
  }
});

test.each([
  ['search_tools', {}, /query/],
  ['search_tools', { query: '' }, /query/],
  ['search_tools', { query: 'x'.repeat(501) }, /query.*500/s],
  ['search_tools', { query: 'x', limit: 21 }, /limit.*20/s],
  ['search_tools', { query: 'x', limit: 0 }, /limit/],
  ['search_tools', { query: 'x', regex: '.*' }, /regex/],
  ['search_tools', { query: ['x'] }, /query.*string/s],
  ['describe_tools', { names: [] }, /names/],
  ['describe_tools', { names: Array.from({ length: 21 }, (_, at) => `t${at}`) }, /names.*20/s],
  ['describe_tools', { names: ['x'.repeat(257)] }, /names.*256/s],
  ['call_tool', {}, /name/],
  ['call_tool', { name: 'files__read_file', arguments: '{}' }, /arguments.*object/s],
  ['call_tool', { name: 'files__read_file', args: {} }, /args/],
  ['call_tool', { name: 'call_tool', arguments: {} }, /call_tool does not call call_tool/],
  ['call_tool', { name: 'search_tools', arguments: { query: 'x' } }, /call it by itself/],
  ['call_tool', { name: 'describe_tools' }, /does not call describe_tools/],
])(
  '§25.3 search: %s with %j is refused in words that its model reads',
  async (name, args, words) => {
    const { gateway, files } = await startView();
    const { json } = await gateway.callTool(name, args);
    expect(json.result).toMatchObject({ isError: true });
    expect(json.result.content[0].text).toMatch(words);
    expect(files.count('tools/call')).toBe(0);
  },
);

test('§25.3 search: schemas are whole while they fit some 4,000 tokens; the others can be asked for', async () => {
  const long = (size: number) => ({
    type: 'object',
    properties: Object.fromEntries(
      Array.from({ length: Math.ceil(size / 1_000) }, (_, at) => [
        `p${at}`,
        { type: 'string', description: 'x'.repeat(950) },
      ]),
    ),
  });
  const tools = [
    buildTool('report_big', { inputSchema: long(60_000) }),
    buildTool('report_small', { inputSchema: long(2_000) }),
    buildTool('report_other', { inputSchema: long(13_000) }),
    buildTool('report_last', { description: 'y'.repeat(10_000), inputSchema: long(9_000) }),
  ];
  const server = await serve({ tools });
  const gateway = await startSearchedView({ file: { mcpServers: { a: server.url } } });
  const found = await gateway.search({ query: 'report' });
  expect(found.tools).toHaveLength(4);
  const whole = found.tools.filter((tool) => 'inputSchema' in tool).map(({ name }) => name);
  expect(whole.toSorted()).toEqual(['a__report_other', 'a__report_small']);
  expect(found.tools.find(({ name }) => name === 'a__report_big')).toEqual({
    name: 'a__report_big',
    description: 'Does report_big.',
    arguments: Array.from({ length: 20 }, (_, at) => `p${at}`),
  });
  expect(found.hint).toBe(
    'Left out because of their length: call describe_tools for a__report_big, a__report_last.',
  );
  expect(JSON.stringify(found).length).toBeLessThan(8 * 4_000);
  // One that is asked for by its name is whole, however long: else nobody could call it.
  const big = await gateway.describe(['a__report_big', 'a__report_small']);
  expect(big.tools).toMatchObject([{ name: 'a__report_big', inputSchema: long(60_000) }]);
  expect(big.hint).toContain('a__report_small');
});

test('§25.3 search: a list that changes is searched as it is then', async () => {
  const clock = manualClock();
  const files = await serve({ tools: FILES });
  const gateway = await startSearchedView({ file: { mcpServers: { files: files.url } }, clock });
  expect(namesOf(await gateway.search({ query: 'shred' }))).toEqual([]);
  files.listing.tools = [buildTool('shred_file')];
  clock.advance(61_000);
  await expect
    .poll(async () => namesOf(await gateway.search({ query: 'shred' })), { timeout: 20_000 })
    .toEqual(['files__shred_file']);
  expect(namesOf(await gateway.search({ query: 'write' }))).toEqual([]);
});

test('§25.3 search: a reload makes a view searched, or no longer; sessions go on', async () => {
  const { gateway, mcpServers } = await startView();
  const session = await gateway.open();
  const list = () => gateway.listNames('tools/list', session);
  expect(await list()).toEqual(SEARCH_TOOLS);
  await gateway.reload({ mcpServers, views: { research: { tools: ['files__*'] } } });
  expect(await list()).toEqual(['files__read_file', 'files__write_file']);
  await gateway.reload({
    mcpServers,
    views: { research: { search: true, pinned: ['github__search_code'] } },
  });
  expect(await list()).toEqual([...SEARCH_TOOLS, 'github__search_code']);
});

test('§25.3 search: tools of a server that is down are neither found nor described', async () => {
  const { gateway, github } = await startView();
  expect(namesOf(await gateway.search({ query: 'pull request' }))).toHaveLength(1);
  await github.close();
  const session = await gateway.open();
  await gateway.call(session, 'tools/call', { name: 'github__create_issue', arguments: {} });
  expect(await gateway.search({ query: 'pull request' })).toMatchObject({ tools: [] });
  expect(await gateway.search({ query: 'read file' })).not.toMatchObject({ tools: [] });
});

test('§25.3 search: a tool of a server that is called search_tools is not in the way', async () => {
  const own = createLocalCatalog({
    tools: ['search_tools', 'ping'].map((name) =>
      defineTool({
        name,
        description: 'Of the author.',
        inputSchema: { type: 'object' },
        run: () => ({ content: [{ type: 'text', text: `own ${name}` }] }),
      }),
    ),
  });
  const server = await serve({ tools: FILES });
  const gateway = await startSearchedView(
    { file: { mcpServers: { files: server.url } }, builtIn: own },
    { pinned: ['*'] },
  );
  expect(await gateway.listNames('tools/list')).toEqual([
    ...SEARCH_TOOLS,
    'ping',
    'files__read_file',
    'files__write_file',
  ]);
  expect(namesOf(await gateway.search({ query: 'author' }))).toEqual(['ping']);
  const { json } = await gateway.callTool('call_tool', { name: 'ping' });
  expect(json.result.content[0].text).toBe('own ping');
});

test('§25.2 budget: a view that is searched costs what it lists, for users and for operators', async () => {
  const wiki = await serve({
    tools: Array.from({ length: 30 }, (_, at) =>
      buildTool(`tool_${at}`, {
        description: 'search the pages of the wiki for words '.repeat(30),
      }),
    ),
  });
  const gateway = await startSearchedView(
    {
      file: { mcpServers: { wiki: wiki.url } },
      env: { ADMIN_GROUPS: 'operators', ADMIN_CLIENTS: 'operators-client' },
    },
    { pinned: ['wiki__tool_7'] },
  );
  await gateway.listNames('tools/list');
  const get = async (path: string, claims: object) =>
    (
      await gateway.request({
        path,
        headers: { authorization: `Bearer ${await gateway.issuer.sign({ ...claims })}` },
      })
    ).json;
  const operator = { groups: ['operators'], azp: 'operators-client' };
  const ofUser = (await get('/paths.json', {})).paths.at(-1);
  const ofOperator = (await get('/admin/api/lists', operator)).lists.at(-1);
  for (const { tools, tokens } of [ofUser, ofOperator]) {
    expect(tools).toBe(4);
    expect(tokens).toBeLessThan(1_200);
  }
});
