// What the lists of tools cost a model.
import { describe, expect, test } from 'vitest';
import { createLocalCatalog } from '../../../src/index.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const OPERATORS = { ADMIN_GROUPS: 'operators', ADMIN_CLIENTS: 'operators-client' };

/** Some 1,000 tokens, as every tokenizer counts them: words of English. */
const LONG = 'search the pages of the wiki for words '.repeat(128);

async function startWithLists(rest: object = {}) {
  const wiki = await serve({
    tools: [buildTool('read'), buildTool('search', { description: LONG }), buildTool('edit')],
  });
  const files = await serve({ tools: [buildTool('write_file')] });
  const gateway = await start({
    file: {
      mcpServers: { wiki: wiki.url, files: files.url },
      views: { research: { title: 'Research', tools: ['wiki__search', 'wiki__read'] } },
      ...rest,
    },
    builtIn: createLocalCatalog({}),
    env: OPERATORS,
  });
  // So that the servers have said what they have.
  await gateway.listNames('tools/list');
  const get = async (path: string, claims: Readonly<Record<string, unknown>> = {}) =>
    gateway.request({
      path,
      headers: { authorization: `Bearer ${await gateway.issuer.sign(claims)}` },
    });
  return { gateway, get };
}

describe('what lists cost', () => {
  test('§25.2 budget: after a login everybody sees what /mcp and the views cost their model, and which tools cost most', async () => {
    const { get, gateway } = await startWithLists();
    const { status, json } = await get('/paths.json');
    expect(status).toBe(200);
    expect(json.warnedTokens).toBe(20_000);
    expect(json.paths).toMatchObject([
      { url: `${gateway.baseUrl}/mcp`, tools: 4 },
      { url: `${gateway.baseUrl}/mcp/research`, title: 'Research', tools: 2 },
    ]);
    const [all, research] = json.paths;
    expect(research.expensive.map(({ name }: { name: string }) => name)).toEqual([
      'wiki__search',
      'wiki__read',
    ]);
    expect(research.tokens).toBeGreaterThan(900);
    expect(research.tokens).toBeLessThan(1_200);
    expect(all.tokens).toBeGreaterThan(research.tokens);
    const sum = research.expensive.reduce(
      (total: number, { tokens }: { tokens: number }) => total + tokens,
      0,
    );
    expect(sum).toBe(research.tokens);
  });

  test('§25.2 budget: a user is told of no view and counted no tool that rules keep away', async () => {
    const { get } = await startWithLists({
      rules: [
        { who: { groups: ['staff'] }, may: ['wiki__read'] },
        { who: { groups: ['writers'] }, may: ['files__*'] },
      ],
    });
    const pathsOf = async (groups: readonly string[]) =>
      (await get('/paths.json', { groups })).json.paths;
    expect(await pathsOf(['staff'])).toMatchObject([
      { tools: 1, expensive: [{ name: 'wiki__read' }] },
      { title: 'Research', tools: 1 },
    ]);
    expect(await pathsOf(['writers'])).toMatchObject([{ tools: 1 }]);
    expect(JSON.stringify(await pathsOf(['writers']))).not.toMatch(/wiki|research/);
  });

  test('§25.2 budget: nobody is told without a login', async () => {
    const { gateway } = await startWithLists();
    expect((await gateway.request({ path: '/paths.json' })).status).toBe(401);
  });

  test('§25.2 budget: operators see the cost of every path, whatever the rules say', async () => {
    const { get } = await startWithLists({ rules: [{ who: { groups: ['nobody'] }, may: ['x'] }] });
    const operator = {
      groups: ['operators'],
      azp: 'operators-client',
      client_id: 'operators-client',
    };
    const { status, json } = await get('/admin/api/lists', operator);
    expect([status, json.warnedTokens]).toEqual([200, 20_000]);
    expect(json.lists).toMatchObject([
      { kind: 'all', name: '', tools: 4 },
      { kind: 'server', name: 'wiki', tools: 3 },
      { kind: 'server', name: 'files', tools: 1 },
      { kind: 'view', name: 'research', title: 'Research', tools: 2 },
    ]);
    expect((await get('/admin/api/lists')).status).toBe(403);
  });

  test('§25.2 budget: no more than ten tools are named', async () => {
    const many = await serve({
      tools: Array.from({ length: 30 }, (_, at) =>
        buildTool(`tool_${at}`, { description: 'word '.repeat(at) }),
      ),
    });
    const gateway = await start({ file: { mcpServers: { many: many.url } } });
    const token = await gateway.issuer.sign();
    const { json } = await gateway.request({
      path: '/paths.json',
      headers: { authorization: `Bearer ${token}` },
    });
    expect(json.paths[0].expensive).toHaveLength(10);
    expect(json.paths[0].expensive[0].name).toBe('many__tool_29');
  });
});
