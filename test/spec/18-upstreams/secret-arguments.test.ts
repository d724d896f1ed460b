// Which parts of a program's arguments are never shown.
import { expect, test } from 'vitest';
import { parseFile, readServer } from '../../support/upstreams/gateway-file.ts';

const ENV = { TOKEN: 'hunter2', HOME: '/home/ann', EMPTY: '' };

async function findSecrets(...args: readonly string[]) {
  const server = await readServer({ command: 'x', args }, { env: ENV });
  return server?.kind === 'stdio' ? [...new Set(server.secretArguments)] : undefined;
}

const GITHUB_TOKEN = `ghp_${'a1'.repeat(18)}`;
const JWT = 'eyJhbGciOiJub25l.eyJzdWIiOiJhbm4i.c2ln';

test.each([
  { args: ['${TOKEN}'], secrets: ['hunter2'] },
  { args: ['https://x.example/${env:TOKEN}/mcp'], secrets: ['hunter2'] },
  { args: ['--token=s3cr3t'], secrets: ['s3cr3t'] },
  { args: ['--api-key', 's3cr3t'], secrets: ['s3cr3t'] },
  { args: ['DB_PASSWORD=a=b c'], secrets: ['a=b c'] },
  { args: ['--header', 'Authorization: Bearer s3cr3t'], secrets: ['s3cr3t'] },
  { args: ['X-Api-Key:s3cr3t'], secrets: ['s3cr3t'] },
  { args: ['postgres://ann:s3%2Fcr3t@db.example/app'], secrets: ['s3%2Fcr3t', 's3/cr3t'] },
  { args: ['--url=redis://:s3cr3t@cache.example'], secrets: ['s3cr3t'] },
  { args: ['https://s3cr3t@git.example/repository'], secrets: ['s3cr3t'] },
  {
    args: ['https://x.example/mcp?a=b&key=s3cr3t#access_token=t0k3n'],
    secrets: ['s3cr3t', 't0k3n'],
  },
  { args: [GITHUB_TOKEN], secrets: [GITHUB_TOKEN] },
  { args: ['--login', `as ${JWT}`], secrets: [JWT] },
])('§18.3 arguments: the secrets of $args are $secrets', async ({ args, secrets }) => {
  expect(await findSecrets(...args)).toEqual(secrets);
});

test.each([
  ['-y', '@modelcontextprotocol/server-filesystem', '/srv/docs'],
  ['${HOME}/docs', '${UNSET:-default}', '${EMPTY:-}'],
  ['--token', '--verbose'],
  ['--key-file', '/run/secrets/key', '--max-tokens', '40960', '--no-auth', 'plain'],
  ['--author=Ann Example'],
  ['https://x.example/mcp?page=2', 'ann@mail.example', 'postgres://db.example/app'],
])('§18.3 arguments: %j %j %j has no secret', async (...args) => {
  expect(await findSecrets(...args.filter((text) => text !== undefined))).toEqual([]);
});

test('§18.1 file: what looks like a secret in the clear is named in one line, and not shown', async () => {
  const args = [
    '-y',
    'postgres://u:pw-1@db',
    '--token',
    'tk-1',
    '--key=${KEY}',
    '--max-tokens',
    '5',
  ];
  const parsed = await parseFile(
    {
      mcpServers: {
        db: { command: 'npx', args, env: { API_KEY: 'ak-1', MODE: 'fast', KEY: '${KEY}' } },
        wiki: {
          url: 'https://wiki.example/mcp?token=qt-1',
          headers: { Authorization: 'Bearer ht-1', 'X-Api-Key': '${KEY}', 'X-Mode': 'fast' },
        },
        open: { url: 'https://open.example/mcp' },
      },
    },
    { env: { KEY: 'of the environment' } },
  );
  expect(parsed).toMatchObject({
    warnings: [
      expect.stringMatching(
        /^mcp\.json:7: these look like secrets.*: mcpServers\.db\.args\[1\], mcpServers\.db\.args\[3\], mcpServers\.db\.env\.API_KEY, mcpServers\.wiki\.url, mcpServers\.wiki\.headers\.Authorization\. .*postern init --servers mcp\.json/,
      ),
    ],
  });
  expect(JSON.stringify(parsed.kind === 'parsed' && parsed.warnings)).not.toMatch(
    /pw-1|tk-1|ak-1|qt-1|ht-1/,
  );
});
