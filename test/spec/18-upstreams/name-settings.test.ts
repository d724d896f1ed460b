// How long names are, and of which characters, where the file says so.
import { expect, test } from 'vitest';
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

test('§18.2 names: of two that are the same once strict, the later one is hidden at each path, with a warning', async () => {
  const server = await serveTools('a.b', 'a_b', 'c');
  const file = {
    names: 'strict',
    mcpServers: { it: server.url },
    rules: [{ who: 'everyone', may: ['it__a_b', 'it__c'] }],
  };
  const gateway = await start({ file, view: 'it' });
  expect(await gateway.listNames('tools/list')).toEqual(['a.b', 'c']);
  const session = await gateway.open();
  const { json } = await gateway.call(session, 'tools/call', { name: 'a_b' });
  expect(json.error.code).toBe(-32602);
  expect(gateway.lines().map(({ msg }) => msg)).toContain(
    'Server it: tool "a_b" is hidden: "a.b" is called it__a_b, too.',
  );
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
    says: /^mcp\.json:\d+: mcpServers\.company-internal-search-b: Where its names are cut \("maxNameLength": 32\), the first 23 characters would be those of company-internal-search-a \(line \d+\)\. Give one of them a shorter "prefix"\./,
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
