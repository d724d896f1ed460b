// postern init: what it writes starts, and nothing of the user's is overwritten unasked.
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { callTool, writeFileIn } from '../support/catalogs/catalog-files.ts';
import { endPosterns, makeFolder, runPostern, startPostern } from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { listenOnLoopback } from '../support/upstreams/listen.ts';

afterEach(endPosterns);

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SERVER = join(ROOT, 'test/support/upstreams/scripted-server.mjs');
/** Runs a command in a terminal of its own; that of util-linux. */
const SCRIPT = '/usr/bin/script';

const init = (cwd: string, ...args: readonly string[]) =>
  runInside({}, { args: ['init', ...args], cwd });

/** As `npm install postern` would leave it. */
async function makeProject(): Promise<string> {
  const cwd = await makeFolder();
  mkdirSync(join(cwd, 'node_modules'));
  symlinkSync(ROOT, join(cwd, 'node_modules', 'postern'));
  return cwd;
}

const read = (cwd: string, name: string): string => readFileSync(join(cwd, name), 'utf8');

test('§20.6 init --yes: the first tool passes its test', async () => {
  const cwd = await makeProject();
  const { code, stdout } = await init(cwd, '--yes');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^Wrote postern\.yaml, \.env, catalog\.mjs, catalog\.test\.mjs, \.gitignore\.$/m,
  );
  for (const typed of ['node --test', 'npx postern dev'])
    expect(stdout).toMatch(new RegExp(`^ {2}${typed} `, 'm'));
  expect(read(cwd, 'postern.yaml')).toMatch(
    /^# yaml-language-server: \$schema=\.\/node_modules\/postern\/postern\.schema\.json\n/,
  );
  expect(read(cwd, '.gitignore')).toMatch(/^\.env$/m);
  // The package has no folder docs: the gateway serves the pages.
  expect(read(cwd, '.env')).toContain('http://localhost:3000/providers');
  expect(statSync(join(cwd, '.env')).mode & 0o777).toBe(0o600);
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const tested = spawnSync(process.execPath, ['--test'], { cwd, env, encoding: 'utf8' });
  expect(tested.status, tested.stdout + tested.stderr).toBe(0);
});

test.each(['dev', 'start'])(
  '§20.6 init --yes: postern %s serves the first tool',
  async (command) => {
    const cwd = await makeFolder();
    await init(cwd, '--yes');
    const { url } = await startPostern({ AUTH_REQUIRED: 'false' }, { args: [command], cwd });
    expect(await callTool(url, 'roll_dice')).toMatch(/^Somebody rolled [1-6]$/);
  },
);

test('§20.6 init: writes the package, and a manifest that depends on it', async () => {
  const cwd = await makeFolder();
  const { stdout } = await init(cwd, '--yes');
  const { dependencies } = JSON.parse(read(cwd, 'package.json'));
  const [, file = ''] = /^file:\.\/(postern-.+\.tgz)$/.exec(dependencies.postern) ?? [];
  expect(existsSync(join(cwd, file))).toBe(true);
  expect(stdout).toMatch(/^ {2}npm install +installs Postern from postern-.+\.tgz$/m);
  expect(stdout).toMatch(/^ {2}npx postern dev /m);
});

test('§20.6 init: a manifest of the user is kept, and npm installs the package into it', async () => {
  const cwd = await makeFolder();
  const manifest = '{ "scripts": { "dev": "postern dev", "test": "x" } }';
  await writeFileIn(cwd, 'package.json', manifest);
  const { stdout } = await init(cwd, '--yes');
  expect(read(cwd, 'package.json')).toBe(manifest);
  expect(stdout).toMatch(/^ {2}npm install \.\/postern-.+\.tgz +installs Postern/m);
  expect(stdout).toMatch(/^ {2}npm test +calls your first tool\n {2}npm run dev /m);
});

test('§20.6 init: for a public address it writes what production needs', async () => {
  const cwd = await makeFolder();
  const login = ['--provider', 'other', '--issuer', 'https://id.example.com', '--client-id', 'c'];
  const secret = ['--client-secret', 's', '--base-url', 'https://mcp.example.com'];
  const { stdout } = await init(cwd, '--yes', ...login, ...secret);
  expect(parseEnv(read(cwd, '.env'))).toMatchObject({
    BASE_URL: 'https://mcp.example.com',
    NODE_ENV: 'production',
    TRUST_PROXY: '1',
  });
  expect(stdout).toMatch(/^ {2}https:\/\/mcp\.example\.com\/oauth\/callback$/m);
  expect(stdout).toMatch(/^ {2}npx postern start /m);
  const shown = await runInside({}, { args: ['config'], cwd });
  expect(shown.code, shown.stdout).toBe(0);
});

test('§20.6 init: postern dev starts with a public address of its own', async () => {
  const cwd = await makeFolder();
  await init(cwd, '--yes', '--base-url', 'https://mcp.example.com');
  expect(parseEnv(read(cwd, '.env'))).not.toHaveProperty('NODE_ENV');
});

test('§20.6 init: nothing is asked without a terminal', async () => {
  const cwd = await makeFolder();
  const { code, stderr } = await init(cwd);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^postern init asks questions, but there is no terminal\. Add --yes/);
  expect(existsSync(join(cwd, '.env'))).toBe(false);
});

test('§20.6 init: nothing is written through a link, not even one that leads nowhere', async () => {
  const cwd = await makeFolder();
  const [elsewhere, nowhere] = [join(await makeFolder(), 'a'), join(await makeFolder(), 'b')];
  writeFileSync(elsewhere, 'mine', { mode: 0o644 });
  symlinkSync(nowhere, join(cwd, '.env'));
  symlinkSync(elsewhere, join(cwd, 'postern.yaml'));
  const refused = await init(cwd, '--yes');
  expect(refused.stderr).toContain('postern.yaml, .env exist already');
  expect((await init(cwd, '--yes', '--force')).code).toBe(0);
  expect([existsSync(nowhere), readFileSync(elsewhere, 'utf8')]).toEqual([false, 'mine']);
  expect(lstatSync(join(cwd, '.env')).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(cwd, 'postern.yaml'), 'utf8')).toContain('mcpServers');
});

test('§20.6 init: a client secret is taken from a file or from standard input', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'secret.txt', 'of the file\n');
  const provider = ['--yes', '--force', '--provider', 'other'];
  expect((await init(cwd, ...provider, '--client-secret-file', 'secret.txt')).code).toBe(0);
  expect(parseEnv(read(cwd, '.env'))).toMatchObject({
    OAUTH_CLIENT_SECRET: 'of the file',
    // §8: many users behind one address.
    MCP_USER_RATE_LIMIT_MAX: '300',
    MCP_RATE_LIMIT_MAX: '10000',
    DCR_RATE_LIMIT_MAX: '200',
    OAUTH_REFRESH_RATE_LIMIT_MAX: '1000',
  });
  const args = ['init', ...provider, '--client-secret', '-'];
  expect((await runPostern({}, { args, cwd, input: 'of the pipe\n' })).code).toBe(0);
  expect(parseEnv(read(cwd, '.env'))).toMatchObject({ OAUTH_CLIENT_SECRET: 'of the pipe' });
});

test('§20.6 init: a file that exists is overwritten with --force only', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, '.env', 'MINE=1\n');
  await writeFileIn(cwd, '.gitignore', 'mine\n');
  const refused = await init(cwd, '--yes');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/^Nothing was written:\n {2}- \.env exists already\. Add --force/);
  expect(read(cwd, '.env')).toBe('MINE=1\n');
  expect(existsSync(join(cwd, 'postern.yaml'))).toBe(false);
  const forced = await init(cwd, '--yes', '--force');
  expect(forced.code).toBe(0);
  expect(forced.stdout).toContain('Add .env to .gitignore');
  expect(read(cwd, '.env')).toContain('POSTERN_CONFIG=postern.yaml');
  expect(read(cwd, '.gitignore')).toBe('mine\n');
});

test('§20.6 init: in the folder of Postern itself, it says how to begin in an empty one', async () => {
  const { code, stderr } = await init(ROOT, '--yes');
  expect(code).toBe(1);
  expect(stderr).toMatch(/^Nothing was written:\n {2}- This is the folder of Postern itself\./);
  const main = `../${basename(ROOT)}/dist/cli/main.js`;
  expect(stderr).toContain(`mkdir ../my-gateway && cd ../my-gateway && node ${main} init\n`);
});

test.skipIf(process.platform !== 'linux' || !existsSync(SCRIPT))(
  '§20.6 init: where .env is kept, the options name the files',
  async () => {
    const cwd = await makeFolder();
    await writeFileIn(cwd, '.env', 'MINE=1\n');
    const asked = openTerminal(cwd);
    await asked.answer('Where do your users log in?', '\r');
    await asked.answer('What should the gateway serve?', '\r');
    await asked.answer('Where does it keep sessions?', '\r');
    await asked.answer('.env exists already. Overwrite it?', '\r');
    await asked.ended;
    expect(asked.screen()).toContain('dev --catalog catalog.mjs --config postern.yaml');
    expect(read(cwd, '.env')).toBe('MINE=1\n');
  },
);

test('§20.6 init: a folder that cannot be written is named', async () => {
  const { code, stderr } = await init('/proc', '--yes');
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^A file could not be written:\n {2}- \/proc\/postern\.yaml \(E\w+\)\. Run/,
  );
});

test('§20.6 init --servers: takes servers over, and their secrets into .env', async () => {
  const cwd = await makeFolder();
  const servers = {
    web: { url: 'https://x.example/mcp', headers: { Authorization: "Bearer it's" } },
    files: { command: 'true', args: ['a b', '-y'], env: { API_KEY: 'k 1', MODE: 'on' } },
  };
  await writeFileIn(cwd, 'mcp.json', `{ // mine\n"mcpServers": ${JSON.stringify(servers)} }`);
  const { code } = await init(cwd, '--yes', '--servers', 'mcp.json');
  expect(code).toBe(0);
  const yaml = read(cwd, 'postern.yaml');
  expect(yaml).toContain('    args: ["a b","-y"]\n');
  expect(yaml).toContain('{"API_KEY":"${FILES_API_KEY}","MODE":"on"}');
  expect(yaml).toContain('builtIn: false');
  expect(yaml).not.toContain('Bearer');
  expect(read(cwd, '.env')).toContain(`WEB_AUTHORIZATION="Bearer it's"\nFILES_API_KEY='k 1'\n`);
  expect(existsSync(join(cwd, 'catalog.mjs'))).toBe(false);
  const shown = await runInside({ AUTH_REQUIRED: 'false' }, { args: ['config'], cwd });
  expect(shown.code, shown.stdout).toBe(0);
  expect(shown.stdout).toMatch(/^ {2}web: at x\.example\n {2}files: runs true$/m);
});

test('§20.6 init --servers: the secrets of auth are moved into .env, too', async () => {
  const cwd = await makeFolder();
  const auth = {
    type: 'oauth',
    clientId: 'gateway',
    clientSecret: 'cs 1',
    tokenParameters: { app_secret: '${KEPT}' },
  };
  const wiki = { url: 'https://x.example/mcp', auth };
  await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers: { wiki } }));
  const { code, stdout } = await init(cwd, '--yes', '--servers', 'mcp.json');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ {2}wiki +auth\.clientSecret +moved to \.env: WIKI_CLIENT_SECRET$/m);
  expect(read(cwd, '.env')).toContain(`WIKI_CLIENT_SECRET='cs 1'\n`);
  const written = read(cwd, 'postern.yaml');
  expect(written).toContain('"clientSecret":"${WIKI_CLIENT_SECRET}"');
  expect(written).toContain('"app_secret":"${KEPT}"');
  expect(written).not.toContain('cs 1');
});

const OTHER_BREAKS = '\v\f\r\u0085\u2028\u2029';

test.each([
  ['a key of several lines', 'BEGIN\nOIDC_ISSUER=https://evil.example\nEND\n'],
  ['lines with double quotation marks', '{\n "key": "k\nAUTH_REQUIRED=false"\n}'],
  ['lines with quotation marks of every kind', `a"b'c\`d\nAUTH_REQUIRED=false`],
  ['lines as Windows ends them', 'BEGIN\r\nAUTH_REQUIRED=false\r\nEND'],
  ['lines, and a \\n that is none', 'a\\nb\nAUTH_REQUIRED=false'],
  [
    'what some readers take for ends of lines',
    `a${[...OTHER_BREAKS].join('AUTH_REQUIRED=false')}b`,
  ],
])(
  '§20.6 init --servers: %s are no further lines of .env, which Docker takes for settings',
  async (_what, value) => {
    const cwd = await makeFolder();
    const mcpServers = { files: { command: 'x', env: { API_KEY: value } } };
    await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers }));
    expect((await init(cwd, '--yes', '--servers', 'mcp.json')).code).toBe(0);
    const text = read(cwd, '.env');
    for (const each of OTHER_BREAKS) expect(text).not.toContain(each);
    const settings = text.split('\n').filter((one) => !/^(#|$)/.test(one));
    for (const one of settings) expect(one).toMatch(/^(POSTERN_CONFIG|FILES_API_KEY(_\d+)?)=/);
    const [, written = ''] = /^ {4}env: ([^\n]*)/m.exec(read(cwd, 'postern.yaml')) ?? [];
    expect(written).not.toMatch(/BEGIN|AUTH_REQUIRED|OIDC_ISSUER/);
    const variables = parseEnv(text);
    const { API_KEY } = JSON.parse(written);
    expect(API_KEY.replace(/\$\{(\w+)\}/g, (_: string, name: string) => variables[name])).toBe(
      value,
    );
  },
);

test('§20.6 init --servers: each secret has a variable of its own, and none is a setting', async () => {
  const cwd = await makeFolder();
  const authorize = (value: string) => ({
    url: `https://${value}.example/mcp`,
    headers: { Authorization: value },
  });
  const servers = {
    'foo.bar': authorize('a'),
    foo: { ...authorize('b'), headers: { 'Bar-Authorization': 'b' } },
    'x-文': authorize('c'),
    'x-語-x': authorize('d'),
    '1pass': authorize('e'),
    dcr: { command: 'x', env: { ACCESS_TOKEN: 'f' } },
    oauth: { command: 'x', env: { CLIENT_SECRET: 'g' } },
  };
  await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers: servers }));
  expect((await init(cwd, '--yes', '--servers', 'mcp.json')).code).toBe(0);
  const env = parseEnv(read(cwd, '.env'));
  expect(env).not.toHaveProperty('DCR_ACCESS_TOKEN');
  expect(env).not.toHaveProperty('OAUTH_CLIENT_SECRET');
  const names = [...read(cwd, 'postern.yaml').matchAll(/\$\{([A-Za-z_]\w*)\}/g)];
  expect(names.map(([, name = '']) => env[name])).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
});

test('§20.6 init --servers: no variable of .env is one that Node.js or a proxy setting of the gateway would obey', async () => {
  const cwd = await makeFolder();
  const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_AUTH_TOKEN: 'secret' };
  const mcpServers = { node: { command: 'x', env } };
  await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers }));
  const { code, stdout } = await init(cwd, '--yes', '--servers', 'mcp.json');
  expect(code).toBe(0);
  const written = parseEnv(read(cwd, '.env'));
  expect(Object.keys(written).filter((name) => name.startsWith('NODE_'))).toEqual([]);
  expect(written).toMatchObject({ SERVER_NODE_AUTH_TOKEN: 'secret' });
  expect(stdout).toContain('SERVER_NODE_AUTH_TOKEN (NODE_AUTH_TOKEN has a meaning for Node.js');
});

test('§20.6 init --servers: names of other programs become names that the gateway takes', async () => {
  const cwd = await makeFolder();
  const one = { command: process.execPath, args: [SERVER] };
  await writeFileIn(
    cwd,
    'mcp.json',
    JSON.stringify({ mcpServers: { my_db: one, 'My Server': { ...one, env: { API_KEY: 'k' } } } }),
  );
  const { code, stdout } = await init(cwd, '--yes', '--servers', 'mcp.json');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ {2}my-db +name +renamed: it was my_db\. A name is a letter, then /m);
  expect(stdout).toMatch(/^ {2}my-server +name +renamed: it was My Server\. /m);
  expect(read(cwd, 'postern.yaml')).toMatch(/^ {2}my-db:$[\s\S]*^ {2}my-server:$/m);
  const shown = await runInside({ AUTH_REQUIRED: 'false' }, { args: ['config'], cwd });
  expect(shown.code, shown.stdout).toBe(0);
  expect(shown.stdout).not.toContain('other names here');
});

test.each([
  {
    names: ['my_db', 'My DB'],
    says: '"My DB" and "my_db" would both be called my-db here. Rename one of them.',
  },
  { names: ['文'], says: '"文" is not a valid name for a server.' },
])('§20.6 init --servers: $names are refused, and nothing is written', async ({ names, says }) => {
  const cwd = await makeFolder();
  const mcpServers = Object.fromEntries(names.map((name) => [name, { command: 'x' }]));
  await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers }));
  const { code, stderr } = await init(cwd, '--yes', '--servers', 'mcp.json');
  expect([code, existsSync(join(cwd, '.env'))]).toEqual([1, false]);
  expect(stderr).toContain(says);
});

test('§20.6 init --servers: secrets in arguments and URLs are moved into .env, too, and a table says what was moved, renamed and left', async () => {
  const cwd = await makeFolder();
  const mcpServers = {
    my_db: {
      command: 'npx',
      args: [
        '-y',
        'server-postgres',
        'postgres://pw:pw@pw.example/pw',
        '--api-key',
        'k-1',
        '--token=t-1',
      ],
      env: { DATABASE_URL: 'postgres://u:p%40ss@db.example/x', MODE: 'on', OWN: '${OWN_TOKEN}' },
    },
    search: { url: 'https://search.example/mcp?key=q-1&lang=en&token=q-2' },
  };
  await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers }));
  const { code, stdout } = await init(cwd, '--yes', '--servers', 'mcp.json');
  expect(code).toBe(0);
  expect(parseEnv(read(cwd, '.env'))).toMatchObject({
    MY_DB_PASSWORD: 'pw',
    MY_DB_API_KEY: 'k-1',
    MY_DB_TOKEN: 't-1',
    MY_DB_DATABASE_URL_PASSWORD: 'p%40ss',
    SEARCH_KEY: 'q-1',
    SEARCH_TOKEN: 'q-2',
  });
  const yaml = read(cwd, 'postern.yaml');
  expect(yaml).toContain(
    '"postgres://pw:${MY_DB_PASSWORD}@pw.example/pw","--api-key","${MY_DB_API_KEY}","--token=${MY_DB_TOKEN}"',
  );
  expect(yaml).toContain('postgres://u:${MY_DB_DATABASE_URL_PASSWORD}@db.example/x');
  expect(yaml).toContain('mcp?key=${SEARCH_KEY}&lang=en&token=${SEARCH_TOKEN}');
  const table = stdout.slice(0, stdout.indexOf('Next:'));
  for (const row of [
    /^ {2}my-db +name +renamed: it was my_db\. A name is a letter, then /m,
    /^ {2}my-db +args\[2\] +moved to \.env: MY_DB_PASSWORD$/m,
    /^ {2}my-db +env\.DATABASE_URL +moved to \.env: MY_DB_DATABASE_URL_PASSWORD$/m,
    /^ {2}my-db +env\.MODE +left: it does not look like a secret$/m,
    /^ {2}my-db +env\.OWN +left: it names a variable$/m,
    /^ {2}search +url +moved to \.env: SEARCH_KEY, SEARCH_TOKEN$/m,
  ])
    expect(table).toMatch(row);
  expect(stdout).not.toMatch(/k-1|t-1|q-1|q-2|p%40ss/);
});

test('§20.6 init --servers: a server that wants a login of each user gets auth: oauth; it is asked once, without a token', async () => {
  const asked: { readonly path: string | undefined; readonly headers: IncomingHttpHeaders }[] = [];
  const { url: origin, close } = await listenOnLoopback(
    (request, response) => {
      asked.push({ path: request.url, headers: request.headers });
      const challenge = request.url?.startsWith('/login')
        ? 'Bearer resource_metadata="https://x.example/metadata"'
        : 'Bearer';
      response.writeHead(401, { 'WWW-Authenticate': challenge }).end();
    },
    0,
    '',
  );
  onTestFinished(close);
  const cwd = await makeFolder();
  const mcpServers = {
    login: { url: `${origin}/login` },
    'login-sse': { url: `${origin}/login/sse`, type: 'sse' },
    key: { url: `${origin}/key` },
    token: { url: `${origin}/login/token`, headers: { 'X-Api-Key': 'k-1' } },
    secret: { url: `${origin}/login/secret?key=q-1` },
    off: { url: `${origin}/login/off`, disabled: true },
    down: { url: 'http://127.0.0.1:1/mcp' },
  };
  await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers }));
  const { code, stdout } = await init(cwd, '--yes', '--servers', 'mcp.json');
  expect(code).toBe(0);
  expect(
    read(cwd, 'postern.yaml').match(/^ {2}[\w-]+:\n(?: {4}(?!auth).*\n)*(?: {4}auth.*\n)/gm),
  ).toEqual([
    `  login:\n    url: "${origin}/login"\n    auth: {"type":"oauth"}\n`,
    `  login-sse:\n    url: "${origin}/login/sse"\n    type: sse\n    auth: {"type":"oauth"}\n`,
  ]);
  expect(stdout).toMatch(
    /^ {2}login +auth +added, with the type oauth: it requires each user to log in/m,
  );
  expect(asked.map(({ path }) => path).sort()).toEqual(['/key', '/login', '/login/sse']);
  expect(asked.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
  const env = { OIDC_ISSUER: 'https://id.example', OAUTH_CLIENT_ID: 'x', OAUTH_MODE: 'broker' };
  const shown = await runInside(env, { args: ['config'], cwd });
  expect(shown.code, shown.stdout).toBe(0);
});

/** Longer than any word, as tokens are. */
const LONG_TOKEN = 'A1b2C3d4E5f6G7h8I9j0K1l2';

test.each([
  { member: 'command', server: { command: 'npx -y server --token=hunter2' } },
  { member: 'command', server: { command: 'npx -y server --api-key hunter2' } },
  { member: 'args[0]', server: { command: 'x', args: ['--header=X-Api-Key: hunter2'] } },
  {
    member: 'args[1]',
    server: { command: 'x', args: ['--header', 'Authorization: Bearer hunter2'] },
  },
  { member: 'args[0]', server: { command: 'x', args: ['--env=API_TOKEN=hunter2'] } },
  { member: 'args[1]', server: { command: 'x', args: ['--token', '-hunter2'] } },
  {
    member: 'args[1]',
    server: { command: 'x', args: ['--config', '{"a":1,"api_key": "hunter2"}'] },
  },
  {
    member: 'env.CONFIG',
    server: { command: 'x', env: { CONFIG: '{"db":{"password":"hunter2"}}' } },
  },
])(
  '§20.6 init --servers: the secret in $member of $server.command $server.args is moved into .env',
  async ({ member, server }) => {
    const cwd = await makeFolder();
    await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers: { web: server } }));
    const { code, stdout } = await init(cwd, '--yes', '--servers', 'mcp.json');
    expect(code).toBe(0);
    expect(Object.values(parseEnv(read(cwd, '.env'))).join()).toContain('hunter2');
    expect(stdout + read(cwd, 'postern.yaml')).not.toContain('hunter2');
    expect(stdout).toContain(`web  ${member}  moved to .env: WEB_`);
  },
);

test.each([
  { member: 'command', server: { command: `npx server --header "X-Own: Bearer ${LONG_TOKEN}"` } },
  { member: 'command', server: { command: `server ${LONG_TOKEN}` } },
  { member: 'args[1]', server: { command: 'x', args: ['--header', `X-Own: ${LONG_TOKEN}`] } },
  { member: 'args[0]', server: { command: 'x', args: [`{"values":["${LONG_TOKEN}"]}`] } },
  { member: 'env.OWN', server: { command: 'x', env: { OWN: LONG_TOKEN } } },
  {
    member: 'headers.X-Own',
    server: { url: 'https://a.example', headers: { 'X-Own': LONG_TOKEN } },
  },
  { member: 'url', server: { url: `https://a.example/${LONG_TOKEN}/mcp` } },
])(
  '§20.6 init --servers: of $member of $server.command $server.args the table says that it looks like a secret',
  async (row) => {
    const cwd = await makeFolder();
    await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers: { web: row.server } }));
    const { stdout } = await init(cwd, '--yes', '--servers', 'mcp.json');
    expect(stdout).toContain(
      `web  ${row.member}  left: it looks like a secret, move it yourself\n`,
    );
    expect(stdout).not.toContain(LONG_TOKEN);
  },
);

test('§20.6 init --servers: a path, a package and an option are no secrets', async () => {
  const cwd = await makeFolder();
  const web = {
    command: '/usr/local/lib/node_modules/.bin/server',
    args: ['-y', '@modelcontextprotocol/server-filesystem@2025.11.5', '--auth', '--log-level=2'],
  };
  await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers: { web } }));
  const { stdout } = await init(cwd, '--yes', '--servers', 'mcp.json');
  expect(stdout).not.toContain('From mcp.json');
  expect(stdout).not.toContain('still holds');
});

test('§20.6 init --servers: it says of a server that it is disabled', async () => {
  const cwd = await makeFolder();
  const mcpServers = { web: { command: 'x', disabled: true } };
  await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers }));
  const { stdout } = await init(cwd, '--yes', '--servers', 'mcp.json');
  expect(stdout).toMatch(/^ {2}web +disabled +left: its tools are not offered until/m);
});

test.each([
  { file: 'mcp.json', ignores: '\n/mcp.json\n', says: 'delete it. Until then, .gitignore keeps' },
  { file: 'a[1].json', ignores: '\n/a\\[1\\].json\n', says: 'delete it. Until then, .gitignore' },
  { file: 'a\\b.json', ignores: '\n/a\\\\b.json\n', says: 'delete it. Until then, .gitignore' },
  { file: '../mcp.json', ignores: '', says: 'delete it, or keep it out of Git.' },
])('§20.6 init --servers: it says that $file still holds the secrets', async (row) => {
  const cwd = join(await makeFolder(), 'inner');
  mkdirSync(cwd);
  const mcpServers = { web: { command: 'x', env: { API_KEY: 'k' } } };
  await writeFileIn(cwd, row.file, JSON.stringify({ mcpServers }));
  const { stdout } = await init(cwd, '--yes', '--servers', row.file);
  expect(stdout).toContain(`${row.file} still holds the secrets: ${row.says}`);
  expect(read(cwd, '.gitignore')).toContain(row.ignores);
  expect(read(cwd, '.gitignore')).not.toContain('..');
});

test('§20.6 init --servers: a secret sets no other variable of .env', async () => {
  const cwd = await makeFolder();
  const importSecret = async (TOKEN: string) => {
    const mcpServers = { web: { command: 'x', env: { TOKEN } } };
    await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers }));
    return init(cwd, '--yes', '--force', '--servers', 'mcp.json');
  };
  const odd = 'it\'s "one" \\n two\nAUTH_REQUIRED=false';
  expect((await importSecret(odd)).code).toBe(0);
  const { WEB_TOKEN, WEB_TOKEN_2, ...others } = parseEnv(read(cwd, '.env'));
  // No one line can have all of it.
  expect(`${WEB_TOKEN}\n${WEB_TOKEN_2}`).toBe(odd);
  expect(others).not.toHaveProperty('AUTH_REQUIRED');
  expect((await importSecret(`a'"\`\r\nAUTH_REQUIRED=false`)).code).toBe(0);
  expect(parseEnv(read(cwd, '.env'))).not.toHaveProperty('AUTH_REQUIRED');
});

/** What a line of .env, or YAML, could read otherwise. */
const ODD_VALUES = {
  PEM_KEY: '-----BEGIN KEY-----\nab+/=\n-----END KEY-----\n',
  WINDOWS_KEY: '-----BEGIN KEY-----\r\nab\r\n-----END KEY-----\r\n',
  QUOTES_TOKEN: `it's "one" of \`three\``,
  COMMENT_TOKEN: 'a # b\n# c\n#',
  DOLLAR_TOKEN: '$HOME $1 $$ {x} %PATH%',
  ESCAPE_TOKEN: '\\n \\ \\" C:\\new',
  SPACE_TOKEN: '  a\tb  ',
  SETTING_TOKEN: 'x\nAUTH_REQUIRED=false\nexport PORT=1',
  LINES_TOKEN: '\n\na\n\n',
  OTHER_TOKEN: '=x: {y} [z] & * ! | > é 😀 \u2028 \u0085',
  EMPTY_TOKEN: '',
  PLAIN: 'not a secret\n# but: "odd" \'as\' `others`\n...\n---\n',
} as const;

test('§20.6 init --servers: a program gets each value as it was, whatever is in it', async () => {
  const cwd = await makeFolder();
  const mcpServers = { odd: { command: process.execPath, args: [SERVER], env: ODD_VALUES } };
  await writeFileIn(cwd, 'mcp.json', JSON.stringify({ mcpServers }));
  expect((await init(cwd, '--yes', '--servers', 'mcp.json')).code).toBe(0);
  expect(read(cwd, 'postern.yaml')).not.toContain('BEGIN KEY');
  const service = await startPostern({ AUTH_REQUIRED: 'false' }, { args: ['start'], cwd });
  await expect.poll(() => callTool(service.url, 'odd__env')).toContain('PEM_KEY');
  expect(JSON.parse(String(await callTool(service.url, 'odd__env')))).toMatchObject(ODD_VALUES);
});

const TENANT = '3aa4a235-b6e2-48d5-9195-7fcf05b459b0';

test.each([
  { provider: 'entra', issuer: `https://login.microsoftonline.com/${TENANT}/v2.0` },
  { provider: 'okta', issuer: 'https://org.okta.com' },
  { provider: 'okta', issuer: 'https://org.okta.com/oauth2/default' },
  { provider: 'auth0', issuer: 'https://org.auth0.com/' },
  { provider: 'keycloak', issuer: 'https://id.example.com/realms/main' },
  { provider: 'google', issuer: 'https://accounts.google.com' },
  { provider: 'github', issuer: 'https://github.example.com' },
  { provider: 'gitlab', issuer: 'https://gitlab.com' },
  { provider: 'slack', issuer: 'https://slack.com' },
  { provider: 'other', issuer: 'https://id.example.com' },
])(
  '§20.6 init --provider $provider, $issuer: once the values are there, the settings are right',
  async ({ provider, issuer }) => {
    const cwd = await makeFolder();
    const { stdout } = await init(cwd, '--yes', '--provider', provider);
    expect(stdout).toContain('http://localhost:3000/oauth/callback');
    expect(stdout).toMatch(/Fill in \.env: .*OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET/);
    const unfinished = await runInside({}, { args: ['config'], cwd });
    expect(unfinished.code).toBe(1);
    expect(unfinished.stdout).toContain('✗ OAUTH_CLIENT_ID: … is a placeholder');
    const login = ['--issuer', issuer, '--client-id', 'c'];
    const store = ['--store', 'redis', '--redis-url', 'redis://h'];
    const values = [...login, '--client-secret', 's', ...store];
    await init(cwd, '--yes', '--force', '--provider', provider, ...values);
    const { code, stdout: shown } = await runInside({}, { args: ['config'], cwd });
    expect(code, shown).toBe(0);
    expect(shown).toMatch(/^ {2}OAUTH_MODE +broker +\.env$/m);
    // §5.11: nothing is asked of the provider's access tokens.
    expect(read(cwd, '.env')).not.toMatch(/OIDC_AUDIENCE|OAUTH_ADDED_SCOPES/);
  },
);

test.each([
  { args: ['--servers', 'nope.json'], code: 1, says: '--servers: nope.json cannot be read' },
  {
    args: ['--servers', 'https://registry.example/server.json'],
    code: 1,
    says: '--servers takes a file, not an address. Fetch it first: curl -o server.json https://registry.example/server.json',
  },
  { args: ['--servers', 'empty.json'], code: 1, says: 'empty.json has no "mcpServers"' },
  { args: ['--provider', 'otka'], code: 2, says: '"otka" is not one of dev, entra, okta' },
  { args: ['--store', 'disk'], code: 2, says: '"disk" is not one of embedded, redis.' },
  { args: ['--base-url', 'x.example/mcp'], code: 2, says: '--base-url is not valid. It must be' },
  { args: ['--issuer', 'example'], code: 2, says: '--issuer is not valid. It must be an absolute' },
  {
    args: ['--client-id', 'svc-1'],
    code: 2,
    says: '--client-id is not valid. It must be a client',
  },
  { args: ['--redis-url', 'host'], code: 2, says: '--redis-url is not valid. It must be redis://' },
])('§20.6 init: $args is refused: $says', async ({ args, code, says }) => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'empty.json', '{}');
  const ended = await init(cwd, '--yes', ...args);
  expect({ code: ended.code, wrote: existsSync(join(cwd, '.env')) }).toEqual({
    code,
    wrote: false,
  });
  expect(ended.stderr).toContain(says);
});

test.skipIf(process.platform !== 'linux' || !existsSync(SCRIPT))(
  '§20.6 init: in a terminal it asks, and Ctrl+C writes nothing',
  async () => {
    const finished = await makeFolder();
    const asked = openTerminal(finished);
    await asked.answer('Where do your users log in?', '\r');
    await asked.answer('What should the gateway serve?', '\r');
    await asked.answer('Where does it keep sessions?', '\r');
    await asked.ended;
    expect(asked.screen()).toContain('Wrote postern.yaml, .env, catalog.mjs, catalog.test.mjs');

    const abandoned = await makeFolder();
    const ended = openTerminal(abandoned);
    await ended.answer('Where do your users log in?', '\u0003');
    await ended.ended;
    expect(ended.screen()).toContain('Nothing was written');
    expect(existsSync(join(abandoned, '.env'))).toBe(false);
  },
);

function openTerminal(cwd: string) {
  const command = `stty cols 100 rows 40; exec '${process.execPath}' '${ROOT}/dist/cli/main.js' init`;
  const terminal = spawn(SCRIPT, ['-qfec', command, '/dev/null'], {
    cwd,
    env: { PATH: process.env.PATH, SHELL: '/bin/sh', TERM: 'xterm' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  onTestFinished(() => void terminal.kill('SIGKILL'));
  let printed = '';
  terminal.stdout.setEncoding('utf8').on('data', (piece: string) => {
    printed += piece;
  });
  return {
    screen: () => printed,
    async answer(question: string, keys: string) {
      await expect.poll(() => printed).toContain(question);
      terminal.stdin.write(keys);
    },
    ended: new Promise((resolve) => terminal.once('close', resolve)),
  };
}
