// §28: postern rules replay, over what a running gateway wrote.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { createLocalCatalog, definePrompt, defineTool } from '../../../src/index.ts';
import { writeFileIn } from '../../support/catalogs/catalog-files.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { pick, type Random, randomOf } from '../../support/fuzz/seeded-random.ts';
import { type AuditLine, createAuditLog } from '../../support/gateway/audit-log.ts';
import { endPosterns, makeFolder } from '../../support/gateway/process.ts';
import { runInside } from '../../support/gateway/run-inside.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

afterEach(endPosterns);

interface RunOptions {
  readonly files?: Readonly<Record<string, string | Buffer>>;
  readonly input?: string;
}

async function run(args: readonly string[], { files = {}, input }: RunOptions = {}) {
  const folder = await makeFolder();
  for (const [name, content] of Object.entries(files)) {
    if (typeof content === 'string') await writeFileIn(folder, name, content);
    else writeFileSync(join(folder, name), content);
  }
  const { code, stdout, stderr } = await runInside(
    {},
    { args: ['rules', 'replay', ...args], cwd: folder, ...(input !== undefined && { input }) },
  );
  return { code, stdout, stderr: stderr.replaceAll(join(folder, '/'), '') };
}

const toFile = (rules: unknown, rest: object = {}) =>
  JSON.stringify({ mcpServers: {}, rules, ...rest }, undefined, 1);

const line = (members: object) =>
  `${JSON.stringify({ time: '2026-11-22T14:30:07.481Z', event: 'tool_call', outcome: 'success', user: 'ann', ...members })}\n`;

async function replay(lines: readonly object[], rules: unknown, rest: object = {}) {
  const files = { 'audit.log': lines.map(line).join(''), 'mcp.json': toFile(rules, rest) };
  const { code, stdout, stderr } = await run([...BOTH, '--json'], { files });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

const BOTH = ['--audit', 'audit.log', '--config', 'mcp.json'] as const;
const page = readFileSync(new URL('../../../docs/rules.md', import.meta.url), 'utf8');

describe('postern rules replay', () => {
  test('§28.3 prints what would be different, what nobody can tell, and what was used, as the page shows', async () => {
    const [, file = '', log = '', printed = ''] =
      /## Replay past calls\n.*?```json\n(.*?)```.*?```json\n(.*?)```.*?```text\n\$ [^\n]*\n(.*?)```/s.exec(
        page,
      ) ?? [];
    const found = await run(BOTH, { files: { 'mcp.json': file, 'audit.log': log } });
    expect(found).toEqual({ code: 0, stdout: printed, stderr: '' });
  });

  test('§28.3 a time that is no ISO 8601 is no time: nothing of it is printed, and its call counts', async () => {
    const sly = '2026-01-01T00:00:00Z\nNothing would be refused.\u001b[2K';
    const times = [
      sly,
      '9999',
      'x',
      7,
      undefined,
      '2026-13-45T00:00:00Z',
      '2026-11-22T14:30:07.481Z',
      '2026-11-22T15:30:07+02:00',
    ];
    const files = {
      'mcp.json': toFile([{ who: 'everyone', may: ['other'] }]),
      'audit.log': times.map((time) => line({ time, tool: 'any' })).join(''),
    };
    const { code, stdout } = await run(BOTH, { files });
    expect(code).toBe(0);
    expect(stdout).toContain(
      '8 calls from 2026-11-22T15:30:07+02:00 to 2026-11-22T14:30:07.481Z, by ',
    );
    expect(stdout).not.toMatch(/Nothing would|2026-01|9999|\u001b/);
  });

  test('§28.3 without any time the calls are judged all the same', async () => {
    const files = {
      'mcp.json': toFile([{ who: 'everyone', may: ['other'] }]),
      'audit.log': line({ time: 'yesterday', tool: 'any' }),
    };
    const { code, stdout } = await run(BOTH, { files });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^1 call, by mcp\.json:\n1 would be refused/);
    const { stdout: json } = await run([...BOTH, '--json'], { files });
    expect(JSON.parse(json)).not.toHaveProperty('from');
    expect(JSON.parse(json)).toMatchObject({ calls: 1 });
  });

  test('§28.3 users of two issuers are two, also where they have one user ID', async () => {
    const there = 'https://partner.example/\nx';
    const files = {
      'mcp.json': toFile([{ who: 'everyone', may: ['other', 'any'] }]),
      'audit.log':
        line({ tool: 'any', outcome: 'denied', reason: 'rules' }) +
        line({ tool: 'any', outcome: 'denied', reason: 'rules', issuer: there }) +
        line({ tool: 'other' }) +
        line({ tool: 'other', issuer: there }),
    };
    const { changes, rules } = JSON.parse((await run([...BOTH, '--json'], { files })).stdout);
    expect(changes).toHaveLength(2);
    expect(changes.map(({ issuer }: { issuer?: string }) => issuer)).toContain(there);
    expect(rules[0].used).toEqual([{ name: 'other', calls: 2, users: 2 }]);
    const { stdout } = await run(BOTH, { files });
    expect(stdout).toContain('ann of "https://partner.example/\\nx"');
  });

  const STAFF = { who: { groups: ['staff'] }, may: ['wiki__*'] };

  test.each<[title: string, line: object, rules: unknown, found: object]>([
    [
      'groups that the line has',
      { tool: 'wiki__read', who: { groups: ['staff'] }, outcome: 'denied', reason: 'rules' },
      [STAFF],
      {
        changes: [
          {
            change: 'allowed',
            name: 'wiki__read',
            user: 'ann',
            rules: ['mcp.json:4, rules[0]'],
            calls: 1,
          },
        ],
      },
    ],
    [
      'a user without groups',
      { tool: 'wiki__read', who: { groups: null } },
      [STAFF],
      { changes: [{ change: 'refused', rules: ['mcp.json:4, rules[0]'] }] },
    ],
    [
      'a line without groups',
      { tool: 'wiki__read' },
      [STAFF],
      { changes: [], unknown: [{ missing: ['user.groups'], rules: ['mcp.json:4, rules[0]'] }] },
    ],
    [
      'a line without groups, of a name that the rule is not about',
      { tool: 'files__read' },
      [STAFF],
      { changes: [{ change: 'refused', rules: [] }], unknown: [] },
    ],
    [
      'nobody who logged in',
      { tool: 'wiki__read', user: undefined },
      [STAFF],
      { changes: [{ change: 'refused', user: null }] },
    ],
    [
      'a scope that is missing',
      { tool: 'wiki__read', who: { scopes: ['openid'] } },
      [{ who: { scopes: ['wiki'] }, may: ['*'] }],
      { changes: [{ change: 'needs_scope' }] },
    ],
    [
      'a scope that is there',
      {
        tool: 'wiki__read',
        who: { scopes: ['wiki'] },
        outcome: 'denied',
        reason: 'insufficient_scope',
      },
      [{ who: { scopes: ['wiki'] }, may: ['*'] }],
      { changes: [{ change: 'allowed' }] },
    ],
    [
      'arguments',
      { tool: 'wiki__read' },
      [{ when: "args.path == '/'", may: ['*'] }],
      { unknown: [{ missing: ['args'] }] },
    ],
    [
      'arguments that make no difference, since the rest does not hold',
      { tool: 'wiki__read' },
      [{ when: "user.sub == 'bob' && args.path == '/'", may: ['*'] }],
      { changes: [{ change: 'refused' }], unknown: [] },
    ],
    [
      'what a server says of a tool',
      { tool: 'wiki__read', server: 'wiki' },
      [{ when: "tool.server == 'wiki' && tool.annotations.readOnlyHint", may: ['*'] }],
      { unknown: [{ missing: ['tool.annotations'] }] },
    ],
    [
      'the server of a tool',
      { tool: 'wiki__read', server: 'wiki' },
      [{ when: "tool.server == 'files'", may: ['*'] }],
      { changes: [{ change: 'refused' }], unknown: [] },
    ],
    [
      'all claims, of which the log has those alone that rules named',
      { tool: 'wiki__read', who: { claims: { level: 1 } } },
      [{ when: "'level' in user.claims", may: ['*'] }],
      { unknown: [{ missing: ['user.claims'] }] },
    ],
    [
      'a claim that the user does not have',
      { tool: 'wiki__read', who: { claims: { level: null } } },
      [{ when: 'has(user.claims.level)', may: ['*'] }],
      { changes: [{ change: 'refused' }], unknown: [] },
    ],
    [
      'one more claim than the line has',
      { tool: 'wiki__read', who: { claims: { level: 1 } } },
      [{ who: { claims: { level: 1, team: 'a' } }, may: ['*'] }],
      { unknown: [{ missing: ['user.claims.team'] }] },
    ],
    [
      'an address that nobody has verified',
      { tool: 'wiki__read', who: { email_verified: false, claims: { email: 'ann@x.example' } } },
      [{ who: { claims: { email: 'ann@x.example' } }, may: ['*'] }],
      { changes: [{ change: 'refused' }] },
    ],
    [
      'another rule that needs nothing of what is missing',
      { tool: 'wiki__read' },
      [
        { when: "args.path == '/'", may: ['*'] },
        { who: { clients: ['cursor'] }, may: ['wiki__*'] },
      ],
      { unknown: [{ missing: ['args'] }] },
    ],
    [
      'a client that is known',
      { tool: 'wiki__read', client: 'cursor' },
      [
        { when: "args.path == '/'", may: ['*'] },
        { who: { clients: ['cursor'] }, may: ['wiki__*'] },
      ],
      { unknown: [], changes: [], stayAllowed: 1 },
    ],
    [
      'a view',
      { tool: 'wiki__read', view: 'research' },
      [{ who: { views: ['research'] }, may: ['*'] }],
      { stayAllowed: 1 },
    ],
    [
      'a name that is cut',
      { tool: `${'a'.repeat(255)}…` },
      [{ who: 'everyone', may: ['a*'] }],
      { unknown: [{ missing: ['name'] }] },
    ],
    [
      'a URI without its query',
      { event: 'resource_read', resource: 'wiki://start', stripped: true },
      [{ who: 'everyone', may: ['resource:wiki://*'] }],
      { unknown: [{ missing: ['name'], kind: 'resource' }] },
    ],
    [
      'a URI without its query, where no rule is about resources',
      { event: 'resource_read', resource: 'wiki://start', stripped: true },
      [{ who: 'everyone', may: ['prompt:*'] }],
      { changes: [{ change: 'refused', kind: 'resource' }] },
    ],
    [
      'what the lock denied',
      { tool: 'wiki__read', outcome: 'denied', reason: 'lock' },
      [{ who: 'everyone', may: ['*'] }],
      { calls: 0, stopped: 1, changes: [] },
    ],
    [
      'a name that does not exist',
      { tool: 'wiki__raed', outcome: 'failure', reason: 'invalid_params' },
      [{ who: 'everyone', may: ['x'] }],
      { calls: 0, unjudged: 1, changes: [] },
    ],
    [
      'somebody who is asked first',
      { tool: 'wiki__edit' },
      [
        { who: 'everyone', may: ['*'] },
        { who: 'everyone', may: ['*__edit'], ask: 'operator' },
      ],
      {
        stayAllowed: 1,
        asked: [{ ask: 'operator', rules: ['mcp.json:10, rules[1]'], calls: 1 }],
        mayBeAsked: [],
      },
    ],
    [
      'somebody who may be asked first, by arguments',
      { tool: 'wiki__edit' },
      [
        { who: 'everyone', may: ['*'] },
        { who: 'everyone', may: ['*__edit'], ask: 'user' },
        { when: 'args.all', may: ['*__edit'], ask: 'operator' },
      ],
      {
        asked: [{ ask: 'user' }],
        mayBeAsked: [{ missing: ['args'], rules: ['mcp.json:17, rules[2]'] }],
      },
    ],
  ])('§28.2 %s', async (_title, given, rules, wanted) => {
    expect(await replay([given], rules)).toMatchObject(wanted);
  });

  test('§28.2 names at the path of a server are its own there; the rules have their names at /mcp', async () => {
    const mcpServers = { wiki: { url: 'http://127.0.0.1:1/mcp', prefix: 'w' } };
    const lines = [{ tool: 'read', view: 'wiki', server: 'wiki' }];
    const found = await replay(lines, [{ who: 'everyone', may: ['w__*'] }], { mcpServers });
    expect(found).toMatchObject({ stayAllowed: 1, rules: [{ used: [{ name: 'w__read' }] }] });
  });

  test('§28.2 apps: URIs at the path of a server, and tools by the names of their server, are judged as at /mcp', async () => {
    const mcpServers = { wiki: { url: 'http://127.0.0.1:1/mcp' } };
    const lines = [
      { event: 'resource_read', resource: 'ui://pages/view', view: 'wiki', server: 'wiki' },
      { tool: 'refresh', server: 'wiki' },
    ].map(({ event = 'tool_call', ...rest }) => ({ event, ...rest }));
    const rules = [{ who: 'everyone', may: ['resource:ui://wiki/pages/*', 'wiki__refresh'] }];
    expect(await replay(lines, rules, { mcpServers })).toMatchObject({ stayAllowed: 2 });
  });

  test('§28.2 the tool by which users connect a server is allowed to whoever may use something of it', async () => {
    const url = 'https://wiki.example/mcp';
    const mcpServers = { wiki: { url, auth: { type: 'oauth' } } };
    const rest = { mcpServers };
    const lines = [{ tool: 'wiki__connect', server: 'wiki' }];
    const some = await replay(lines, [{ when: 'args.x == 1', may: ['wiki__read'] }], rest);
    expect(some).toMatchObject({ stayAllowed: 1 });
    const none = await replay(lines, [{ who: 'everyone', may: ['files__read'] }], rest);
    expect(none).toMatchObject({ changes: [{ change: 'refused' }] });
  });

  test('§28.2 lines of the log among them are passed over, and what is no JSON is counted', async () => {
    const log = [
      '{"level":"info","msg":"Listening."}\n',
      line({ event: 'login' }),
      line({ tool: 'a', outcome: 'started' }),
      line({ tool: 'a' }),
      '{"time":"2026\n',
    ].join('');
    const files = { 'audit.log': log, 'mcp.json': toFile([{ who: 'everyone', may: ['a'] }]) };
    const { stdout } = await run([...BOTH, '--json'], { files });
    expect(JSON.parse(stdout)).toMatchObject({ calls: 1, unreadable: 1 });
  });

  test('§28.2 several files, gzipped ones and standard input are one log', async () => {
    const files = {
      'mcp.json': toFile([{ who: 'everyone', may: ['a', 'b', 'c'] }]),
      'audit.log.2': gzipSync(line({ tool: 'a', time: '2026-11-01T00:00:00.000Z' })),
      'audit.log.1': line({ tool: 'b' }),
    };
    const logs = ['audit.log.1', 'audit.log.2', '-'].flatMap((name) => ['--audit', name]);
    const { stdout, stderr } = await run([...logs, '--config', 'mcp.json', '--json'], {
      files,
      input: line({ tool: 'c', time: '2026-12-01T00:00:00.000Z' }),
    });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toMatchObject({
      calls: 3,
      from: '2026-11-01T00:00:00.000Z',
      to: '2026-12-01T00:00:00.000Z',
      rules: [{ unused: [] }],
    });
  });

  test('§28.3 what was used of a rule: names, calls, users, and patterns that fit none of them', async () => {
    const lines = [
      { tool: 'wiki__read' },
      { tool: 'wiki__read', user: 'bob' },
      { tool: 'wiki__edit', outcome: 'denied', reason: 'rules' },
      { event: 'prompt_get', prompt: 'greet' },
    ];
    const rules = [
      { who: 'everyone', may: ['wiki__*', 'files__*', 'prompt:gre*'] },
      { who: 'everyone', may: ['wiki__read'] },
    ];
    expect((await replay(lines, rules)).rules).toEqual([
      {
        rule: 'mcp.json:4, rules[0]',
        may: rules[0]?.may,
        used: [
          { name: 'wiki__read', calls: 2, users: 2 },
          { name: 'prompt:greet', calls: 1, users: 1 },
        ],
        unused: ['files__*'],
      },
      { rule: 'mcp.json:12, rules[1]', may: ['wiki__read'], used: [], unused: ['wiki__read'] },
    ]);
  });

  test('§28.3 names cannot move the cursor of the terminal', async () => {
    const files = { 'audit.log': line({ tool: 'a\u001b[2Jb' }), 'mcp.json': toFile([STAFF]) };
    const { stdout } = await run(BOTH, { files });
    expect(stdout).toContain('"a\\u001b[2Jb"');
    expect(stdout).not.toContain('\u001b');
  });

  test.each<[args: readonly string[], code: number, says: string]>([
    [['--config', 'mcp.json'], 2, 'needs an audit log (AUDIT_LOG), for example --audit audit.log'],
    [['--audit', 'audit.log'], 2, 'needs the configuration file, for example --config mcp.json'],
    [['--audit', 'no.log', '--config', 'mcp.json'], 2, '--audit: no.log cannot be read (ENOENT).'],
    [['--audit', 'broken.gz', '--config', 'mcp.json'], 2, '--audit: broken.gz cannot be read'],
    [['--audit', 'other.log', '--config', 'mcp.json'], 1, 'other.log has no lines for calls'],
    [['--audit', 'empty.log', '--config', 'mcp.json'], 1, 'empty.log has no lines for calls'],
    [['--audit', 'empty.gz', '--config', 'mcp.json'], 1, 'empty.gz has no lines for calls'],
    [['--audit', '-', '--config', 'mcp.json'], 1, '- has no lines for calls'],
  ])('§28.3 %j ends with exit code %s: %s', async (args, code, says) => {
    const files = {
      'mcp.json': toFile([STAFF]),
      'audit.log': line({ tool: 'a' }),
      'other.log': '{"level":"info"}\n',
      'empty.log': '',
      'empty.gz': gzipSync(''),
      'broken.gz': gzipSync(line({ tool: 'a' })).subarray(0, 30),
    };
    const found = await run(args, { files });
    expect({ code: found.code, stdout: found.stdout }).toEqual({ code, stdout: '' });
    expect(found.stderr).toContain(says);
  });
});

test.each(['empty.log', '-'])('§28.3 a log behind an empty one (%s) is judged', async (empty) => {
  const files = {
    'mcp.json': toFile([{ who: 'everyone', may: ['wiki__*'] }]),
    'empty.log': '',
    'audit.log': line({ tool: 'wiki__read' }),
  };
  const found = await run(['--audit', empty, ...BOTH, '--json'], { files });
  expect(JSON.parse(found.stdout)).toMatchObject({ calls: 1, stayAllowed: 1 });
});

// The same calls of a running gateway, by fifty changed files, and what replay says of the first log by each of them.

const USERS: readonly { readonly sub: string; readonly path: string; readonly claims: object }[] = [
  {
    sub: 'ann',
    path: '/mcp',
    claims: { groups: ['staff', 'ops'], azp: 'cursor', scope: 'openid write' },
  },
  {
    sub: 'bob',
    path: '/mcp',
    claims: { groups: ['staff'], azp: 'build-7', department: ['legal', 'it'] },
  },
  {
    sub: 'cyd',
    path: '/mcp/wiki',
    claims: { groups: ['ops'], level: 3, realm_access: { roles: ['auditor'], x: 1 } },
  },
  {
    sub: 'dan',
    path: '/mcp/desk',
    claims: { email: 'dan@x.example', email_verified: true, level: null },
  },
  {
    sub: 'eve',
    path: '/mcp/desk',
    claims: { email: 'dan@x.example', email_verified: false, scp: ['write'] },
  },
  {
    sub: 'fay',
    path: '/mcp',
    claims: { email: 'fay@x.example', name: 'Fay', level: 1, azp: 'cursor' },
  },
];

const NAMES = ['files__read', 'files__write', 'wiki__read', 'wiki__edit', 'ping'];
const CALLS: readonly (readonly [
  method: string,
  params: { readonly name?: string; readonly uri?: string },
])[] = [
  ...NAMES.map((name) => ['tools/call', { name }] as const),
  ['tools/call', { name: 'nothing' }],
  ['prompts/get', { name: 'wiki__greet' }],
  ['prompts/get', { name: 'hello' }],
  ['resources/read', { uri: 'wiki://start' }],
  ['resources/read', { uri: 'wiki://page?number=2' }],
];

const WHO: readonly unknown[] = [
  'everyone',
  { groups: ['staff'] },
  { groups: ['ops', 'other'] },
  { scopes: ['write'] },
  { groups: ['staff'], scopes: ['write'] },
  { claims: { department: 'legal' } },
  { claims: { realm_access: { roles: ['auditor', 'boss'] } } },
  { claims: { email: 'dan@x.example' } },
  { clients: ['cur*'] },
  { clients: ['build-?'], groups: ['staff'] },
  { views: ['desk'] },
  { views: ['desk'], claims: { level: [1, 3] } },
];

const WHEN: readonly string[] = [
  "user.sub in ['ann', 'cyd']",
  "user.email.endsWith('@x.example')",
  'user.email_verified && user.email.size() > 3',
  'has(user.claims.level) && user.claims.level > 1.0',
  "user.groups.exists(g, g.startsWith('op'))",
  "'write' in user.scopes",
  "client.id == 'cursor' || user.name == 'Fay'",
  "tool.server == 'wiki'",
  "tool.name.contains('read') && 'staff' in user.groups",
  "args.path == '/' && user.sub == 'ann'",
  "'auditor' in user.claims.realm_access.roles",
  'tool.annotations.readOnlyHint',
  "tool.annotations.readOnlyHint && user.sub == 'bob'",
];

const MAY: readonly string[] = [
  ...['*', 'wiki__*', 'files__*', '*__read', 'files__write', 'ping', 'prompt:*', 'prompt:hello'],
  ...['resource:*', 'resource:wiki://start', 'resource:wiki://*'],
];

function makeRule(random: Random): object {
  const may = [pick(random, MAY), pick(random, MAY)];
  const who = pick(random, WHO);
  if (random() < 0.5) return { who, may };
  return random() < 0.5
    ? { when: pick(random, WHEN), may }
    : { who, when: pick(random, WHEN), may };
}

/** All that any file names is named, so that each line has it. */
const NAMES_ALL = [...WHO.map((who) => ({ who })), ...WHEN.map((when) => ({ when }))].map(
  (one) => ({
    ...one,
    may: ['nothing-that-is-there'],
  }),
);

const makeRules = (index: number): readonly object[] => {
  const random = randomOf(28, index);
  return Array.from({ length: 1 + Math.floor(random() * 4) }, () => makeRule(random));
};

const builtIn = createLocalCatalog({
  tools: [
    defineTool({
      name: 'ping',
      description: '',
      inputSchema: { type: 'object' },
      run: () => ({ content: [] }),
    }),
  ],
  prompts: [definePrompt({ name: 'hello', description: '', get: () => ({ messages: [] }) })],
});

async function callAll(gateway: CatalogGateway): Promise<void> {
  for (const { sub, path, claims } of USERS) {
    const token = await gateway.issuer.sign({ sub, ...claims });
    for (const [method, params] of CALLS) {
      const own = path === '/mcp/wiki' ? { ...params, ...toOwnName(params.name) } : params;
      const { message, headers } = statelessRequest(method, own);
      await gateway.request({
        method: 'POST',
        path,
        body: message,
        headers: { ...headers, authorization: `Bearer ${token}` },
      });
    }
  }
}

const toOwnName = (name: string | undefined) =>
  name === undefined ? {} : { name: name.replace(/^wiki__/, '') };

type Verdict = 'allowed' | 'denied' | 'scopes_missing' | 'unjudged';

function readVerdict({ outcome, reason }: AuditLine): Verdict {
  if (outcome === 'denied') return reason === 'rules' ? 'denied' : 'scopes_missing';
  return reason === 'invalid_params' ? 'unjudged' : 'allowed';
}

const CHANGES: Readonly<Record<string, Verdict>> = {
  refused: 'denied',
  allowed: 'allowed',
  needs_scope: 'scopes_missing',
};

test('§28.2 by fifty changed files, replay says what a gateway with that file answers', async () => {
  const audit = await createAuditLog();
  const listing = {
    tools: ['read', 'write', 'edit'].map((name) =>
      buildTool(name, { annotations: { readOnlyHint: name === 'read' } }),
    ),
    prompts: [{ name: 'greet' }],
    answers: { 'tools/call': () => ({ result: { content: [] } }) },
  };
  const wiki = await serveForTest({
    ...listing,
    resources: ['wiki://start', 'wiki://page?number=2'].map((uri) => ({ uri, name: uri })),
  });
  const files = await serveForTest(listing);
  const toContent = (rules: readonly object[]) => ({
    mcpServers: { wiki: { url: wiki.url }, files: { url: files.url } },
    views: { desk: { tools: ['*'] } },
    rules,
  });
  const gateway = await startForTest({
    file: toContent([
      ...NAMES_ALL,
      ...makeRules(0),
      { who: { groups: ['staff'] }, may: ['wiki__*'] },
      { who: { scopes: ['write'] }, may: ['files__*'] },
    ]),
    builtIn,
    env: { ...audit.env, AUDIT_CLAIMS: 'true' },
  });
  await callAll(gateway);
  const before = audit.lines();
  const log = audit.text();
  expect(new Set(before.map(readVerdict))).toEqual(
    new Set(['allowed', 'denied', 'scopes_missing', 'unjudged']),
  );

  let told = 0;
  let written = before.length;
  for (let index = 1; index <= 50; index += 1) {
    const content = toContent(makeRules(index));
    await gateway.reload(content);
    await callAll(gateway);
    const after = audit.lines().slice(written);
    written += after.length;
    expect(after).toHaveLength(before.length);
    const found = await run([...BOTH, '--json'], {
      files: { 'mcp.json': JSON.stringify(content), 'audit.log': log },
    });
    const { changes, unknown } = JSON.parse(found.stdout);
    for (const { missing } of unknown)
      expect(['args', 'tool.annotations', 'name', 'user.claims.level']).toEqual(
        expect.arrayContaining(missing),
      );
    before.forEach((first, at) => {
      const now = after[at];
      if (now === undefined) throw new Error('Each call is made again.');
      const was = readVerdict(first);
      const key = describeLine(first);
      const isOfLine = (row: { kind: string; name: string; user: string }) =>
        [row.user, row.kind, row.name].join(' ') === key;
      if (unknown.some(isOfLine) || was === 'unjudged') return;
      told += 1;
      const changed = changes
        .filter(isOfLine)
        .map(({ change }: { change: string }) => CHANGES[change]);
      expect(changed, `${key} by ${JSON.stringify(content.rules)}`).toEqual(
        readVerdict(now) === was ? [] : [readVerdict(now)],
      );
    });
  }
  // Of all calls by all files, most can be told.
  expect(told).toBeGreaterThan(50 * before.length * 0.5);
});

/** By the name at `/mcp`. */
function describeLine({ user, view, server, tool, prompt, resource }: AuditLine): string {
  const kind = tool === undefined ? (prompt === undefined ? 'resource' : 'prompt') : 'tool';
  const name = String(tool ?? prompt ?? resource);
  const joined =
    view === 'wiki' && server === 'wiki' && kind !== 'resource' ? `wiki__${name}` : name;
  return [user, kind, joined].join(' ');
}

test('§25.3 search: the tools of a view that is searched need no rule in a replay, either; elsewhere such a name does', async () => {
  const views = { research: { search: true }, other: {} };
  const rules = [{ who: 'everyone', may: ['wiki__*'] }];
  const tools = ['search_tools', 'describe_tools', 'call_tool'];
  const linesOf = (view: string) => tools.map((tool) => ({ tool, view }));
  expect(await replay(linesOf('research'), rules, { views })).toMatchObject({ changes: [] });
  expect((await replay(linesOf('other'), rules, { views })).changes).toHaveLength(3);
});
