// §18.9: patterns of the configuration file that fit nothing protect nothing: the log and operators are told.
import { expect, test } from 'vitest';
import { NO_LOCK } from '../../../src/mcp/catalog/approved-items.ts';
import { connect } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import {
  type CatalogGateway,
  startForTest as start,
} from '../../support/upstreams/catalog-gateway.ts';
import { type FileOptions, findProblems } from '../../support/upstreams/gateway-file.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const SECRETS = { builtIn: 'secrets' } as const;

const serveFiles = () => serve({ tools: [buildTool('read_file'), buildTool('write_file')] });

/** Sentences about patterns that fit nothing. */
const listSaid = ({ log }: Pick<CatalogGateway, 'log'>) =>
  log.filter(({ level, msg }) => level === 'warn' && /: no \w+/.test(msg)).map(({ msg }) => msg);

const asks = (...may: readonly string[]) => ({ who: 'everyone', may, ask: 'user' });

async function askAdmin(gateway: CatalogGateway, path: string) {
  const token = await gateway.issuer.sign({ groups: ['operators'], azp: 'ops-script' });
  const headers = { authorization: `Bearer ${token}` };
  return (await gateway.request({ path: `/admin/api/${path}`, headers })).json;
}

test('§18.9 ask: a rule that asks about no tool that there is is said once the server has listed, with the nearest name', async () => {
  const files = await serveFiles();
  const gateway = await start({
    file: {
      mcpServers: { files: files.url },
      rules: [
        { who: 'everyone', may: ['files__raed_file', '*'] },
        asks('files__wite_file', 'files__read_*', 'write_file'),
      ],
    },
  });
  await expect
    .poll(() => listSaid(gateway))
    .toEqual([
      'mcp.json:15, rules[1]: no tool is called "files__wite_file", so no call requires approval because of that pattern. Did you mean "files__write_file"?',
      'mcp.json:15, rules[1]: no tool is called "write_file", so no call requires approval because of that pattern. Did you mean "files__write_file"?',
    ]);
});

test('§18.9 guards and exclude: what fits nothing is said, and what fits something that is left out is not', async () => {
  const files = await serveFiles();
  const wiki = await serve({ tools: [buildTool('search')] });
  const gateway = await start({
    file: {
      mcpServers: {
        files: { url: files.url, tools: { exclude: ['delte_*', 'wrte_file', 'write_file'] } },
        wiki: { url: wiki.url },
      },
      rules: [{ who: 'everyone', may: ['*'] }, asks('files__write_file')],
      guards: [
        {
          name: 'keys',
          on: ['tools/result'],
          tools: ['files__raed_file', 'files__write_file', 'wiki__*'],
          use: SECRETS,
        },
        { name: 'other', on: ['tools/call'], servers: ['wiki'], tools: ['files__*'], use: SECRETS },
      ],
    },
  });
  await expect
    .poll(() => new Set(listSaid(gateway)))
    .toEqual(
      new Set([
        'Guard keys: no tool is called "files__raed_file", so it looks at nothing by that pattern. Did you mean "files__read_file"?',
        'Guard other: no tool of its servers fits "files__*", so it looks at nothing by that pattern.',
        'Server files: no tool of its own fits "delte_*", so "exclude" leaves nothing out by that pattern.',
        'Server files: no tool of its own is called "wrte_file", so "exclude" leaves nothing out by that pattern. Did you mean "write_file"?',
      ]),
    );
});

test('§18.9 ask: a name that the gateway changed or cut is told as it is here', async () => {
  const files = await serve({ tools: [buildTool('read.file'), buildTool('w'.repeat(80))] });
  const gateway = await start({
    file: {
      mcpServers: { files: files.url },
      names: 'strict',
      rules: [
        { who: 'everyone', may: ['*'] },
        asks('files__read.file', `files__${'w'.repeat(80)}`),
      ],
    },
  });
  await expect
    .poll(() => listSaid(gateway))
    .toEqual([
      expect.stringContaining('Did you mean "files__read_file"?'),
      expect.stringMatching(
        /no tool is called "files__w+", so no call requires approval because of that pattern\.$/,
      ),
    ]);
});

test('§18.9 ask: a tool that its server renames is said at the change, once, however often it is renamed', async () => {
  const files = await serveFiles();
  const gateway = await start({
    file: {
      mcpServers: { files: files.url },
      rules: [{ who: 'everyone', may: ['*'] }, asks('files__write_file')],
    },
    env: { ADMIN_GROUPS: 'operators', ADMIN_CLIENTS: 'ops-script' },
  });
  await expect.poll(() => gateway.listNames('tools/list')).toContain('files__write_file');
  expect(listSaid(gateway)).toEqual([]);
  expect(await askAdmin(gateway, 'idle-patterns')).toEqual({ patterns: [] });
  const rename = async (name: string) => {
    files.listing.tools = [buildTool(name)];
    files.notify('notifications/tools/list_changed');
    await expect.poll(() => gateway.listNames('tools/list')).toEqual([`files__${name}`]);
  };
  for (const name of ['write_files', 'write_file', 'write_filez']) await rename(name);
  expect(listSaid(gateway)).toEqual([
    expect.stringMatching(/is called "files__write_file", .* Did you mean "files__write_files"\?$/),
  ]);
  expect(await askAdmin(gateway, 'idle-patterns')).toEqual({
    patterns: [
      {
        of: 'rule',
        subject: expect.stringMatching(/^mcp\.json:\d+, rules\[1\]$/),
        pattern: 'files__write_file',
        message: listSaid(gateway)[0],
      },
    ],
  });
  await rename('write_file');
  expect(await askAdmin(gateway, 'idle-patterns')).toEqual({ patterns: [] });
});

test('§18.9 the same file with another lock is no reason to say it again, as at each approval of an operator', async () => {
  const files = await serveFiles();
  const file = {
    mcpServers: { files: files.url },
    rules: [{ who: 'everyone', may: ['*'] }, asks('files__wite_file')],
  };
  const gateway = await start({ file });
  await expect.poll(() => listSaid(gateway)).toHaveLength(1);
  await gateway.reload(file, NO_LOCK);
  await gateway.listNames('tools/list');
  expect(listSaid(gateway)).toHaveLength(1);
  await gateway.reload({ ...file, maxNameLength: 60 });
  await expect.poll(() => listSaid(gateway)).toHaveLength(2);
});

test('§18.9 one server that lists to nobody keeps no pattern of another from being judged', async () => {
  const files = await serveFiles();
  const down = await serve();
  await down.close();
  const oauth = { url: down.url, auth: { type: 'oauth' } };
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { files: { url: files.url }, github: oauth, down: { url: down.url } },
      file: {
        rules: [{ who: 'everyone', may: ['*'] }, asks('files__wite_file', 'github__x', 'down__x')],
        views: { desk: { tools: ['files__raed_file', 'github__serch', 'down__serch'] } },
      },
    }),
  );
  await expect
    .poll(() => listSaid(gateway))
    .toEqual([
      expect.stringContaining('Did you mean "files__write_file"?'),
      'View desk: no tool is called "files__raed_file". Did you mean "files__read_file"?',
    ]);
});

test('§18.9 a pattern without a prefix is said as soon as one server has listed, and once more with the nearest name of another', async () => {
  const wiki = await serve({ tools: [buildTool('search')] });
  let tell = (_: object): void => {};
  const listed = new Promise<object>((resolve) => {
    tell = resolve;
  });
  const late = await serve({ answers: { 'tools/list': () => listed } });
  const gateway = await start({
    env: { LIST_WAIT_MS: '100' },
    file: {
      mcpServers: { wiki: wiki.url, files: late.url },
      rules: [{ who: 'everyone', may: ['*'] }, asks('wite_file')],
    },
  });
  const sentence =
    'mcp.json:17, rules[1]: no tool is called "wite_file", so no call requires approval because of that pattern.';
  await expect.poll(() => listSaid(gateway)).toEqual([sentence]);
  tell({ result: { tools: [buildTool('write_file'), buildTool('search_files')] } });
  await expect
    .poll(() => listSaid(gateway))
    .toEqual([sentence, `${sentence} Did you mean "files__write_file"?`]);
});

test('§18.9 ask: of a server that lists for each user a pattern is judged by what users have listed', async () => {
  const github = await serve({ tools: [buildTool('merge')] });
  const gateway = await start({
    file: {
      mcpServers: { github: { url: github.url, auth: { type: 'identity' } } },
      rules: [{ who: 'everyone', may: ['*'] }, asks('github__mrge', 'github__merge')],
    },
  });
  for (const sub of ['ann', 'bob']) {
    const token = await gateway.issuer.sign({ sub });
    expect(await gateway.listNames('tools/list', undefined, token)).toEqual(['github__merge']);
  }
  // What one of them has is there, whatever the next one has.
  github.listing.tools = [buildTool('review')];
  const token = await gateway.issuer.sign({ sub: 'cleo' });
  expect(await gateway.listNames('tools/list', undefined, token)).toEqual(['github__review']);
  expect(listSaid(gateway)).toEqual([
    expect.stringMatching(
      /: no tool that users have listed so far is called "github__mrge", .* Did you mean "github__merge"\?$/,
    ),
  ]);
});

test('§18.9 ask: the tool by which users connect a server is there', async () => {
  const server = closeAfterTest(await startProtectedServer({ habits: KEEPS_TO_MCP }));
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { wiki: server.configure() },
      file: { rules: [{ who: 'everyone', may: ['*'] }, asks('wiki__connect', 'wiki__conect')] },
    }),
  );
  const ada = await gateway.logIn('ada');
  await connect(gateway, gateway.createBrowser({ person: 'ada', account: 'ada@work' }), 'wiki');
  expect(await ada.listToolNames()).toContain('wiki__whoami');
  expect(listSaid(gateway)).toEqual([
    expect.stringMatching(/ is called "wiki__conect", .* Did you mean "wiki__connect"\?$/),
  ]);
});

test('§18.9 views: a tool that "exclude" of its server leaves out is not there for a view', async () => {
  const files = await serveFiles();
  const gateway = await start({
    file: {
      mcpServers: { files: { url: files.url, tools: { exclude: ['write_file'] } } },
      views: { desk: { tools: ['files__read_file', 'files__write_file'] } },
    },
  });
  await expect
    .poll(() => listSaid(gateway))
    .toEqual([expect.stringMatching(/^View desk: no tool is called "files__write_file"/)]);
});

test('§18.9 views: a prompt that its server renames is said at the change', async () => {
  const wiki = await serve({ prompts: [{ name: 'ask' }] });
  const gateway = await start({
    file: { mcpServers: { wiki: wiki.url }, views: { desk: { prompts: ['wiki__ask'] } } },
  });
  await expect.poll(() => gateway.listNames('prompts/list')).toEqual(['wiki__ask']);
  wiki.listing.prompts = [{ name: 'asks' }];
  wiki.notify('notifications/prompts/list_changed');
  await expect.poll(() => gateway.listNames('prompts/list')).toEqual(['wiki__asks']);
  expect(listSaid(gateway)).toEqual([
    'View desk: no prompt is called "wiki__ask". Did you mean "wiki__asks"?',
  ]);
});

const AT = { url: 'http://127.0.0.1:9/mcp' };

test.each([
  ['by a misspelled name', { github: AT }, 'githb__merge', 'github__merge'],
  [
    'by the name that the file has, where the gateway has another',
    { my_db: AT },
    'my_db__drop',
    'my-db__drop',
  ],
  ['by its name where it has a prefix', { files: { ...AT, prefix: 'f' } }, 'files__w*', 'f__w*'],
  ['in another case', { files: AT }, 'Files__w?', 'files__w?'],
  ['by the name of one that is gone', { files: AT }, 'inventory__drop', undefined],
])(
  '§18.9 file: a pattern that protects, of a server %s, is an error, as with servers of guards',
  async (_, mcpServers, pattern, meant) => {
    const guard = { name: 'keys', on: ['tools/call'], tools: [pattern, '*'], use: SECRETS };
    const rules = [{ who: 'everyone', may: [pattern] }, asks(pattern, 'service_ping')];
    const said = (member: string) =>
      expect.stringMatching(
        new RegExp(
          `${member}: "${pattern.replace(/[*?]/g, '\\$&')}" fits nothing, since no server of this file has names that begin with "\\w+__"\\.${meant === undefined ? '$' : ` Did you mean "${meant.replace(/[*?]/g, '\\$&')}"\\?$`}`,
        ),
      );
    expect(await findProblems({ mcpServers, rules, guards: [guard] })).toEqual([
      said('rules\\[1\\]: may'),
      said('guards\\[0\\]: tools'),
    ]);
  },
);

test.each<[string, object, FileOptions?]>([
  [
    'a server without a prefix may have it',
    { mcpServers: { files: AT, any: { ...AT, prefix: '' } } },
  ],
  [
    'the separator stands in names of built-in tools',
    { mcpServers: { service: AT }, separator: '_', rules: [asks('user_profile')] },
  ],
  [
    'a catalogue of one’s own may have it',
    { mcpServers: { files: AT } },
    { catalogFile: 'tools.ts' },
  ],
  ['there is no server at all', { mcpServers: {} }],
  ['its server is disabled', { mcpServers: { files: AT, githb: { ...AT, disabled: true } } }],
  [
    'its server is disabled and has a prefix',
    {
      mcpServers: { files: AT, my_db: { ...AT, prefix: 'db', disabled: true } },
      rules: [asks('db__drop')],
    },
  ],
  [
    'it is a pattern of any server',
    { mcpServers: { files: AT }, rules: [asks('*__drop', 'fil*__x', 'f?les__x')] },
  ],
])('§18.9 file: no error where %s', async (_, file, options) => {
  expect(await findProblems({ rules: [asks('githb__merge')], ...file }, options)).toEqual([]);
});

test('§18.9 guards: one that looks at a server which is a guard itself looks at nothing, and that is said', async () => {
  const [files, keeper] = await Promise.all([serveFiles(), serve()]);
  const gateway = await start({
    file: {
      mcpServers: {
        files: files.url,
        keeper: { url: keeper.url, tools: { exclude: ['nothing'] } },
      },
      guards: [
        { name: 'own', on: ['tools/call'], use: { mcp: 'keeper' } },
        { name: 'keys', on: ['tools/call'], servers: ['files', 'keeper'], use: SECRETS },
      ],
    },
  });
  await expect
    .poll(() => gateway.log.map(({ msg }) => msg))
    .toContain(
      'Guard keys: "servers" names keeper, which is a guard itself, and no guard looks at it.',
    );
  expect(listSaid(gateway)).toEqual([]);
});
