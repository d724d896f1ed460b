// What is wrong with a configuration file: all at once, each with its place and what is allowed.
import { expect, test } from 'vitest';
import {
  findProblems,
  findServerProblems,
  parseFile,
} from '../../support/upstreams/gateway-file.ts';

const URL_ONLY = { url: 'https://it.example/mcp' } as const;

test('§18.1 file: all problems are told at once, each with file, line and path', async () => {
  const text = `{
  "mcpServers": {
    "github": {
      "url": "ftp://github.example",
      "hedaers": {}
    },
    "files": {
      "command": 7,
      "args": ["-y", 3]
    }
  },
  "separator": "x"
}`;
  expect(await findProblems(text)).toEqual(
    [
      expect.stringMatching(/^mcp\.json:4: mcpServers\.github\.url: .* http or https URL/),
      'mcp.json:5: mcpServers.github: "hedaers" is not known. Did you mean headers?',
      expect.stringMatching(
        /^mcp\.json:8: mcpServers\.files\.command: This is a number, and must be text/,
      ),
      expect.stringMatching(/^mcp\.json:9: mcpServers\.files\.args\[1\]: This is a number/),
      'mcp.json:12: separator: "x" is not valid. It must be 1 to 8 of the characters _ - and .',
    ].map((problem) =>
      typeof problem === 'string' ? problem.replace(/and \.$/, 'and ..') : problem,
    ),
  );
});

test('§18.1 file: problems of YAML have their lines, too', async () => {
  const text = 'mcpServers:\n  wiki:\n    url: https://wiki.example\n    timeout: soon\n';
  expect(await findProblems(text, { format: 'yaml', fileName: 'mcp.yml' })).toEqual([
    expect.stringMatching(
      /^mcp\.yml:4: mcpServers\.wiki\.timeout: "soon" is not valid\. It must be milliseconds/,
    ),
  ]);
});

test.each([
  { format: 'json', text: '', says: '1: The file is empty.' },
  {
    format: 'json',
    text: '{\n  "a": 1\n  "b": 2 }',
    says: '3: This is not JSON: a comma is missing before this.',
  },
  {
    format: 'json',
    text: '{ "a": "C:\\tools\\x" }',
    says: '1: This is not JSON: a backslash in a text is written twice, for example "C:\\\\tools".',
  },
  {
    format: 'json',
    text: '{ "a": \'b\' }',
    says: '1: This is not JSON: this word is not a value.',
  },
  { format: 'json', text: '{ "a": {', says: '1: This is not JSON: ' },
  { format: 'json', text: '{}\n{}', says: '2: This is not JSON: the file has ended before this.' },
  { format: 'json', text: '['.repeat(300_000), says: '1: ' },
  { format: 'yaml', text: '', says: '1: The file is empty.' },
  {
    format: 'yaml',
    text: 'a: 1\n\tb: 2',
    says: '2: This is not YAML that Postern reads: lines are indented by spaces',
  },
  {
    format: 'yaml',
    text: 'a: !secret x',
    says: '1: This is not YAML that Postern reads: tags (!name) are not allowed.',
  },
  {
    format: 'yaml',
    text: 'a: !!binary eA==',
    says: '1: This is not YAML that Postern reads: tags (!name) are not allowed.',
  },
  {
    format: 'yaml',
    text: 'a: 1\n---\nb: 2',
    says: '2: This is not YAML that Postern reads: only one document is allowed',
  },
  {
    format: 'yaml',
    text: 'a: *b',
    says: '1: This is not YAML that Postern reads: an alias (*name) needs an anchor',
  },
  {
    format: 'yaml',
    text: '? [a]\n: b',
    says: '1: This is not YAML that Postern reads: a name must be plain text',
  },
  { format: 'yaml', text: `a: ${'['.repeat(20_000)}`, says: '1: ' },
] as const)(
  '§18.1 file: $format that cannot be read is one line: $says',
  async ({ format, text, says }) => {
    const problems = await findProblems(text, { format });
    expect(problems).toEqual([expect.stringContaining(`mcp.json:${says}`)]);
    expect(problems[0]?.length).toBeLessThan(250);
  },
);

test('§18.1 file: aliases of aliases do not fill the memory', async () => {
  const levels = Array.from(
    { length: 30 },
    (_, at) => `l${at + 1}: &l${at + 1} [*l${at}, *l${at}, *l${at}]`,
  );
  const text = ['l0: &l0 [x, x, x]', ...levels].join('\n');
  expect(await findProblems(text, { format: 'yaml' })).toEqual([
    expect.stringMatching(/^mcp\.json:\d+: The file has more than 100 aliases/),
  ]);
  expect(await findProblems('a: &a [*a]', { format: 'yaml' })).toHaveLength(1);
});

test('§18.1 file: what cannot be read is never shown', async () => {
  for (const format of ['json', 'yaml'] as const) {
    for (const text of [
      '{ "a": "hunter2\n" }',
      '{ hunter2: "x',
      'a: "hunter2',
      'a: !hunter2 x',
      'a: *hunter2',
      '%hunter2\n---\na: 1',
      'hunter2',
    ]) {
      const parsed = await parseFile(text, { format });
      expect(parsed.kind).toBe('problems');
      expect(JSON.stringify(parsed)).not.toMatch(/hunter2(?!" is not known)/);
    }
  }
});

test('§18.1 file: a name that is given twice is a problem', async () => {
  const text =
    '{ "mcpServers": {\n"a": { "url": "https://x.example" },\n"a": { "url": "https://y.example" } } }';
  const says = 'This is given twice, first in line 2. Remove one of them.';
  expect(await findProblems(text)).toEqual([`mcp.json:3: mcpServers.a: ${says}`]);
  expect(await findProblems(text, { format: 'yaml' })).toEqual([
    `mcp.json:3: mcpServers.a: ${says}`,
  ]);
});

test.each(['', '日本', '---'])(
  '§18.1 file: "%s" is not a valid name for a server',
  async (name) => {
    expect(await findProblems({ mcpServers: { [name]: URL_ONLY } })).toEqual([
      expect.stringContaining(
        'This is not a valid name for a server. It must have a letter or digit',
      ),
    ]);
  },
);

test.each([
  {
    what: 'names that differ in case only',
    servers: { wiki: URL_ONLY, Wiki: URL_ONLY },
    says: '"Wiki" and "wiki" (line 3) would both be called wiki here. Rename one of them.',
  },
  {
    what: 'names that become the same',
    servers: { my_wiki: URL_ONLY, 'My Wiki': URL_ONLY },
    says: '"My Wiki" and "my_wiki" (line 3) would both be called my-wiki here. Rename one of them.',
  },
  {
    what: 'a name of another program that becomes one of another server',
    servers: { 'my-wiki': URL_ONLY, my_wiki: URL_ONLY },
    says: '"my_wiki" and "my-wiki" (line 3) would both be called my-wiki here. Rename one of them.',
  },
  {
    what: 'a name that contains the separator',
    separator: '-',
    servers: { 'my-wiki': URL_ONLY },
    says: 'A server’s name cannot contain the separator (-).',
  },
  {
    what: 'a name that becomes one that contains the separator',
    separator: '-',
    servers: { my_wiki: URL_ONLY },
    says: 'It would be called my-wiki here, and a server’s name cannot contain the separator (-). Rename it.',
  },
  {
    what: 'a prefix that contains the separator',
    servers: { wiki: { ...URL_ONLY, prefix: 'a__b' } },
    says: 'A prefix cannot contain the separator (__).',
  },
  {
    what: 'two servers with the same prefix',
    servers: { one: { ...URL_ONLY, prefix: 'x' }, two: { ...URL_ONLY, prefix: 'x' } },
    says: 'both have the prefix x. Give one of them another "prefix".',
  },
  {
    what: 'a prefix that is the name of another server',
    servers: { one: URL_ONLY, two: { ...URL_ONLY, prefix: 'one' } },
    says: 'both have the prefix one.',
  },
  {
    what: 'prefixes of which one begins with the other and the separator',
    separator: '--',
    servers: { a: URL_ONLY, 'a-': URL_ONLY },
    says: 'a and a- begin alike.',
  },
])('§18.1 file: $what is a problem', async ({ separator = '__', servers, says }) => {
  const problems = await findProblems({ mcpServers: servers, separator });
  expect(problems).toEqual([expect.stringContaining(says)]);
});

test('§18.1 file: several servers may have no prefix', async () => {
  const none = { ...URL_ONLY, prefix: '' };
  expect(await findProblems({ mcpServers: { one: none, two: none } })).toEqual([]);
});

test.each([
  { given: 7, says: 'This value is not valid. It must be an object with command' },
  { given: {}, says: '"command" or "url" is missing: a program to start, or the address' },
  { given: { type: 'stdio' }, says: '"command" or "url" is missing' },
  {
    given: { url: 'https://x.example', command: 'npx' },
    says: 'url: Both command and url are given.',
  },
  {
    given: { url: 'https://x.example', httpUrl: 'https://x.example' },
    says: 'httpUrl: Both url and httpUrl are given.',
  },
  { given: { type: 'stdio', ...URL_ONLY }, says: 'type: "stdio" is for a server with command.' },
  { given: { type: 'sse', command: 'npx' }, says: 'type: "sse" is for a server with url.' },
  {
    given: { type: 'websocket', ...URL_ONLY },
    says: 'type: "websocket" is not valid. It must be http, streamableHttp, streamable-http, sse or stdio.',
  },
  { given: { ...URL_ONLY, env: {} }, says: 'env: Only a server with command has this' },
  { given: { command: 'npx', headers: {} }, says: 'headers: Only a server with url has this' },
  { given: { command: ' ' }, says: 'command: "command" is empty.' },
  { given: { command: null }, says: 'command: There is no value.' },
  { given: { command: 'a\0b' }, says: 'command: ' },
  {
    given: { command: 'npx', args: '-y' },
    says: 'args: This value is not valid. It must be a list of texts.',
  },
  {
    given: { command: 'npx', env: { 'A=B': 'x' } },
    says: 'env: A variable’s name is not empty and has no =.',
  },
  {
    given: { command: 'npx', env: { A: 1 } },
    says: 'env.A: This is a number, and must be text: put it in double quotes.',
  },
  {
    given: { command: 'npx', isolation: true },
    says: 'isolation: true is not valid. It must be shared, user or session.',
  },
  {
    given: { command: 'npx', isolation: 'sesion' },
    says: 'isolation: "sesion" is not valid. It must be shared, user or session.',
  },
  {
    given: { command: 'npx', maxProcesses: 0 },
    says: 'maxProcesses: 0 is not valid. It must be a whole number from 1 to 1000',
  },
  { given: { command: 'npx', idleSeconds: 1.5 }, says: 'idleSeconds: 1.5 is not valid.' },
  {
    given: { command: 'npx', roots: 'yes' },
    says: 'roots: "yes" is not valid. It must be true or false, without quotes.',
  },
  { given: { ...URL_ONLY, prefix: '-a' }, says: 'prefix: "-a" is not valid.' },
  { given: { ...URL_ONLY, prefix: 'a b' }, says: 'prefix: "a b" is not valid.' },
  {
    given: { ...URL_ONLY, timeout: '60000' },
    says: 'timeout: "60000" is not valid. It must be milliseconds',
  },
  {
    given: { ...URL_ONLY, tools: ['*'] },
    says: 'tools: A list is not valid. It must be an object with include, exclude or describe.',
  },
  {
    given: { ...URL_ONLY, tools: { includes: [] } },
    says: 'tools: "includes" is not known. Did you mean include?',
  },
  {
    given: { ...URL_ONLY, disabledTools: ['x'] },
    says: 'disabledTools: Postern has "tools": { "exclude": ["name", …] } for this.',
  },
  { given: { ...URL_ONLY, transport: 'sse' }, says: 'transport: Postern has "type" for this' },
  {
    given: { command: 'npx', envFile: '.env' },
    says: 'envFile: Postern reads no file for one server.',
  },
])('§18.1 file: the server $given is refused: $says', async ({ given, says }) => {
  const problems = await findServerProblems(given);
  expect(problems).toEqual([expect.stringContaining(says)]);
  expect(problems[0]?.startsWith(says), problems[0]).toBe(true);
});

test('§18.1 file: a time-out under 1000 is refused with both readings', async () => {
  expect(await findServerProblems({ ...URL_ONLY, timeout: 60 })).toEqual([
    'timeout: 60 is not valid. Postern reads it as 60 milliseconds; some programs mean 60 seconds, which is 60000 here. It must be milliseconds: a whole number from 1000 to 86400000.',
  ]);
  expect(await findServerProblems({ ...URL_ONLY, timeout: 999 })).toHaveLength(1);
  expect(await findServerProblems({ ...URL_ONLY, timeout: 1000 })).toEqual([]);
});

test.each([
  'ws://x.example',
  'file:///etc/passwd',
  'x.example/mcp',
  'https://me:hunter2@x.example',
  'https://hunter2@x.example',
  'https://x.example/#hunter2',
  '',
])('§18.1 file: the URL %s is refused, and not shown', async (url) => {
  const problems = await findServerProblems({ url });
  expect(problems).toEqual([
    'url: The value given (not shown) is not valid. It must be an absolute http or https URL in ASCII, without user info or fragment, for example https://wiki.example.com/mcp.',
  ]);
});

test.each([
  'Host',
  'Cookie',
  'connection',
  'Transfer-Encoding',
  'Content-Length',
  'TE',
  'Upgrade',
  'Keep-Alive',
  'Proxy-Authorization',
  'Mcp-Session-Id',
  'MCP-Protocol-Version',
  'Accept',
  'Content-Type',
])('§18.1 file: the header %s cannot be set', async (name) => {
  expect(await findServerProblems({ ...URL_ONLY, headers: { [name]: 'x' } })).toEqual([
    `headers: The header ${name} cannot be set: it belongs to the connection, or Postern sets it itself.`,
  ]);
});

test.each([
  { headers: { 'Bearer hunter2': 'x' }, says: 'headers: A header’s name consists of letters' },
  { headers: { 'X: hunter2': 'x' }, says: 'headers: A header’s name consists of letters' },
  { headers: { '': 'hunter2' }, says: 'headers: A header’s name consists of letters' },
  {
    headers: { X: 'hunter2\r\nHost: evil' },
    says: 'headers.X: The value given (not shown) is not valid. It contains a line break',
  },
  { headers: { X: 'hunter2\0' }, says: 'headers.X: The value given (not shown) is not valid.' },
  { headers: { X: 'hunter2 日本' }, says: 'headers.X: The value given (not shown) is not valid.' },
  {
    headers: { X: 'hunter2', x: 'b' },
    says: 'headers: The header x is given twice: case does not count.',
  },
  { headers: { X: ['hunter2'] }, says: 'headers.X: A list is not valid.' },
  { headers: 'hunter2', says: 'headers: This value is not valid. It must be an object of headers' },
])('§18.1 file: $headers are refused without being shown', async ({ headers, says }) => {
  const problems = await findServerProblems({ ...URL_ONLY, headers });
  expect(problems).toEqual([expect.stringContaining(says)]);
  expect(problems[0]).not.toContain('hunter2');
});

test.each([
  {
    auth: {},
    says: 'auth: "type" is missing. It must be identity, oauth, token-exchange or forward.',
  },
  { auth: { type: 'identiy' }, says: 'auth.type: "identiy" is not valid.' },
  { auth: { type: 'forward' }, says: 'auth: "audience" is missing' },
  { auth: { type: 'token-exchange' }, says: 'auth: "audience" is missing' },
  { auth: { type: 'token-exchange', audience: ' ' }, says: 'auth.audience: " " is not valid.' },
  {
    auth: { type: 'token-exchange', audience: 'a', scope: 'a  b' },
    says: 'auth.scope: "a  b" is not valid.',
  },
  {
    auth: { type: 'identity', audience: 'a' },
    says: 'auth.audience: "type": "identity" has no such member',
  },
  {
    auth: { type: 'forward', audience: 'a', scope: 'b' },
    says: 'auth.scope: "type": "forward" has no such member',
  },
])('§18.1 file: $auth is refused: $says', async ({ auth, says }) => {
  expect(await findServerProblems({ ...URL_ONLY, auth })).toEqual([expect.stringContaining(says)]);
});

test.each([
  { url: 'http://wiki.example/mcp', isAllowed: false },
  { url: 'http://10.0.0.1/mcp', isAllowed: false },
  { url: 'https://wiki.example/mcp', isAllowed: true },
  { url: 'http://localhost:3001/mcp', isAllowed: true },
  { url: 'http://127.0.0.1:3001/mcp', isAllowed: true },
  { url: 'http://[::1]:3001/mcp', isAllowed: true },
])('§18.1 file: callers’ tokens are forwarded to $url: $isAllowed', async ({ url, isAllowed }) => {
  const problems = await findServerProblems({ url, auth: { type: 'forward', audience: 'a' } });
  expect(problems).toEqual(
    isAllowed
      ? []
      : [
          expect.stringContaining(
            'url: auth sends tokens of users to the server, so the URL must be https',
          ),
        ],
  );
});

test('§18.1 file: auth and a header Authorization exclude each other', async () => {
  const headers = { AUTHORIZATION: 'Bearer x' };
  expect(await findServerProblems({ ...URL_ONLY, headers, auth: { type: 'identity' } })).toEqual([
    'headers: auth sends the header Authorization itself. Remove one of them.',
  ]);
});

test.each([
  {
    what: 'is not there',
    readText: undefined,
    says: 'ca: The file cannot be read (there is no /etc/postern/ca.pem).',
  },
  {
    what: 'has no certificate',
    readText: () => 'hunter2',
    says: 'ca: The file has no certificate in PEM form (-----BEGIN CERTIFICATE-----).',
  },
])('§18.1 file: a ca that $what is a problem', async ({ readText, says }) => {
  const options = readText === undefined ? {} : { readText };
  const problems = await findServerProblems({ ...URL_ONLY, ca: 'ca.pem' }, options);
  expect(problems).toEqual([says]);
});

test('§18.1 file: processes of sessions are refused with Redis, where another replica could not reach them', async () => {
  const server = { command: 'npx', isolation: 'session' };
  expect(await findServerProblems(server)).toEqual([]);
  expect(await findServerProblems(server, { hasRedis: true })).toEqual([
    expect.stringMatching(
      /^isolation: "session" cannot be used with REDIS_URL: .* Use "user" or "shared"/,
    ),
  ]);
});

test.each([
  { hasRedis: false, hasStateSecret: false, isAllowed: true },
  { hasRedis: true, hasStateSecret: true, isAllowed: true },
  { hasRedis: true, hasStateSecret: false, isAllowed: false },
])(
  '§18.1 file: identity with Redis $hasRedis and a secret $hasStateSecret is allowed: $isAllowed',
  async (row) => {
    const problems = await findServerProblems({ ...URL_ONLY, auth: { type: 'identity' } }, row);
    expect(problems).toEqual(
      row.isAllowed
        ? []
        : [expect.stringMatching(/^auth: "identity" with REDIS_URL needs OAUTH_STATE_SECRET/)],
    );
  },
);

test.each([
  { rule: { may: ['*'] }, says: '"who" is missing. For all users write "who": "everyone".' },
  { rule: { who: 'everyone' }, says: '"may" is missing' },
  { rule: { who: 'everyone', may: [] }, says: 'may: The list is empty.' },
  {
    rule: { who: 'everyone', may: '*' },
    says: 'may: This value is not valid. It must be a list of patterns',
  },
  { rule: { who: 'everyone', may: [''] }, says: 'may[0]: "" is not valid.' },
  { rule: { who: 'all', may: ['*'] }, says: 'who: This is not valid. It must be "everyone", or' },
  { rule: { who: {}, may: ['*'] }, says: 'who: It is empty. For all users write "everyone".' },
  { rule: { who: { groups: [] }, may: ['*'] }, says: 'who.groups: The list is empty.' },
  {
    rule: { who: { group: ['a'] }, may: ['*'] },
    says: 'who: "group" is not known. Did you mean groups?',
  },
  { rule: { who: { claims: { a: null } }, may: ['*'] }, says: 'who.claims.a: This is not valid.' },
  {
    rule: { who: { claims: { a: { b: [null] } } }, may: ['*'] },
    says: 'who.claims.a.b[0]: This is not valid.',
  },
  {
    rule: { who: { claims: { a: { b: [] } } }, may: ['*'] },
    says: 'who.claims.a.b: The list is empty.',
  },
  { rule: { who: { clients: [''] }, may: ['*'] }, says: 'who.clients[0]: "" is not valid.' },
  {
    rule: { who: { claims: { id: [2 ** 53] } }, may: ['*'] },
    says: 'who.claims.id[0]: This number is too large: tokens with other numbers would fit, too.',
  },
  { rule: { when: ' ', may: ['*'] }, says: 'when: " " is not valid. It must be a CEL expression.' },
  {
    rule: { who: 'everyone', may: ['*'], deny: ['x'] },
    says: '"deny" is not known. Allowed are who, when, may, ask.',
  },
])('§18.1 file: the rule $rule is refused: $says', async ({ rule, says }) => {
  const problems = await findProblems({ rules: [rule] });
  expect(problems[0]).toContain(says);
  expect(problems.length).toBeLessThanOrEqual(2);
});

test('§18.1 file: a rule with a member that is refused is not refused for what is left of it, too', async () => {
  const rules = [{ who: { group: ['a'] }, may: ['*'] }];
  expect(await findProblems({ rules })).toEqual([
    expect.stringMatching(/rules\[0\]\.who: "group" is not known\. Did you mean groups\?$/),
  ]);
});

test('§18.1 file: a list of no rules is refused, as it would allow everybody everything', async () => {
  expect(await findProblems({ rules: [] })).toEqual([
    expect.stringMatching(/rules: The list is empty\. .* write "everyone" instead/),
  ]);
});

test('§18.1 file: what is wrong with the patterns and the expression of a rule stands at the rule', async () => {
  const text =
    '{ "rules": [\n{ "who": "everyone", "may": ["*"] },\n{ "when": "nonsense", "may": ["*"] } ] }';
  expect(await findProblems(text)).toEqual([
    expect.stringMatching(/^mcp\.json:3: rules\[1\]: when: .*nonsense/),
  ]);
});

test.each([
  { content: [], says: 'A list is not valid. It must be an object with mcpServers.' },
  { content: { mcpServer: {} }, says: '"mcpServer" is not known. Did you mean mcpServers?' },
  {
    content: { mcpServers: [] },
    says: 'mcpServers: A list is not valid. It must be an object of servers by name.',
  },
  {
    content: { mcp: { servers: {} } },
    says: 'mcp: Postern has its servers under "mcpServers", at the top of the file.',
  },
  { content: { github: URL_ONLY }, says: '"github" is not known. Allowed are $schema, mcpServers' },
  { content: { separator: '' }, says: 'separator: "" is not valid.' },
  { content: { builtIn: 'no' }, says: 'builtIn: "no" is not valid. It must be true or false' },
])('§18.1 file: $content is refused: $says', async ({ content, says }) => {
  expect(await findProblems(content)).toEqual([expect.stringContaining(says)]);
});
