// The command `postern lock`, as a process of its own, with real servers.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLock } from '../../src/lock/lock.ts';
import { parseLockFile } from '../../src/lock/lock-file.ts';
import {
  type Env,
  endPosterns,
  makeFolder,
  runPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { closeAfterTest, useFresh, useShared } from '../support/lifetimes.ts';
import { startIssuer } from '../support/oauth/issuer.ts';
import { startUpstream } from '../support/oauth/upstream.ts';
import {
  buildTool,
  type Listing,
  type ListingServer,
  startListingServer,
} from '../support/upstreams/listing-server.ts';

const SCRIPTED = fileURLToPath(
  new URL('../support/upstreams/scripted-server.mjs', import.meta.url),
);

const readLock = (text: string) => createLock(parseLockFile(text));

const issuer = useShared(startIssuer);
const wiki = useFresh(() =>
  startListingServer({
    tools: [buildTool('search'), buildTool('edit')],
    prompts: [{ name: 'greet', description: 'Greets.' }],
    instructions: 'Search first.',
  }),
);
let folder: string;

beforeEach(async () => {
  folder = await makeFolder();
});
afterEach(endPosterns);

const lockPath = () => join(folder, 'postern.lock');
const readText = () => readFile(lockPath(), 'utf8');

/** A text in place of a server is its URL. */
async function configure(servers: Readonly<Record<string, unknown>>): Promise<void> {
  const mcpServers = Object.fromEntries(
    Object.entries(servers).map(([name, one]) => [
      name,
      typeof one === 'string' ? { url: one } : one,
    ]),
  );
  await writeFile(join(folder, 'mcp.json'), JSON.stringify({ mcpServers }));
}

async function runLock(
  args: readonly string[] = [],
  env: Env = {},
  input?: string,
  runCommand: typeof runInside = runInside,
) {
  const { code, stdout, stderr } = await runCommand(env, {
    args: ['lock', '--config', 'mcp.json', ...args],
    cwd: folder,
    input,
  });
  return { code, stdout, stderr };
}

/** `description` of a tool of the wiki from now on. */
function change(server: ListingServer, members: Partial<Listing>): void {
  Object.assign(server.listing, members);
}

describe('postern lock', () => {
  test('§18.7 postern lock: approves what servers of every transport say, the same each time', async () => {
    await configure({ wiki: wiki.url, files: { command: process.execPath, args: [SCRIPTED] } });
    const first = await runLock();
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toMatch(/Wrote postern\.lock: \d+ tools and 1 prompt of 2 servers\.\n$/);
    const text = await readText();
    const lock = readLock(text);
    expect(lock.check('wiki', 'tool', buildTool('search'))).toBe('approved');
    expect(lock.check('wiki', 'prompt', { name: 'greet', description: 'Greets.' })).toBe(
      'approved',
    );
    expect(lock.check('wiki', 'instructions', 'Search first.')).toBe('approved');
    expect(lock.check('files', 'tool', { name: 'echo', inputSchema: { type: 'object' } })).toBe(
      'approved',
    );
    expect(lock.check('wiki', 'tool', buildTool('other'))).toBe('new');

    change(wiki, { tools: [...wiki.listing.tools].reverse() });
    await runLock();
    expect(await readText()).toBe(text);
    expect(await runLock(['--check'])).toEqual({
      code: 0,
      stdout: 'postern.lock matches the servers.\n',
      stderr: '',
    });
  });

  test('§18.7 postern lock --check: exit code 1 and what was added, removed and changed', async () => {
    await configure({ wiki: wiki.url });
    await runLock();
    const before = await readText();
    change(wiki, {
      tools: [
        buildTool('search', { description: 'Sends all.', annotations: {} }),
        buildTool('new'),
      ],
      instructions: 'Send first.',
      prompts: [],
    });
    expect(await runLock(['--check'])).toEqual({
      code: 1,
      stdout: [
        'wiki: instructions has changed',
        'wiki: prompt "greet" is gone',
        'wiki: tool "edit" is gone',
        'wiki: tool "new" is new',
        'wiki: tool "search" has changed: annotations, description',
        'The gateway hides new and changed entries. `postern lock` approves them.\n',
      ].join('\n'),
      stderr: '',
    });
    const json = await runLock(['--check', '--json']);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({
      path: 'postern.lock',
      skipped: [],
      differences: expect.arrayContaining([
        {
          server: 'wiki',
          kind: 'tool',
          name: 'search',
          change: 'changed',
          members: ['annotations', 'description'],
        },
      ]),
    });
    expect(await readText()).toBe(before);

    expect((await runLock()).code).toBe(0);
    expect((await runLock(['--check'])).code).toBe(0);
    expect(await readText()).not.toContain('"edit"');
  });

  test('§18.7 postern lock: a server that the file no longer names goes', async () => {
    await configure({ wiki: wiki.url, other: wiki.url });
    await runLock();
    await configure({ wiki: wiki.url });
    expect((await runLock(['--check'])).stdout).toContain('other: tool "search" is gone');
    await runLock();
    expect(await readText()).not.toContain('"other"');
  });

  test('§18.7 postern lock --check without a lock: exit code 1', async () => {
    await configure({ wiki: wiki.url });
    const { code, stdout } = await runLock(['--check']);
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining('Nothing is locked: postern.lock does not exist'),
    ]);
    await expect(readText()).rejects.toThrow('ENOENT');
  });

  test('§18.7 postern lock: names of a server cannot rewrite what is printed', async () => {
    change(wiki, { tools: [buildTool('a\u001b[2K\u009b1A\u202eb\n')] });
    await configure({ wiki: wiki.url });
    const { stdout } = await runLock();
    expect(stdout).toContain(String.raw`wiki: tool "a\u001b[2K\u009b1A\u202eb\n" is new`);
    expect(await readText()).toContain(String.raw`"a\u001b[2K\u009b1A\u202eb\n": [`);
    expect((await runLock(['--check'])).code).toBe(0);
  });
});

describe('postern lock of servers that look at what a client can be asked', () => {
  test('§18.7 postern lock: approves what a program of its own offers to clients that can be asked, and to others', async () => {
    const args = [SCRIPTED, 'needs-elicitation'];
    await configure({ own: { command: process.execPath, args, isolation: 'user' } });
    expect((await runLock()).stdout).toContain('own: tool "echo" is new');
    expect((await runLock(['--check'])).code).toBe(0);
  });

  test('§18.7 postern lock --token: approves what an HTTP server says to clients with and without capabilities', async () => {
    const sessions: boolean[] = [];
    change(wiki, {
      answers: {
        initialize: ({ protocolVersion, capabilities }) => {
          sessions.push(Object(capabilities).elicitation !== undefined);
          return {
            result: {
              protocolVersion,
              capabilities: { tools: {} },
              serverInfo: { name: 'w', version: '1' },
            },
          };
        },
        'tools/list': () => {
          const tools = sessions.at(-1) ? ['confirm', 'search'] : ['search', 'plain'];
          return { result: { tools: tools.map((name) => buildTool(name)) } };
        },
      },
    });
    const audience = 'https://wiki.example';
    await configure({ wiki: { url: wiki.url, auth: { type: 'forward', audience } } });
    const token = await issuer.sign({ sub: 'ada', aud: audience });
    const { stdout } = await runLock(['--token', '-'], {}, token, runPostern);
    expect(stdout.match(/tool "\w+" is new/g)).toEqual([
      'tool "confirm" is new',
      'tool "plain" is new',
      'tool "search" is new',
    ]);
  });

  test('§18.7 postern lock: a server with identity beside a running gateway is one line that says what to do', async () => {
    await configure({ wiki: { url: wiki.url, auth: { type: 'identity' } } });
    const dataDir = await makeFolder();
    const env = { OIDC_ISSUER: issuer.url, DATA_DIR: dataDir, BASE_URL: 'https://gw.example' };
    const running = await startPostern(env);
    const { code, stderr } = await runLock([], env);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^The keys for servers with identity cannot be read:\n {2}- The data folder \S+ \(DATA_DIR\) is in use by a running gateway\. .*Stop the gateway, run postern lock again, and start it\. /,
      ),
    ]);
    running.kill('SIGTERM');
    await running.ended;
    expect((await runLock([], env)).code).toBe(0);
  });
});

describe('postern lock when something is wrong', () => {
  test('§18.7 postern lock: nothing is written where a server cannot be read of which nothing is approved', async () => {
    const gone = await startListingServer();
    await gone.close();
    await configure({ wiki: wiki.url, gone: gone.url, broken: { command: 'no-such-command' } });
    const { code, stdout, stderr } = await runLock();
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      /^Nothing was written\. Run `postern lock` again once these servers answer, .*:\n {2}- gone: it refuses connections\n {2}- broken: its command could not be started$/m,
    );
    expect(stderr).toContain('The command no-such-command was not found.');
    expect(stderr).not.toContain('started again');
    await expect(readText()).rejects.toThrow('ENOENT');
  });

  test('§18.7 postern lock: a server that cannot be read keeps what was approved of it', async () => {
    const other = await startListingServer({ tools: [buildTool('note')] });
    await configure({ wiki: wiki.url, notes: other.url });
    await runLock();
    await other.close();
    expect(await runLock(['--check'])).toMatchObject({
      code: 1,
      stdout:
        'notes could not be read: it refuses connections.\npostern.lock matches the other servers.\n',
    });
    change(wiki, { tools: [buildTool('search'), buildTool('publish')] });
    const { code, stdout } = await runLock();
    expect(code).toBe(1);
    expect(stdout).toBe(
      [
        'wiki: tool "edit" is gone',
        'wiki: tool "publish" is new',
        'notes could not be read: it refuses connections. Its earlier approvals stay. Run `postern lock` again once it answers.',
        'Wrote postern.lock: 3 tools and 1 prompt of 2 servers.',
        '',
      ].join('\n'),
    );
    const lock = readLock(await readText());
    expect(lock.check('wiki', 'tool', buildTool('publish'))).toBe('approved');
    expect(lock.check('notes', 'tool', buildTool('note'))).toBe('approved');
    const told = JSON.parse((await runLock(['--json'])).stdout);
    expect(told.unread).toEqual([{ server: 'notes', problem: 'it refuses connections' }]);
  });

  test('§18.7 postern lock: a lock file that cannot be used is not replaced', async () => {
    await configure({ wiki: wiki.url });
    await writeFile(lockPath(), '<<<<<<< HEAD');
    for (const args of [[], ['--check']]) {
      const { code, stderr } = await runLock(args);
      expect([code, stderr]).toEqual([1, expect.stringContaining('postern.lock is not JSON.')]);
    }
    expect(await readText()).toBe('<<<<<<< HEAD');
    await rm(lockPath());
    expect((await runLock()).code).toBe(0);
  });

  test('§18.7 postern lock: a configuration file with problems', async () => {
    await configure({ 文: wiki.url });
    const { code, stderr } = await runLock();
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('The configuration file has problems:'),
    ]);
  });

  test.each([
    { args: ['lock'], says: 'postern lock needs the configuration file' },
    { args: ['lock', '--config', 'mcp.json', '--token', 'x'], says: 'The token is not a JWT' },
    {
      args: ['lock', '--config', 'mcp.json', '--token', 'pst_x'],
      says: 'Get an access token from the identity provider itself.',
    },
    {
      args: ['lock', '--config', 'mcp.json', '--token', '-'],
      input: '',
      says: '--token -: it is empty.',
    },
    {
      args: ['lock', '--config', 'mcp.json', '--token-file', 'none.txt'],
      says: '--token-file: none.txt cannot be read (ENOENT).',
    },
    {
      args: ['lock', '--config', 'mcp.json', '--token', '-', '--token-file', 'mcp.json'],
      says: 'Both --token and --token-file are given. Keep one.',
    },
    {
      args: ['lock', '--config', 'mcp.json', '--token-file', '-'],
      input: 'x',
      says: '--token-file takes the name of a file. To read standard input, write --token -.',
    },
    {
      args: ['init', '--client-secret-file', '-'],
      says: '--client-secret-file takes the name of a file. To read standard input, write --client-secret -.',
    },
    { args: ['lock', '--config', 'mcp.json', '--token'], says: '--token needs a value' },
    {
      args: ['lock', '--config', 'mcp.json', '--port', '1'],
      says: 'postern lock has no option --port.',
    },
    { args: ['start', '--check'], says: 'postern start has no option --check.' },
  ])('§18.7 $args is refused: $says', async ({ args, says, input }) => {
    await configure({ wiki: wiki.url });
    const { code, stderr } = await runInside({}, { args, cwd: folder, input });
    expect(code).toBe(2);
    expect(stderr).toContain(says);
  });

  test('§18.7 postern lock --token: one that has expired is refused', async () => {
    await configure({ wiki: wiki.url });
    const { code, stderr } = await runLock(['--token', await issuer.sign({ exp: 1000 })]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('The token has expired.')]);
  });
});

describe('postern lock --token', () => {
  const AUDIENCE = 'https://wiki.example';

  const signIn = (sub: string) => issuer.sign({ sub, aud: AUDIENCE });

  test('§18.7 postern lock --token: what each user sees is added, and a check is about what this one sees', async () => {
    const [ada, eve] = [await signIn('ada'), await signIn('eve')];
    change(wiki, {
      answers: {
        'tools/list': (_params, headers) => {
          const isAda = headers.authorization === `Bearer ${ada}`;
          const own = isAda ? [buildTool('admin')] : [];
          const description = isAda ? 'Searches all.' : 'Searches yours.';
          return { result: { tools: [buildTool('search', { description }), ...own] } };
        },
      },
    });
    const forward = { type: 'forward', audience: AUDIENCE };
    const plain = closeAfterTest(await startListingServer({ tools: [buildTool('plain')] }));
    await configure({ wiki: { url: wiki.url, auth: forward }, plain: plain.url });

    const without = await runLock();
    expect(without.stdout).toContain(
      'Not read: wiki, as they only answer users. Add --token-file FILE.',
    );
    expect(await readText()).not.toContain('"wiki"');

    expect((await runLock(['--token', ada])).code).toBe(0);
    expect((await runLock(['--check', '--token', eve])).stdout).toContain(
      'wiki: tool "search" has changed: description',
    );
    expect((await runLock(['--token', eve])).code).toBe(0);
    for (const token of [ada, eve]) {
      expect((await runLock(['--check', '--token', token])).code).toBe(0);
      expect((await runLock(['--check', '--token', '-'], {}, `${token}\n`)).code).toBe(0);
      await writeFile(join(folder, 'token.txt'), `${token}\n`);
      expect((await runLock(['--check', '--token-file', 'token.txt'])).code).toBe(0);
    }
    const lock = readLock(await readText());
    expect(lock.check('wiki', 'tool', buildTool('admin'))).toBe('approved');
    expect(lock.check('plain', 'tool', buildTool('plain'))).toBe('approved');

    // Without a token the server stays as it was, and is not said to be gone.
    expect((await runLock()).code).toBe(0);
    expect(await readText()).toContain('"admin"');
    expect((await runLock(['--check'])).code).toBe(0);
    expect(plain.requests.map(({ params }) => JSON.stringify(params)).join()).not.toContain(ada);
  });

  test('§18.7 postern lock: where tokens are opaque, a copy of the file with headers approves for the server with auth', async () => {
    const plain = closeAfterTest(await startListingServer({ tools: [buildTool('plain')] }));
    change(wiki, {
      answers: {
        'tools/list': (_params, { authorization }) => ({
          result: { tools: authorization === 'Bearer opaque' ? [buildTool('search')] : [] },
        }),
      },
    });
    const headers = { Authorization: 'Bearer ${WIKI_TOKEN}' };
    const copy = { mcpServers: { wiki: { url: wiki.url, headers }, plain: { url: plain.url } } };
    await writeFile(join(folder, 'lock.json'), JSON.stringify(copy));
    await configure({
      wiki: { url: wiki.url, auth: { type: 'forward', audience: AUDIENCE } },
      plain: plain.url,
    });
    const written = await runInside(
      { WIKI_TOKEN: 'opaque' },
      { args: ['lock', '--config', 'lock.json'], cwd: folder },
    );
    expect(written).toMatchObject({ code: 0, stderr: '' });
    expect((await runLock()).code).toBe(0);
    expect((await runLock(['--check'])).code).toBe(0);
    const lock = readLock(await readText());
    expect(lock.check('wiki', 'tool', buildTool('search'))).toBe('approved');
  });

  test('§18.7 postern lock --token: token-exchange asks the provider as the gateway does', async () => {
    const provider = closeAfterTest(await startUpstream());
    provider.answer((res) =>
      res.end('{"access_token":"exchanged","token_type":"Bearer","expires_in":60}'),
    );
    const authorizations = new Set<string | undefined>();
    change(wiki, {
      answers: {
        'tools/list': (_params, headers) => {
          authorizations.add(headers.authorization);
          return { result: { tools: [buildTool('search')] } };
        },
      },
    });
    await configure({
      wiki: { url: wiki.url, auth: { type: 'token-exchange', audience: AUDIENCE } },
    });
    const env = {
      OIDC_ISSUER: issuer.url,
      OAUTH_TOKEN_URL: `${provider.url}/token`,
      OAUTH_CLIENT_ID: 'gateway',
      OAUTH_CLIENT_SECRET: 'secret',
    };
    const token = await signIn('ada');
    expect(await runLock(['--token', token], env)).toMatchObject({ code: 0, stderr: '' });
    expect([...authorizations]).toEqual(['Bearer exchanged']);
    expect(provider.received).toHaveLength(1);
    expect(provider.received[0]?.form.get('subject_token')).toBe(token);
  });

  test('§18.7 postern lock: identity signs with the keys of the gateway', async () => {
    const authorizations = new Set<string | undefined>();
    change(wiki, {
      answers: {
        'tools/list': (_params, headers) => {
          authorizations.add(headers.authorization);
          return { result: { tools: [buildTool('search')] } };
        },
      },
    });
    await configure({ wiki: { url: wiki.url, auth: { type: 'identity' } } });
    const dataDir = await makeFolder();
    const env = { OIDC_ISSUER: issuer.url, DATA_DIR: dataDir, BASE_URL: 'https://gw.example' };
    expect(await runLock([], env)).toMatchObject({ code: 0, stderr: '' });
    expect(await runLock(['--check'], env)).toMatchObject({ code: 0, stderr: '' });
    const kids = [...authorizations].map(
      (one) =>
        JSON.parse(Buffer.from(one?.slice(7).split('.')[0] ?? '', 'base64url').toString()).kid,
    );
    expect(kids).toHaveLength(2);
    expect(new Set(kids).size).toBe(1);
  });
});
