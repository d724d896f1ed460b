// postern config: the effective settings, where each comes from, and what is wrong with them.
import { afterEach, expect, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { endPosterns, makeFolder, runPostern } from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';

afterEach(endPosterns);

const ANONYMOUS = { AUTH_REQUIRED: 'false' } as const;

async function makeProject(files: Readonly<Record<string, string>>): Promise<string> {
  const cwd = await makeFolder();
  for (const [name, text] of Object.entries(files)) await writeFileIn(cwd, name, text);
  return cwd;
}

const SERVERS = JSON.stringify({
  mcpServers: {
    files: { command: 'npx', args: ['--key', 'hunter4'], env: { KEY: 'hunter5' } },
    web: { url: 'https://x.example/hunter6', headers: { Authorization: 'Bearer hunter7' } },
  },
});

test('§20.5 config: each setting has its source, and no secret is printed', async () => {
  const cwd = await makeProject({
    '.env': 'OAUTH_CLIENT_SECRET=hunter2\nPORT=3010\nLOG_LEVEL=warn\n',
    'mcp.json': SERVERS,
  });
  const env = { ...ANONYMOUS, LOG_LEVEL: 'debug', REDIS_URL: 'redis://u:hunter3@localhost' };
  const args = ['config', '--config', 'mcp.json'];
  const { code, stdout } = await runInside(env, { args, cwd });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ {2}PORT +3010 +\.env$/m);
  expect(stdout).toMatch(/^ {2}LOG_LEVEL +debug +environment$/m);
  expect(stdout).toMatch(/^ {2}POSTERN_CONFIG +mcp\.json +--config$/m);
  expect(stdout).toMatch(/^ {2}OAUTH_CLIENT_SECRET +\(secret, f52fbd32\) +\.env$/m);
  expect(stdout).toMatch(/^ {2}REDIS_URL +\(secret, [0-9a-f]{8}\) +environment$/m);
  expect(stdout).toMatch(/^ {2}files: runs npx\n {2}web: at x\.example$/m);
  expect(stdout).not.toContain('METRICS_ENABLED');
  const json = await runInside(env, { args: [...args, '--json'], cwd });
  expect(stdout + json.stdout).not.toContain('hunter');
});

test('§20.5 config: what may be secret in addresses is hidden, right or wrong, and in the log of a start', async () => {
  const env = {
    OIDC_ISSUER: 'https://id.example?realm=hunter1',
    OIDC_JWKS_URL: 'https://id.example/keys?key=hunter2&hunter3#hunter4',
    OAUTH_TOKEN_URL: 'https:/id.example/token?key=hunter0',
    OAUTH_REVOCATION_URL: 'u:hunter5@id.example/revoke',
    OAUTH_AUTHORIZATION_URL: 'https://u:hunter6@id.example/authorize',
    OTEL_RESOURCE_ATTRIBUTES: 'api.key=hunter7',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=hunter8',
  };
  const text = await runPostern(env, { args: ['config'] });
  const json = await runPostern(env, { args: ['config', '--json'] });
  const start = await runPostern(env);
  for (const { code, stdout, stderr } of [text, json, start]) {
    expect(code).toBe(1);
    expect(stdout + stderr).toContain('OAUTH_TOKEN_URL');
    expect(stdout + stderr).not.toContain('hunter');
  }
  const hidden = 'https://id\\.example/keys\\?key=…&…#… \\(secret, [0-9a-f]{8}\\)';
  expect(text.stdout).toMatch(new RegExp(`OIDC_JWKS_URL +${hidden} +environment$`, 'm'));
  expect(JSON.parse(json.stdout).settings).toContainEqual(
    expect.objectContaining({
      variable: 'OIDC_ISSUER',
      value: 'https://id.example?realm=…',
      fingerprint: expect.stringMatching(/^[0-9a-f]{8}$/),
    }),
  );
});

test('§20.5 config: --json has every setting, and the file', async () => {
  const cwd = await makeProject({ 'mcp.json': SERVERS });
  const env = { ...ANONYMOUS, POSTERN_CONFIG: 'mcp.json' };
  const { code, stdout } = await runInside(env, { args: ['config', '--json'], cwd });
  const { settings, file, problems } = JSON.parse(stdout);
  expect({ code, problems }).toEqual({ code: 0, problems: [] });
  expect(settings).toContainEqual(
    expect.objectContaining({ variable: 'PORT', value: '3000', source: 'default' }),
  );
  expect(file).toMatchObject({
    path: 'mcp.json',
    builtIn: true,
    servers: [
      { name: 'files', kind: 'stdio', target: 'npx' },
      { name: 'web', kind: 'http', target: 'x.example', auth: 'none' },
    ],
    rules: 0,
    isLocked: false,
  });
});

test('§20.5 config: secrets in what programs are called with are not shown', async () => {
  const servers = {
    one: { command: 'npx server --token=hunter2' },
    two: { command: 'npx', args: ['postgres://ann:hunter2@db.example', '${OTHER}'] },
  };
  const cwd = await makeProject({ 'mcp.json': JSON.stringify({ mcpServers: servers }) });
  const env = { ...ANONYMOUS, POSTERN_CONFIG: 'mcp.json', OTHER: 'hunter2' };
  for (const args of [['config'], ['config', '--json']]) {
    const { stdout, stderr } = await runInside(env, { args, cwd });
    expect(stdout).toContain('npx server --token=…');
    expect(stdout + stderr).not.toContain('hunter2');
  }
});

test('§20.5 config: nothing that the files of a folder say moves the cursor of a terminal', async () => {
  const erase = '\u001b[2K\u009b1A\u202e';
  const cwd = await makeProject({
    '.env': `OAUTH_CLIENT_ID="a${erase}"\nPOSTERN_CONFIG="b${erase}.yaml"\nPORT="c${erase}"\n`,
  });
  for (const args of [['config'], ['config', '--json'], ['start']]) {
    const { code, stdout, stderr } = await runInside(ANONYMOUS, { args, cwd });
    expect(code).toBe(1);
    expect(stdout + stderr).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
    expect(stdout + stderr).toContain('c\\u001b[2K');
  }
});

test("§20.5 config: whose tools are served, with a catalogue of one's own", async () => {
  const cwd = await makeProject({ 'mcp.json': SERVERS });
  const env = { ...ANONYMOUS, POSTERN_CONFIG: 'mcp.json', POSTERN_CATALOG: 'tools.mjs' };
  const { stdout } = await runInside(env, { args: ['config'], cwd });
  expect(stdout).toMatch(/^ {2}your own tools: tools\.mjs\n {2}built-in tools: no,/m);
});

test('§20.5 config: --all has the settings with their default', async () => {
  const { stdout } = await runInside(ANONYMOUS, { args: ['config', '--all'] });
  expect(stdout).toMatch(/^ {2}METRICS_ENABLED +false +default$/m);
});

test.each([
  {
    what: 'a setting that is missing',
    files: {},
    env: {},
    says: [/^✗ OIDC_ISSUER +\(not set\)/m, /^✗ OIDC_ISSUER is missing/m],
  },
  {
    what: 'a value that is not allowed, and a misspelled name',
    files: { '.env': 'LOG_LEVEL=loud\nOAUTH_MOD=broker\n' },
    env: ANONYMOUS,
    says: [
      /^✗ LOG_LEVEL +loud +\.env$/m,
      /^✗ LOG_LEVEL: "loud" is not valid/m,
      /^✗ OAUTH_MOD is set/m,
    ],
  },
  {
    what: 'a configuration file with problems',
    files: { 'mcp.json': '{"mcpServers":{"a":{"comand":"npx"}}}' },
    env: { ...ANONYMOUS, POSTERN_CONFIG: 'mcp.json' },
    says: [/^✗ has problems$/m, /^✗ mcp\.json:1/m],
  },
  {
    what: 'a file of a gateway without its provider',
    files: { 'mcp.json': SERVERS },
    env: { POSTERN_CONFIG: 'mcp.json' },
    says: [/^ {2}files: runs npx$/m, /^✗ OIDC_ISSUER is missing/m],
  },
])('§20.5 config: $what is said, with exit code 1', async ({ files, env, says }) => {
  const cwd = await makeProject(files);
  const { code, stdout } = await runInside(env, { args: ['config'], cwd });
  expect(code).toBe(1);
  for (const line of says) expect(stdout).toMatch(line);
});

test('§20.5 config: a misspelled name alone is a warning', async () => {
  const { code, stdout } = await runInside(
    { ...ANONYMOUS, OAUTH_MOD: 'proxy' },
    { args: ['config'] },
  );
  expect(code).toBe(0);
  expect(stdout).toMatch(/^! OAUTH_MOD is set, .* Did you mean OAUTH_MODE\?$/m);
});
