// What the configuration file says of views: what is wrong with it, and what is said of names that nobody has.
import { expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { findProblems, parseFile } from '../../support/upstreams/gateway-file.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const SERVERS = {
  wiki: { url: 'http://127.0.0.1:9/mcp' },
  github: { url: 'http://127.0.0.1:9/x' },
};

test.each([
  [{ wiki: {} }, /views\.wiki: A server has the name wiki, too, and both would be at \/mcp\/wiki/],
  [
    { Research: {} },
    /views\.Research: This is not a valid name of a view\. It must be a lower-case letter/,
  ],
  [{ 'a/b': {} }, /This is not a valid name of a view/],
  [{ research: { tool: ['x'] } }, /"tool" is not known\. Did you mean tools\?/],
  [{ research: { tools: [''] } }, /tools\[0\]: "" is not valid\. It must be 1 to 512 characters/],
  [{ research: { tools: 'wiki__*' } }, /tools: .*must be a list of patterns/],
  [{ research: { resources: ['wiki://a%20b'] } }, /"wiki:\/\/a%20b" can never fit/],
  [{ research: { pinned: ['x'] } }, /pinned: Only a view with "search": true has this/],
  [{ research: { search: 'yes' } }, /search: "yes" is not valid/],
  [{ research: { title: ' ' } }, /title: .*a line of 1 to 100 characters/],
  [[], /A list is not valid\. It must be an object of views by name/],
])('§25.1 views: %j in the file is refused at start', async (views, problem) => {
  expect(await findProblems({ mcpServers: SERVERS, views })).toEqual([
    expect.stringMatching(problem),
  ]);
});

test('§25.1 views: one that names a server that there is not is served without it, and says so with the nearest name', async () => {
  const parsed = await parseFile({
    mcpServers: { ...SERVERS, off: { url: 'http://127.0.0.1:9/y', disabled: true } },
    views: { research: { servers: ['wiki', 'githb', 'off'] } },
  });
  expect(parsed).toMatchObject({
    kind: 'parsed',
    warnings: [
      'mcp.json:15, views.research: "servers" names "githb", which is no server of this file. Did you mean "github"?',
      'mcp.json:15, views.research: "servers" names "off", which is no server of this file.',
    ],
  });
});

test('§27.1 rules: one that names a view that there is not says so with the nearest name', async () => {
  const asks = { who: { views: ['reserch', 'research', 'wiki'] }, may: ['*'], ask: 'user' };
  const parsed = await parseFile({ mcpServers: SERVERS, views: { research: {} }, rules: [asks] });
  expect(parsed).toMatchObject({
    kind: 'parsed',
    warnings: [
      expect.stringMatching(
        /rules\[0\]: "views" names "reserch", which is not a view in this file\. Did you mean "research"\?$/,
      ),
      expect.stringMatching(
        /rules\[0\]: "views" names "wiki", which is not a view in this file\.$/,
      ),
    ],
  });
});

test('§25.1 views: patterns that fit nothing are said once the lists are there, each in one line, with the nearest name', async () => {
  const wiki = await serve({
    tools: [buildTool('search'), buildTool('read')],
    prompts: [{ name: 'ask' }],
  });
  const github = await serve({ tools: [buildTool('search_code')] });
  const gateway = await start({
    file: {
      mcpServers: { wiki: wiki.url, github: github.url },
      views: {
        research: {
          tools: ['wiki__serch', 'wiki__read', 'githb__*', 'wiki__zzzzzzzz*'],
          prompts: ['wiki__aks'],
          describe: { wiki__raed: 'Reads.' },
        },
      },
    },
    view: 'research',
  });
  for (let time = 0; time < 3; time += 1) {
    expect(await gateway.listNames('tools/list')).toEqual(['wiki__read']);
    expect(await gateway.listNames('prompts/list')).toEqual([]);
  }
  const said = gateway.log.filter(({ msg }) => msg.startsWith('View ')).map(({ msg }) => msg);
  // Each as soon as those have listed whose it may be.
  expect(said.toSorted()).toEqual(
    [
      'View research: no tool is called "wiki__serch". Did you mean "wiki__search"?',
      'View research: no tool fits "githb__*". Did you mean "github__*"?',
      'View research: no tool fits "wiki__zzzzzzzz*".',
      'View research: no tool is called "wiki__raed". Did you mean "wiki__read"?',
      'View research: no prompt is called "wiki__aks". Did you mean "wiki__ask"?',
    ].toSorted(),
  );
});

test('§25.1 views: a server that changes its names all the time does not fill the log', async () => {
  const clock = manualClock(1_800_000_000_000);
  const wiki = await serve({ tools: [buildTool('read')] });
  const views = { research: { tools: ['wiki__search', 'wiki__search*'] } };
  const file = { mcpServers: { wiki: wiki.url }, views };
  const gateway = await start({ file, view: 'research', clock });
  await gateway.listNames('tools/list');
  for (const name of ['searcha', 'searchb', 'searchc']) {
    wiki.listing.tools = [buildTool(name)];
    clock.advance(400_000);
    await expect
      .poll(() => gateway.listNames('tools/list'), { timeout: 20_000 })
      .toEqual([`wiki__${name}`]);
  }
  const said = gateway.log.filter(({ msg }) => msg.includes('is called "wiki__search"'));
  expect(said).toHaveLength(1);
});

test('§25.1 views: of a server that has not said what it has nothing is said to be missing', async () => {
  const wiki = await serve({ tools: [buildTool('search')] });
  const down = await serve({ tools: [buildTool('it')] });
  await down.close();
  const gateway = await start({
    file: {
      mcpServers: { wiki: wiki.url, down: down.url },
      views: { research: { tools: ['wiki__search', 'down__it'] } },
    },
    view: 'research',
  });
  expect(await gateway.listNames('tools/list')).toEqual(['wiki__search']);
  expect(gateway.log.filter(({ msg }) => msg.startsWith('View '))).toEqual([]);
});
