// What a configuration file says when nothing is wrong with it.
import { generate } from 'selfsigned';
import { expect, test } from 'vitest';
import { parseFile, readFile, readServer } from '../../support/upstreams/gateway-file.ts';

const HTTP_DEFAULTS = {
  kind: 'http',
  name: 'it',
  prefix: 'it',
  url: 'https://it.example/mcp',
  transport: 'streamable-http',
  headers: {},
  ca: undefined,
  cookies: true,
  auth: { type: 'none' },
  roots: false,
  era: 'auto',
  timeoutMs: 60_000,
  required: false,
  tools: { include: ['*'], exclude: [], describe: {} },
} as const;

const STDIO_DEFAULTS = {
  kind: 'stdio',
  name: 'it',
  prefix: 'it',
  command: 'npx',
  args: [],
  secretArguments: [],
  env: {},
  cwd: undefined,
  isolation: 'shared',
  maxProcesses: 20,
  idleSeconds: 300,
  roots: false,
  era: 'auto',
  timeoutMs: 60_000,
  required: false,
  tools: { include: ['*'], exclude: [], describe: {} },
} as const;

const URL_ONLY = { url: 'https://it.example/mcp' } as const;

test('§18.1 file: an empty object serves the built-in catalogue and nothing else', async () => {
  expect(await readFile({})).toEqual({
    builtIn: true,
    separator: '__',
    maxNameLength: 64,
    names: 'own',
    servers: [],
    rules: [],
    meansNoRules: false,
  });
});

test('§18.1 file: a server with a url has defaults for everything else', async () => {
  expect(await readServer(URL_ONLY)).toEqual(HTTP_DEFAULTS);
});

test('§18.1 file: a server with a command has defaults for everything else', async () => {
  expect(await readServer({ command: 'npx' })).toEqual(STDIO_DEFAULTS);
});

test('§18.1 file: every member of a server with a url is read', async () => {
  const given = {
    type: 'sse',
    url: 'https://it.example/sse?tenant=1',
    headers: { Authorization: 'Bearer secret', 'X-Trace': ' on ' },
    prefix: 'Wiki.2',
    timeout: 1000,
    required: true,
    roots: true,
    tools: { include: ['get_*'], exclude: ['get_all'], describe: { get_one: 'Gets one.' } },
  };
  expect(await readServer(given)).toEqual({
    ...HTTP_DEFAULTS,
    url: given.url,
    transport: 'sse',
    headers: { authorization: 'Bearer secret', 'x-trace': 'on' },
    prefix: 'Wiki.2',
    timeoutMs: 1000,
    required: true,
    roots: true,
    tools: given.tools,
  });
});

test('§18.1 file: every member of a server with a command is read', async () => {
  const given = {
    type: 'stdio',
    command: 'uvx',
    args: ['server', '--fast'],
    env: { TOKEN: 'secret' },
    proxyEnvironment: false,
    cwd: 'work',
    isolation: 'user',
    maxProcesses: 3,
    idleSeconds: 60,
    roots: true,
    prefix: '',
  };
  const { type: _, ...members } = given;
  expect(await readServer(given)).toEqual({
    ...STDIO_DEFAULTS,
    ...members,
    cwd: '/etc/postern/work',
  });
});

test.each(['url', 'serverUrl', 'httpUrl'])(
  '§18.1 file: %s is the address of a server',
  async (name) => {
    expect(await readServer({ [name]: URL_ONLY.url })).toEqual(HTTP_DEFAULTS);
  },
);

test.each(['http', 'streamableHttp', 'streamable-http'])(
  '§18.1 file: the type %s is streamable HTTP',
  async (type) => {
    expect(await readServer({ type, ...URL_ONLY })).toEqual(HTTP_DEFAULTS);
  },
);

test.each([
  { auth: { type: 'identity' } },
  { auth: { type: 'token-exchange', audience: 'https://it.example' } },
  { auth: { type: 'token-exchange', audience: 'it', scope: 'read write' } },
  { auth: { type: 'forward', audience: 'https://gw.example/mcp' } },
])('§18.1 file: auth can be $auth', async ({ auth }) => {
  expect(await readServer({ ...URL_ONLY, auth })).toEqual({
    ...HTTP_DEFAULTS,
    auth,
    roots: true,
  });
});

test.each([
  { given: { auth: { type: 'identity' }, roots: false }, roots: false },
  { given: { roots: true }, roots: true },
  { given: { headers: { authorization: 'Bearer ours' } }, roots: false },
])('§18.1 file: whether a server with $given is told roots: $roots', async ({ given, roots }) => {
  expect(await readServer({ ...URL_ONLY, ...given })).toMatchObject({ roots });
});

test('§18.1 file: the order of the servers is that of the file, and their names are lower-cased', async () => {
  const { servers } = await readFile({
    mcpServers: { Zulu: URL_ONLY, 'alpha-2': URL_ONLY, mike: { command: 'npx' } },
    servers: { code: URL_ONLY },
  });
  expect(servers.map(({ name, prefix }) => [name, prefix])).toEqual([
    ['zulu', 'zulu'],
    ['alpha-2', 'alpha-2'],
    ['mike', 'mike'],
    ['code', 'code'],
  ]);
});

test('§18.1 file: the file that VS Code writes is read', async () => {
  const parsed = await parseFile({
    inputs: [{ type: 'promptString', id: 'key', password: true }],
    servers: {
      remote: { type: 'http', url: 'https://remote.example/mcp', gallery: true },
      local: { type: 'stdio', command: 'node', args: ['server.js'], dev: { watch: '*.js' } },
    },
  });
  expect(parsed).toMatchObject({
    kind: 'parsed',
    file: { servers: [{ name: 'remote' }, { name: 'local' }] },
  });
});

test('§18.1 file: a server that is disabled is left out, whatever else is wrong with it', async () => {
  const { servers } = await readFile({
    mcpServers: {
      'No name!': { disabled: true, url: '${UNSET}', unknown: 1 },
      on: { ...URL_ONLY, disabled: false },
    },
  });
  expect(servers.map(({ name }) => name)).toEqual(['on']);
});

test('§18.1 file: a variable without braces stays as it is, with a warning that does not repeat it', async () => {
  const parsed = await parseFile({
    mcpServers: {
      a: { url: 'https://a.example/mcp', headers: { Authorization: 'Bearer $TOKEN', X: 'a$b $c' } },
      b: { command: 'b', env: { KEY: '$KEY', OTHER: '${KEY:-$x}' }, args: ['$KEY'] },
    },
  });
  const says =
    'This is no variable without braces, and stays as it is. If one is meant, write ${NAME}.';
  expect(parsed).toMatchObject({
    kind: 'parsed',
    warnings: [
      `mcp.json:6: mcpServers.a.headers.Authorization: ${says}`,
      `mcp.json:13: mcpServers.b.env.KEY: ${says}`,
    ],
    file: { servers: [{ headers: { authorization: 'Bearer $TOKEN' } }, { env: { KEY: '$KEY' } }] },
  });
});

test.each([
  { name: 'Brave Search', here: 'brave-search' },
  { name: 'sequential_thinking', here: 'sequential-thinking' },
  { name: '@scope/files', here: 'scope-files' },
  { name: '7zip', here: 'mcp-7zip' },
  { name: 'Übersicht', here: 'ubersicht' },
  { name: 'a'.repeat(33), here: 'a'.repeat(32) },
  { name: `${'a'.repeat(31)}_b`, here: 'a'.repeat(31) },
  { name: '__proto__', here: 'proto' },
])(
  '§18.1 file: a server that others call $name is $here, by which its tools begin',
  async ({ name, here }) => {
    const text = `{ "mcpServers": { ${JSON.stringify(name)}: { "url": "https://x.example" } } }`;
    const { servers } = await readFile(text);
    expect(servers).toMatchObject([{ name: here, prefix: here }]);
  },
);

test('§18.1 file: which servers have other names here is said once', async () => {
  const parsed = await parseFile({
    mcpServers: {
      my_db: { url: 'https://it.example' },
      'My Server': { url: 'https://it.example', prefix: 'mine' },
      GitHub: { url: 'https://it.example' },
      old_one: { url: 'https://it.example', disabled: true },
    },
  });
  expect(parsed).toMatchObject({
    file: {
      servers: [{ name: 'my-db' }, { name: 'my-server', prefix: 'mine' }, { name: 'github' }],
    },
    warnings: [
      'mcp.json: these servers have other names here, because a name has only letters, digits and hyphens: "my_db" is my-db, "My Server" is my-server.',
    ],
  });
});

test('§18.1 file: members of other programs are ignored, and named once', async () => {
  const parsed = await parseFile({
    globalShortcut: 'Ctrl+Space',
    mcpServers: {
      one: { ...URL_ONLY, autoApprove: ['a'], alwaysAllow: [] },
      two: { ...URL_ONLY, prefix: 'two', autoApprove: [] },
    },
  });
  expect(parsed).toMatchObject({
    kind: 'parsed',
    warnings: [
      'mcp.json: these members of other programs mean nothing here and are ignored: alwaysAllow, autoApprove, globalShortcut.',
    ],
  });
});

test('§18.1 file: JSON may have comments, trailing commas and a byte order mark', async () => {
  const text = `\uFEFF// of mine
  { "mcpServers": { /* the wiki */ "it": { "url": "https://it.example/mcp", }, }, }`;
  expect((await readFile(text)).servers).toEqual([HTTP_DEFAULTS]);
});

test('§18.1 file: YAML says the same as JSON', async () => {
  const text = `
# of mine
mcpServers:
  it: &defaults
    url: https://it.example/mcp
  other: *defaults
rules:
  - who: everyone
    may: ["*"]
`;
  const options = { format: 'yaml', fileName: 'mcp.yaml' } as const;
  expect(await readFile(text, options)).toEqual({
    builtIn: true,
    meansNoRules: false,
    separator: '__',
    maxNameLength: 64,
    names: 'own',
    servers: [HTTP_DEFAULTS, { ...HTTP_DEFAULTS, name: 'other', prefix: 'other' }],
    rules: [{ who: 'everyone', when: undefined, may: ['*'], place: 'mcp.yaml:8, rules[0]' }],
  });
});

test('§18.1 file: rules are read with their places', async () => {
  const rules = [
    { who: { groups: ['a'], scopes: ['b'], clients: ['c*'] }, may: ['x__*'] },
    {
      who: { claims: { department: ['it', 'hr'], level: 3, staff: true, realm: { roles: ['x'] } } },
      may: ['prompt:*'],
    },
    { when: "user.email.endsWith('@example.com')", may: ['*'] },
  ];
  expect((await readFile(JSON.stringify({ rules }))).rules).toEqual([
    { ...rules[0], when: undefined, place: 'mcp.json:1, rules[0]' },
    { ...rules[1], when: undefined, place: 'mcp.json:1, rules[1]' },
    { who: 'everyone', ...rules[2], place: 'mcp.json:1, rules[2]' },
  ]);
});

test('§18.1 file: ca names a file with certificates, relative to the configuration file', async () => {
  const { cert } = await generate([{ name: 'commonName', value: 'localhost' }]);
  const files: Readonly<Record<string, string>> = { '/etc/postern/ca.pem': cert };
  const server = await readServer(
    { ...URL_ONLY, ca: 'ca.pem' },
    { readText: (path) => files[path] ?? '' },
  );
  expect(server).toEqual({ ...HTTP_DEFAULTS, ca: cert });
});

test('§18.1 file: builtIn and separator are read', async () => {
  expect(
    await readFile({ $schema: './postern.schema.json', builtIn: false, separator: '.' }),
  ).toEqual({
    builtIn: false,
    separator: '.',
    maxNameLength: 64,
    names: 'own',
    servers: [],
    rules: [],
    meansNoRules: false,
  });
});

test.each([
  { format: 'json', text: '{ "rules": "everyone" }' },
  { format: 'yaml', text: 'rules: everyone\n...\n' },
] as const)(
  '§18.5 file: in $format, "everyone" stands in place of rules',
  async ({ format, text }) => {
    expect(await readFile(text, { format })).toMatchObject({ rules: [], meansNoRules: true });
  },
);

test('§18.1 file: names of the prototype are names like others', async () => {
  const text = `{ "mcpServers": { "it": { "command": "x",
    "env": { "__proto__": "a", "constructor": "b" },
    "tools": { "describe": { "__proto__": "c" } } } } }`;
  const { servers } = await readFile(text);
  const [server] = servers;
  expect(server?.kind === 'stdio' && Object.entries(server.env)).toEqual([
    ['__proto__', 'a'],
    ['constructor', 'b'],
  ]);
  expect(server?.tools.describe.toString).toBeUndefined();
  expect(Object.entries(server?.tools.describe ?? {})).toEqual([['__proto__', 'c']]);
  expect(Object.hasOwn(Object.prototype, 'a')).toBe(false);
});
