// §18.5: postern rules test.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { computeFingerprint } from '../../src/lock/lock-file.ts';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { endPosterns, makeFolder, runPostern } from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { buildTool, serveForTest } from '../support/upstreams/listing-server.ts';

afterEach(endPosterns);

const page = readFileSync(new URL('../../docs/rules.md', import.meta.url), 'utf8');
/** File, claims, and what is printed. */
const [, file = '', claims = '', printed = ''] =
  /## Test rules\n.*?```json\n(.*?)```.*?```json\n(.*?)```.*?```text\n\$ [^\n]*\n(.*?)```/s.exec(
    page,
  ) ?? [];

async function run(
  args: readonly string[],
  files: Readonly<Record<string, string>> = {},
  env: Readonly<Record<string, string>> = {},
  runCommand: typeof runInside = runInside,
) {
  const folder = await makeFolder();
  const all = { 'mcp.json': file, 'ann.json': claims, ...files };
  for (const [name, text] of Object.entries(all)) await writeFileIn(folder, name, text);
  const { code, stdout, stderr } = await runCommand(env, {
    args: ['rules', 'test', ...args],
    cwd: folder,
  });
  return { code, stdout, stderr: stderr.replaceAll(join(folder, '/'), '') };
}

const BOTH = ['--config', 'mcp.json', '--claims', 'ann.json'] as const;

const BY_ADDRESS = { when: "user.email.endsWith('@x.example')" };
const NO_EMAIL =
  'The claims have no "email", so rules see neither user.email nor user.email_verified.';
const toUnverified = (claim: string) =>
  `The claims do not say that the address is verified (${claim}), so rules see no user.email.`;

describe('postern rules test', () => {
  test('§18.5 prints what a user sees, and which rule says so, as the page shows', async () => {
    expect(await run(BOTH, {}, {}, runPostern)).toEqual({ code: 0, stdout: printed, stderr: '' });
  });

  test.each<[rule: object, claims: object, says: string | undefined]>([
    [BY_ADDRESS, {}, NO_EMAIL],
    [{ who: { claims: { email: 'ann@x.example' } } }, {}, NO_EMAIL],
    [{ when: 'user.email_verified' }, {}, NO_EMAIL],
    [
      BY_ADDRESS,
      { email: 1 },
      NO_EMAIL.replace('have no "email"', 'have an "email" that is not text'),
    ],
    [
      BY_ADDRESS,
      { email: 'ann@x.example', email_verified: false },
      toUnverified('"email_verified" is false'),
    ],
    [BY_ADDRESS, { email: 'ann@x.example', xms_edov: '0' }, toUnverified('"xms_edov" is "0"')],
    [
      { when: 'user.email_verified' },
      { email: 'ann@x.example' },
      'The claims do not say whether the address is verified (no "email_verified", nor "xms_edov" of Microsoft Entra), so rules see user.email, but no user.email_verified.',
    ],
    [BY_ADDRESS, { email: 'ann@x.example' }, undefined],
    [{ when: 'user.email_verified' }, { email: 'ann@x.example', email_verified: true }, undefined],
    [{ when: 'user.sub == "ann"' }, {}, undefined],
  ])(
    '§18.5 with the rule %j and the claims %j it says why rules see no address: %s',
    async (rule, claimed, says) => {
      const files = {
        'mcp.json': JSON.stringify({ rules: [{ ...rule, may: ['*'] }] }),
        'ann.json': JSON.stringify({ sub: 'ann', ...claimed }),
      };
      const text = await run([...BOTH, '--item', 'x'], files);
      expect(text.stdout.split('\n').slice(3)).toEqual(says === undefined ? [''] : ['', says, '']);
      const json = await run([...BOTH, '--item', 'x', '--json'], files);
      expect(json.stderr).toBe(says === undefined ? '' : `${says}\n`);
    },
  );

  test('§18.5 says where "everyone" stands in place of rules', async () => {
    const { code, stdout } = await run([...BOTH, '--item', 'anything'], {
      'mcp.json': '{ "rules": "everyone" }',
    });
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^allowed {2}anything {2}rules is "everyone"$/m),
    ]);
  });

  test('§18.5 needs no settings of logins and pages, and is not kept by them', async () => {
    const env = {
      ADMIN_GROUPS: 'ops',
      OAUTH_MODE: 'broker',
      WORKERS: '4',
      AUDIT_REQUIRED: 'true',
    };
    expect(await run(BOTH, {}, env)).toEqual({ code: 0, stdout: printed, stderr: '' });
  });

  test('§18.5 prints the same as JSON', async () => {
    const { code, stdout } = await run([
      ...BOTH,
      '--json',
      '--item',
      'files__read_file',
      '--item',
      'resource:config://x',
      '--item',
      'prompt:x',
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual([
      {
        kind: 'tool',
        name: 'files__read_file',
        server: '',
        decision: 'allowed',
        byArguments: true,
        rule: 'mcp.json:6, rules[2]',
      },
      {
        kind: 'resource',
        name: 'config://x',
        server: '',
        decision: 'scopes_missing',
        scopes: ['config'],
        rule: 'mcp.json:5, rules[1]',
      },
      { kind: 'prompt', name: 'x', server: '', decision: 'denied', rule: null },
    ]);
  });

  test.each([
    ['/docs/a', 0, /^allowed {2}files__read_file {2}mcp\.json:6, rules\[2\]$/m],
    [
      '/etc',
      1,
      /^denied {2}files__read_file {2}no rule allows it with these arguments; with others mcp\.json:6, rules\[2\] does$/m,
    ],
  ])('§18.5 a call with the path %s ends with exit code %s', async (path, code, says) => {
    const args = ['--tool', 'files__read_file', '--args', JSON.stringify({ path })];
    const found = await run([...BOTH, ...args]);
    expect(found.stdout).toMatch(says);
    expect(found.code).toBe(code);
  });

  test('§18.5 a call that no arguments would get allowed is told apart, also as JSON', async () => {
    const never = await run([...BOTH, '--tool', 'files__delete']);
    expect(never.stdout).toMatch(/^denied {2}files__delete {2}no rule allows it$/m);
    const { stdout } = await run([...BOTH, '--json', '--tool', 'files__read_file']);
    expect(JSON.parse(stdout)).toMatchObject([
      { decision: 'denied', rule: null, ruleWithOtherArguments: 'mcp.json:6, rules[2]' },
    ]);
  });

  test.each([
    ['files__red_file', 'files__read_file'],
    ['serivce_ping', 'service_ping'],
    ['notes__serach', 'notes__search'],
  ])('§18.5 of a tool %s that is misspelled it asks whether %s was meant', async (name, meant) => {
    const { mcpServers: _, ...others } = JSON.parse(file);
    const mcpServers = { notes: { url: 'http://127.0.0.1:1/mcp' } };
    const tools = { search: [computeFingerprint('tool', buildTool('search'))] };
    const servers = { notes: { prompts: {}, tools } };
    const found = await run([...BOTH, '--tool', name], {
      'mcp.json': JSON.stringify({ ...others, mcpServers }),
      'postern.lock': JSON.stringify({ version: 1, servers }),
    });
    expect(found.code).toBe(1);
    expect(found.stdout).toContain(`Did you mean ${meant}?`);
    const right = await run([...BOTH, '--tool', 'files__delete', '--json']);
    expect(right.stderr).toBe('');
  });

  test('§18.5 with JSON the patterns that fit nothing are on stderr', async () => {
    const { stdout, stderr } = await run([...BOTH, '--json']);
    expect(JSON.parse(stdout)).toHaveLength(5);
    expect(stderr).toBe('"files__read_file" matches nothing: mcp.json:6, rules[2]\n');
  });

  test('§18.5 the client and what the server says can be given', async () => {
    const rules = [
      { who: { clients: ['build-*'] }, may: ['ci__*'] },
      { when: "tool.annotations.readOnlyHint && tool.server == 'wiki'", may: ['wiki__*'] },
    ];
    const mcpServers = { wiki: { url: 'https://wiki.example/mcp' } };
    const files = {
      'mcp.json': JSON.stringify({ mcpServers, rules }),
      'ann.json': '{"sub":"ann"}',
    };
    const hint = ['--annotations', '{"readOnlyHint": true}'];
    const codes = [
      await run([...BOTH, '--tool', 'ci__start'], files),
      await run([...BOTH, '--tool', 'ci__start', '--client', 'build-7'], files),
      await run([...BOTH, '--tool', 'wiki__read'], files),
      await run([...BOTH, '--tool', 'wiki__read', ...hint], files),
      await run([...BOTH, '--tool', 'other__read', ...hint], files),
    ].map(({ code }) => code);
    expect(codes).toEqual([1, 0, 1, 0, 1]);
  });

  test('§18.5 what servers offer is asked of them, without what the lock hides', async () => {
    const hint = { annotations: { readOnlyHint: true } };
    const tools = [buildTool('search', hint), buildTool('edit'), buildTool('new', hint)];
    const wiki = await serveForTest({ tools, prompts: [{ name: 'greet' }] });
    const config = {
      builtIn: false,
      mcpServers: { wiki: { url: wiki.url, prefix: 'w' }, gone: { url: 'http://127.0.0.1:1/mcp' } },
      rules: [{ when: 'tool.annotations.readOnlyHint', may: ['w__*'] }],
    };
    const files = { 'mcp.json': JSON.stringify(config) };
    const namesIn = async (more: Readonly<Record<string, string>>) => {
      const { code, stdout, stderr } = await run([...BOTH, '--json'], { ...files, ...more });
      expect(code, stderr).toBe(0);
      expect(stderr).toContain('The MCP server gone is not available: it refuses connections');
      const rows: readonly { readonly name: string; readonly decision: string }[] =
        JSON.parse(stdout);
      return Object.fromEntries(rows.map(({ name, decision }) => [name, decision]));
    };
    expect(await namesIn({})).toEqual({
      w__search: 'allowed',
      w__edit: 'denied',
      w__new: 'allowed',
      w__greet: 'denied',
    });
    const approved = tools.filter(({ name }) => name !== 'new');
    const fingerprints = approved.map((tool) => [tool.name, [computeFingerprint('tool', tool)]]);
    const server = { prompts: {}, tools: Object.fromEntries(fingerprints) };
    const lock = JSON.stringify({ version: 1, servers: { wiki: server } });
    expect(await namesIn({ 'postern.lock': lock })).toEqual({
      w__search: 'allowed',
      w__edit: 'denied',
    });
  });

  test('§18.5 names cannot move the cursor of the terminal', async () => {
    const { stdout } = await run([...BOTH, '--item', 'a\u001b[2Jb']);
    expect(stdout).toContain('"a\\u001b[2Jb"');
    expect(stdout).not.toContain('\u001b');
  });

  test('§18.5 all problems of the rules are told with their places', async () => {
    const rules = [
      { who: 'everyone', may: ['tool:x'] },
      { when: 'usr.sub == 1', may: ['prompt:'] },
    ];
    const found = await run(BOTH, { 'mcp.json': JSON.stringify({ rules }, undefined, 1) });
    expect(found.code).toBe(1);
    expect(found.stdout).toBe('');
    expect(found.stderr).toMatch(/mcp\.json:\d+: rules\[0\].*tools have none/);
    expect(found.stderr).toMatch(/mcp\.json:\d+: rules\[1\].*"usr" is unknown/);
    expect(found.stderr).toMatch(/mcp\.json:\d+: rules\[1\].*names nothing/);
  });

  test.each<[readonly string[], string]>([
    [['--claims', 'ann.json'], 'needs the configuration file, for example --config mcp.json'],
    [['--config', 'mcp.json'], 'needs the claims of a token, for example --claims ann.json'],
    [['--config', 'mcp.json', '--claims', 'nobody.json'], '--claims: nobody.json cannot be read'],
    [
      ['--config', 'mcp.json', '--claims', 'list.json'],
      '--claims must be a file with a JSON object',
    ],
    [[...BOTH, '--tool', 'x', '--args', '[]'], '--args must be a JSON object'],
    [[...BOTH, '--annotations', 'x'], '--annotations must be a JSON object'],
    [[...BOTH, '--client'], '--client needs a value, for example --client cursor'],
    [[...BOTH, 'now'], 'Too many arguments: now.'],
    [[...BOTH, '--catalog', 'x'], 'postern rules test has no option --catalog.'],
  ])('§18.5 %j is refused: %s', async (args, says) => {
    const { code, stdout, stderr } = await run(args, { 'list.json': '[]' });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(says);
    expect(stderr).toMatch(/\npostern rules test --help lists its options, with examples\.\n$/);
  });

  test.each([
    [
      ['rules'],
      'postern rules is not complete. There is: postern rules test, postern rules replay.',
    ],
    [['rules', 'tset'], 'Unknown command: rules tset. Did you mean rules test?'],
  ])('§18.5 postern %j is refused: %s', async (args, says) => {
    const { code, stderr } = await runInside({}, { args });
    expect(code).toBe(2);
    expect(stderr.startsWith(says), stderr).toBe(true);
  });

  test('§18.5 a program that ends: nobody is told that it is started again', async () => {
    const mcpServers = { broken: { command: 'node', args: ['-e', 'process.exit(7)'] } };
    const config = JSON.stringify({ mcpServers, rules: [{ who: 'everyone', may: ['*'] }] });
    const { stderr } = await run(BOTH, { 'mcp.json': config });
    expect(stderr).toContain('The MCP server broken is not available: ');
    expect(stderr).toContain('ended with exit code 7"');
    expect(stderr).not.toContain('started again');
  });
});

describe('postern rules test: who is asked', () => {
  const asking = JSON.stringify({
    rules: [
      { who: 'everyone', may: ['files__*'] },
      { who: 'everyone', may: ['files__write*'], ask: 'user' },
      { when: 'args.path.startsWith("/etc")', may: ['files__write*'], ask: 'operator' },
    ],
  });

  test('§27.6 says who is asked before a call runs, and which rule says so', async () => {
    const files = { 'mcp.json': asking };
    const called = (path: string) => [
      ...BOTH,
      '--tool',
      'files__write_file',
      '--args',
      JSON.stringify({ path }),
    ];
    expect((await run(called('/tmp/a'), files)).stdout).toContain(
      'mcp.json:1, rules[0]; the user is asked in their client first: mcp.json:1, rules[1]',
    );
    expect((await run(called('/etc/a'), files)).stdout).toContain(
      'an operator is asked first: mcp.json:1, rules[2]',
    );
    const listed = await run([...BOTH, '--item', 'files__write_file', '--json'], files);
    expect(JSON.parse(listed.stdout)).toEqual([
      expect.objectContaining({
        decision: 'allowed',
        ask: 'operator',
        askRule: 'mcp.json:1, rules[2]',
        askByArguments: true,
      }),
    ]);
    const read = await run([...BOTH, '--item', 'files__read_file'], files);
    expect(read.stdout).not.toContain('asked');
  });
});
