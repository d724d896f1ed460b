// What commands say of views, and of what lists of tools cost.
import { afterEach, expect, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { endPosterns, makeFolder } from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { buildTool, serveForTest } from '../support/upstreams/listing-server.ts';

afterEach(endPosterns);

const ANONYMOUS = { AUTH_REQUIRED: 'false' } as const;
/** Ten tools of some 2,500 tokens. */
const COSTLY = Array.from({ length: 10 }, (_, at) =>
  buildTool(`dump_${at}`, { description: 'search the pages of the wiki for words '.repeat(320) }),
);

async function makeProject(rest: object = {}): Promise<string> {
  const wiki = await serveForTest({
    tools: [buildTool('search'), buildTool('read'), ...COSTLY],
  });
  const files = await serveForTest({ tools: [buildTool('read_file'), buildTool('write_file')] });
  const cwd = await makeFolder();
  const content = {
    mcpServers: { wiki: { url: wiki.url }, files: { url: files.url } },
    builtIn: false,
    views: { research: { title: 'Research desk', tools: ['wiki__search', 'files__read_file'] } },
    ...rest,
  };
  await writeFileIn(cwd, 'mcp.json', JSON.stringify(content));
  await writeFileIn(cwd, 'ann.json', JSON.stringify({ sub: 'ann', groups: ['staff'] }));
  return cwd;
}

const run = (cwd: string, ...args: readonly string[]) =>
  runInside(ANONYMOUS, { args: [...args], cwd });

test('§25.1 config: names the views, and asks no server', async () => {
  const { code, stdout } = await run(await makeProject(), 'config', '--config', 'mcp.json');
  expect(code).toBe(0);
  expect(stdout).toContain('  view research: Research desk, at /mcp/research\n');
  expect(stdout).not.toContain('tokens');
});

test('§25.2 config --lists: what each path costs, with the most expensive tools where it is much', async () => {
  const { code, stdout } = await run(
    await makeProject(),
    ...['config', '--lists', '--config', 'mcp.json'],
  );
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ {2}\/mcp: 14 tools, about 2\d,\d{3} tokens$/m);
  expect(stdout).toMatch(/^ {4}This is a lot\. The most expensive: wiki__dump_0 2,\d{3}, /m);
  expect(stdout).toMatch(/^ {2}\/mcp\/wiki: 12 tools, about 2\d,\d{3} tokens$/m);
  expect(stdout).toMatch(/^ {2}\/mcp\/research: 2 tools, about \d\d tokens$/m);
});

test('§25.2 config --lists: a server that does not answer is not taken for one without tools', async () => {
  const { stdout } = await run(
    await makeProject({
      mcpServers: { down: { url: 'http://127.0.0.1:1/mcp' } },
      views: { all: {} },
    }),
    ...['config', '--lists', '--config', 'mcp.json'],
  );
  expect(stdout).toMatch(
    /^ {2}\/mcp\/down: unknown, since it did not answer or only lists tools for users$/m,
  );
  expect(stdout).toMatch(
    /^ {2}\/mcp\/all: 0 tools, about 0 tokens, without servers that did not answer or only list tools for users$/m,
  );
});

test('§25.2 doctor: says what each list costs, warns of one over 20,000 tokens, and of names that nobody has', async () => {
  const cwd = await makeProject({
    views: { research: { tools: ['wiki__serch', 'files__read_file'] } },
  });
  const { stdout } = await run(cwd, 'doctor', '--config', 'mcp.json', '--json');
  const { findings } = JSON.parse(stdout);
  const lists = findings.filter(({ check }: { check: string }) => check === 'lists');
  expect(lists).toMatchObject([
    {
      status: 'warning',
      what: expect.stringMatching(/^\/mcp: 14 tools, about 2\d,\d{3} tokens\.$/),
    },
    { status: 'warning', why: expect.stringContaining('over 20,000 is much') },
    { status: 'ok', what: expect.stringMatching(/^\/mcp\/files: 2 tools, about \d\d tokens\.$/) },
    { status: 'ok', what: expect.stringMatching(/^\/mcp\/research: 1 tool, about \d\d tokens\.$/) },
  ]);
  expect(findings.filter(({ check }: { check: string }) => check === 'views')).toMatchObject([
    {
      status: 'warning',
      what: 'View research: no tool is called "wiki__serch". Did you mean "wiki__search"?',
    },
  ]);
});

test('§26.1 doctor and config --lists: a guard about tools that nobody has is named, with the nearest name', async () => {
  const cwd = await makeProject({
    views: {},
    guards: [
      {
        name: 'keys',
        on: ['tools/result'],
        tools: ['wiki__*', 'files__raed_file'],
        use: { builtIn: 'secrets', action: 'redact' },
      },
    ],
  });
  const said =
    'Guard keys: no tool is called "files__raed_file", so it looks at nothing by that pattern. Did you mean "files__read_file"?';
  const doctor = await run(cwd, 'doctor', '--config', 'mcp.json', '--json');
  expect(JSON.parse(doctor.stdout).findings).toContainEqual(
    expect.objectContaining({ check: 'guard', status: 'warning', what: said }),
  );
  const config = await run(cwd, 'config', '--lists', '--config', 'mcp.json');
  expect(config.stdout).toContain(said);
  expect(config.stdout).not.toContain('wiki__*');
});

test('§18.9 doctor: a rule that asks about no tool is a warning, also where another server does not answer', async () => {
  const { url } = await serveForTest({ tools: [buildTool('drop')] });
  const cwd = await makeProject({
    mcpServers: {
      db: { url, tools: { exclude: ['dorp'] } },
      github: { url: 'http://127.0.0.1:1/mcp' },
    },
    views: { desk: { tools: ['db__dorp', 'github__serch'] } },
    rules: [
      { who: 'everyone', may: ['*'] },
      { who: 'everyone', may: ['db__drpo', 'github__x'], ask: 'user' },
    ],
  });
  const { stdout } = await run(cwd, 'doctor', '--config', 'mcp.json', '--json');
  const said: readonly { readonly check: string; readonly what: string }[] =
    JSON.parse(stdout).findings;
  expect(
    said.filter(({ what }) => what.includes(': no tool')).map(({ check, what }) => [check, what]),
  ).toEqual([
    [
      'approvals',
      expect.stringMatching(
        /rules\[1\]: no tool is called "db__drpo", .* Did you mean "db__drop"\?$/,
      ),
    ],
    [
      'server.exclude',
      expect.stringMatching(
        /^Server db: no tool of its own is called "dorp", .* Did you mean "drop"\?$/,
      ),
    ],
    ['views', expect.stringMatching(/^View desk: no tool is called "db__dorp"\./)],
  ]);
});

test('§25.1 rules test --view: only what the view has, by the rules', async () => {
  const cwd = await makeProject({
    rules: [{ who: { groups: ['staff'] }, may: ['wiki__*'] }],
  });
  const asked = ['rules', 'test', '--config', 'mcp.json', '--claims', 'ann.json', '--json'];
  const { stdout } = await run(cwd, ...asked, '--view', 'research');
  expect(JSON.parse(stdout)).toMatchObject([
    { name: 'wiki__search', decision: 'allowed' },
    { name: 'files__read_file', decision: 'denied' },
  ]);
  const unknown = await run(cwd, ...asked, '--view', 'reserch');
  expect([unknown.code, unknown.stderr]).toEqual([
    2,
    expect.stringContaining('--view: the file has no view "reserch". It has research.'),
  ]);
});

test('§25.1 connect --view: the address and the name of the view', async () => {
  const { stdout } = await run(await makeProject(), 'connect', 'cursor', '--view', 'research');
  expect(stdout).toContain('"postern-research"');
  expect(stdout).toContain('http://localhost:3000/mcp/research');
});
