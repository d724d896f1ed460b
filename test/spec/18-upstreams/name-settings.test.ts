// How long names are, and of which characters, where the file says so.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { stateless } from '../../support/clients/stateless.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { findProblems } from '../../support/upstreams/gateway-file.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const serveTools = (...names: string[]) => serve({ tools: names.map((name) => buildTool(name)) });

test.each([32, 48, 63, 128])(
  '§18.2 names: "maxNameLength": %i cuts longer ones there, and what was cut can be called',
  async (maxNameLength) => {
    const fits = 'f'.repeat(maxNameLength - 3);
    const long = 'x'.repeat(maxNameLength - 2);
    const server = await serveTools(fits, long);
    const gateway = await start({ file: { maxNameLength, mcpServers: { a: server.url } } });
    const [first, second = ''] = await gateway.listNames('tools/list');
    expect(first).toBe(`a__${fits}`);
    expect(second).toMatch(new RegExp(`^a__x{${maxNameLength - 12}}_[0-9a-f]{8}$`));
    const session = await gateway.open();
    const { json } = await gateway.call(session, 'tools/call', { name: second });
    expect(json.result.content[0].text).toBe(`ran ${long}`);
  },
);

test('§18.2 names: "names": "strict" leaves letters, digits, _ and - of tools and prompts, and they can be called', async () => {
  const server = await serve({
    tools: [buildTool('repo.read'), buildTool('a-b_C9')],
    prompts: [{ name: 'review: my code 🚀' }],
  });
  const file = { names: 'strict', mcpServers: { git: server.url } };
  const gateway = await start({ file });
  expect(await gateway.listNames('tools/list')).toEqual(['git__repo_read', 'git__a-b_C9']);
  expect(await gateway.listNames('prompts/list')).toEqual(['git__review__my_code__']);
  const session = await gateway.open();
  const { json } = await gateway.call(session, 'tools/call', { name: 'git__repo_read' });
  expect(json.result.content[0].text).toBe('ran repo.read');
  const got = await gateway.call(session, 'prompts/get', { name: 'git__review__my_code__' });
  expect(got.json.result.messages[0].content.text).toBe('got review: my code 🚀');
  const { json: refused } = await gateway.call(session, 'tools/call', { name: 'git__repo.read' });
  expect(refused.error.code).toBe(-32602);

  await gateway.reload({ mcpServers: { git: server.url } });
  expect(await gateway.listNames('tools/list', session)).toEqual(['git__repo.read', 'git__a-b_C9']);
});

test('§18.2 names: of two that are the same once strict, the one that clients are told another name for ends in a hash', async () => {
  const server = await serveTools('a.b', 'a_b', 'a b', 'c');
  const other = await serveTools('a.b');
  const file = {
    names: 'strict',
    mcpServers: { it: server.url, other: other.url },
    rules: [{ who: 'everyone', may: ['it__*'] }],
  };
  const gateway = await start({ file });
  const hashed = (name: string) =>
    `it__a_b_${createHash('sha256').update(`it__${name}`).digest('hex').slice(0, 8)}`;
  const names = await gateway.listNames('tools/list');
  expect(names).toEqual([hashed('a.b'), 'it__a_b', hashed('a b'), 'it__c']);
  const session = await gateway.open();
  for (const [name, own] of [
    [hashed('a.b'), 'a.b'],
    ['it__a_b', 'a_b'],
    [hashed('a b'), 'a b'],
  ]) {
    const { json } = await gateway.call(session, 'tools/call', { name });
    expect(json.result.content[0].text).toBe(`ran ${own}`);
  }
  // Rules are about the names that clients are told.
  await gateway.reload({ ...file, rules: [{ who: 'everyone', may: ['it__a_b'] }] });
  expect(await gateway.listNames('tools/list', session)).toEqual(['it__a_b']);
  const { json } = await gateway.call(session, 'tools/call', { name: hashed('a.b') });
  expect(json.error.code).toBe(-32602);
});

const ODD = {
  'sales/report': 'it__sales_report',
  'send mail': 'it__send_mail',
  'search:web': 'it__search_web',
  café: 'it__caf_',
  ['x'.repeat(140)]: `it__${'x'.repeat(51)}_${createHash('sha256')
    .update(`it__${'x'.repeat(140)}`)
    .digest('hex')
    .slice(0, 8)}`,
};

test.each(['/mcp', 'a view', 'a search', 'a server'])(
  '§18.2 names: with "names": "strict", each name that a server has is listed and called, at %s',
  async (place) => {
    const own = Object.keys(ODD);
    const server = await serve({
      tools: own.map((name) => buildTool(name)),
      prompts: own.map((name) => ({ name })),
    });
    const file = {
      names: 'strict',
      mcpServers: { it: server.url },
      views: { some: { servers: ['it'] }, found: { servers: ['it'], search: true } },
    };
    const views: Readonly<Record<string, string>> = {
      'a view': 'some',
      'a search': 'found',
      'a server': 'it',
    };
    const { [place]: view } = views;
    const gateway = await start({ file, ...(view !== undefined && { view }) });
    const session = await gateway.open();
    const told = (name: string): string =>
      place === 'a server' ? name : (Object(ODD)[name] ?? '');
    const tools = await gateway.listNames('tools/list', session);
    if (place === 'a search') expect(tools).toContain('call_tool');
    else expect(tools).toEqual(own.map(told));
    expect(await gateway.listNames('prompts/list', session)).toEqual(own.map(told));
    for (const name of own) {
      const params =
        place === 'a search'
          ? { name: 'call_tool', arguments: { name: told(name), arguments: {} } }
          : { name: told(name), arguments: {} };
      const { json } = await gateway.call(session, 'tools/call', params);
      expect(json.result.content[0].text).toBe(`ran ${name}`);
      const got = await gateway.call(session, 'prompts/get', { name: told(name) });
      expect(got.json.result.messages[0].content.text).toBe(`got ${name}`);
      if (view !== undefined) continue;
      const now = await stateless(gateway, 'tools/call', params);
      expect(now.json.result.content[0].text).toBe(`ran ${name}`);
    }
  },
);

test('§18.2 names: with their own names, a tool that clients refuse is hidden, and the log says what lists it', async () => {
  const server = await serveTools('send mail', 'good');
  const gateway = await start({ file: { mcpServers: { it: server.url } } });
  expect(await gateway.listNames('tools/list')).toEqual(['it__good']);
  const [warning] = gateway.lines().filter(({ level }) => level === 'warn');
  expect(warning?.msg).toContain('tool "send mail" has a name that clients refuse');
  expect(warning?.msg).toContain('"names": "strict"');
});

test('§18.2 names: two that are cut stay apart, though they are the same once strict', async () => {
  const long = 'x'.repeat(70);
  const server = await serveTools(`${long}.y`, `${long}_y`);
  const gateway = await start({ file: { names: 'strict', mcpServers: { it: server.url } } });
  expect(new Set(await gateway.listNames('tools/list')).size).toBe(2);
});

test('§18.4 a server that is not there: with strict names, one that no tool can have is unknown', async () => {
  const file = { names: 'strict', mcpServers: { a: { url: 'http://127.0.0.1:9/mcp' } } };
  const gateway = await start({ file });
  const session = await gateway.open();
  const possible = await gateway.call(session, 'tools/call', { name: 'a__x_y' });
  expect(possible.json.error?.code ?? possible.json.result).not.toBe(-32602);
  const impossible = await gateway.call(session, 'tools/call', { name: 'a__x.y' });
  expect(impossible.json.error.code).toBe(-32602);
});

test.each([
  {
    file: { maxNameLength: 31 },
    says: /^mcp\.json:\d+: maxNameLength: 31 is not valid\. .*32.*128/,
  },
  { file: { maxNameLength: 129 }, says: /^mcp\.json:\d+: maxNameLength: 129 is not valid\./ },
  { file: { maxNameLength: '48' }, says: /^mcp\.json:\d+: maxNameLength: .*without quotes/ },
  { file: { names: 'loose' }, says: /^mcp\.json:\d+: names: "loose" is not valid\. .*own.*strict/ },
  {
    file: {
      maxNameLength: 32,
      mcpServers: {
        'company-internal-search-a': { url: 'https://a.example' },
        'company-internal-search-b': { url: 'https://b.example' },
      },
    },
    says: /^mcp\.json:\d+: mcpServers\.company-internal-search-b: If its names are cut \("maxNameLength": 32\), the first 23 characters would be those of company-internal-search-a \(line \d+\)\. Give one of them a shorter "prefix"\./,
  },
  {
    file: { names: 'strict', separator: '.' },
    says: /^mcp\.json:\d+: separator: With "names": "strict" the separator has no dot/,
  },
  {
    file: { names: 'strict', mcpServers: { a: { url: 'https://a.example', prefix: 'a.b' } } },
    says: /^mcp\.json:\d+: mcpServers\.a\.prefix: With "names": "strict" a prefix has no dot/,
  },
])('§18.1 file: $file is refused', async ({ file, says }) => {
  expect(await findProblems(file)).toEqual([expect.stringMatching(says)]);
});
