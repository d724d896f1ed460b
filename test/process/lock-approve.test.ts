// §22.6: operators approve what servers say at their page, and the gateway that runs serves by it.
import {
  chmod,
  mkdir,
  readdir,
  readFile,
  realpath,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { callTool } from '../support/catalogs/catalog-files.ts';
import { openEvents } from '../support/clients/event-stream.ts';
import { BOTH_TYPES } from '../support/clients/session-client.ts';
import { parseAuditLines } from '../support/gateway/audit-log.ts';
import { INITIALIZE_REQUEST } from '../support/gateway/gateway.ts';
import {
  type Env,
  endPosterns,
  makeFolder,
  type RunningPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { useFresh, useShared } from '../support/lifetimes.ts';
import { AUDIENCE, startIssuer } from '../support/oauth/issuer.ts';
import { startRedis } from '../support/stores/redis.ts';
import { buildTool, startListingServer } from '../support/upstreams/listing-server.ts';

const issuer = useShared(startIssuer);
const wiki = useFresh(() =>
  startListingServer({ tools: [buildTool('search'), buildTool('edit')], instructions: 'Search.' }),
);
const files = useFresh(() => startListingServer({ tools: [buildTool('read')] }));
const HIDDEN = expect.objectContaining({ code: -32602 });
const SLOW = { timeout: 20_000, interval: 100 };
/** Far longer than what the list shows of it. */
const LONG = `Search\u202e and ${'send '.repeat(2000)}all.`;
let cwd: string;

beforeEach(async () => {
  cwd = await makeFolder();
  const mcpServers = { wiki: { url: wiki.url }, files: { url: files.url } };
  await writeFile(join(cwd, 'mcp.json'), JSON.stringify({ mcpServers }));
  expect((await runLock()).code).toBe(0);
});
afterEach(endPosterns);

const runLock = () => runInside({}, { args: ['lock', '--config', 'mcp.json'], cwd });
const lockPath = () => join(cwd, 'postern.lock');
const readLockText = () => readFile(lockPath(), 'utf8');
const readAudit = async () => parseAuditLines(await readFile(join(cwd, 'audit.log'), 'utf8'));

/** What the servers changed since they were approved. */
function changeServers(): void {
  wiki.listing.tools = [buildTool('search', { description: LONG }), buildTool('new')];
  files.listing.tools = [buildTool('read'), buildTool('write')];
}

const start = (env: Env = {}, main?: string) =>
  startPostern(
    {
      ...env,
      OIDC_ISSUER: issuer.url,
      OIDC_AUDIENCE: AUDIENCE,
      OAUTH_MODE: 'proxy',
      MCP_STREAMS: 'true',
      ADMIN_GROUPS: 'operators',
      ADMIN_CLIENTS: 'ops-script',
      AUDIT_LOG: `file:${join(cwd, 'audit.log')}`,
    },
    { args: ['start', '--config', 'mcp.json'], cwd, ...(main && { main }) },
  );

async function ask({ url }: RunningPostern, path: string, body?: object, claims: object = {}) {
  const token = await issuer.sign({
    sub: 'olga',
    groups: ['operators'],
    azp: 'ops-script',
    ...claims,
  });
  const answer = await fetch(`${url}/admin/api${path}`, {
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  return { status: answer.status, json: (await answer.json()) as any };
}

/** Of the servers: what approving them takes. */
async function review(postern: RunningPostern, ...servers: readonly string[]) {
  const query = new URLSearchParams(
    servers.map((server) => ['server', server] as [string, string]),
  );
  const { json } = await ask(postern, `/lock/review?${query}`);
  const digests = Object.fromEntries(
    json.servers.map((one: { server: string; digest: string }) => [one.server, one.digest]),
  );
  return { servers: json.servers, digests };
}

const approve = (postern: RunningPostern, servers: object, claims?: object) =>
  ask(postern, '/lock', { servers }, claims);

const call = async ({ url }: RunningPostern, name: string) =>
  callTool(url, name, await issuer.sign());

/** A session whose client listens; resolves to what it is told. */
async function listen({ port }: RunningPostern) {
  const own = { authorization: `Bearer ${await issuer.sign()}`, accept: BOTH_TYPES };
  const opened = await openEvents({ port, headers: own, body: INITIALIZE_REQUEST });
  await opened.text();
  const session = { 'mcp-session-id': String(opened.headers['mcp-session-id']) };
  return openEvents({ port, method: 'GET', headers: { ...own, ...session } });
}

test('§22.6 approving: what is shown whole is written as the command would, and served at once, without a restart', async () => {
  changeServers();
  const postern = await start();
  expect(await call(postern, 'wiki__new')).toEqual(HIDDEN);
  const { json } = await ask(postern, '/lock');
  expect(json).toMatchObject({ isLocked: true, servers: [{ server: 'wiki', total: 2 }, {}] });
  expect(json).not.toHaveProperty('obstacle');
  const stream = await listen(postern);

  const { servers, digests } = await review(postern, 'wiki');
  expect(servers).toMatchObject([
    {
      server: 'wiki',
      differences: [
        { kind: 'tool', name: 'edit', change: 'gone', members: [] },
        { kind: 'tool', name: 'new', change: 'new' },
        {
          kind: 'tool',
          name: 'search',
          change: 'changed',
          members: [{ name: 'description', now: LONG }, { name: 'inputSchema' }],
        },
      ],
    },
  ]);
  const before = JSON.parse(await readLockText());
  expect(await approve(postern, digests)).toEqual({
    status: 200,
    json: { approved: [{ server: 'wiki', differences: 3 }], isLoaded: true },
  });
  expect(await call(postern, 'wiki__new')).toBe('ran new');
  expect(await call(postern, 'wiki__search')).toBe('ran search');
  expect(await call(postern, 'files__write')).toEqual(HIDDEN);
  expect(await stream.next()).toMatchObject({ method: 'notifications/tools/list_changed' });
  expect(JSON.parse(await readLockText()).servers.files).toEqual(before.servers.files);

  const rest = await review(postern);
  expect((await approve(postern, rest.digests)).status).toBe(200);
  const written = await readLockText();
  expect((await runLock()).code).toBe(0);
  expect(await readLockText()).toBe(written);
});

test('§22.6 approving: the audit log says who approved what of which server', async () => {
  changeServers();
  const postern = await start();
  const { digests } = await review(postern, 'wiki');
  await approve(postern, digests);
  const who = { event: 'admin', user: 'olga', client: 'ops-script', outcome: 'success' };
  const lines = await readAudit();
  expect(lines).toMatchObject([
    { ...who, action: 'show', target: 'lock/review of wiki' },
    { ...who, action: 'approve_gone', server: 'wiki', target: 'tool', tool: 'edit' },
    { ...who, action: 'approve_new', server: 'wiki', target: 'tool', tool: 'new' },
    { ...who, action: 'approve_changed', server: 'wiki', target: 'tool', tool: 'search' },
    { ...who, action: 'approve', target: 'wiki' },
  ]);
  expect(postern.log().filter(({ msg }) => msg.includes('An operator approved'))).toMatchObject([
    { servers: ['wiki'], differences: 3 },
  ]);
  expect(
    postern.log().filter(({ msg }) => msg.startsWith('Reloaded the configuration')),
  ).toHaveLength(1);
});

test('§22.6 approving: nothing is written where the server says something else meanwhile, or another operator was first', async () => {
  changeServers();
  const postern = await start();
  const first = await review(postern);
  const before = await readLockText();
  wiki.listing.tools = [buildTool('search', { description: 'Sends all to us.' })];
  const late = await approve(postern, first.digests);
  expect(late).toMatchObject({
    status: 409,
    json: {
      error: {
        data: { reason: 'lock_changed', details: expect.stringMatching(/^What wiki lists/) },
      },
    },
  });
  expect(await readLockText()).toBe(before);

  const { digests } = await review(postern);
  const both = await Promise.all([approve(postern, digests), approve(postern, digests)]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
  expect(await call(postern, 'files__write')).toBe('ran write');
});

test('§22.6 approving: two operators who approve different servers at once both have what they approved', async () => {
  changeServers();
  const postern = await start();
  const [one, other] = [await review(postern, 'wiki'), await review(postern, 'files')];
  const both = await Promise.all([
    approve(postern, one.digests),
    approve(postern, other.digests, { sub: 'otto' }),
  ]);
  expect(both.map(({ status }) => status)).toEqual([200, 200]);
  expect(await call(postern, 'wiki__new')).toBe('ran new');
  expect(await call(postern, 'files__write')).toBe('ran write');
});

test('§22.6 approving: a server that is down is not approvable, and says why; the others are', async () => {
  changeServers();
  const postern = await start();
  const { digests } = await review(postern);
  const before = await readLockText();
  await wiki.close();
  const refused = await approve(postern, digests);
  expect(refused.json.error.data).toMatchObject({
    reason: 'lock_server_unread',
    details: expect.stringMatching(/^wiki could not be read: .*Nothing was approved\.$/),
  });
  expect(await readLockText()).toBe(before);
  const { servers } = await review(postern);
  expect(servers).toMatchObject([
    { server: 'wiki', problem: expect.stringMatching(/^could not be read: /) },
    { server: 'files', differences: [{ name: 'write' }] },
  ]);
  expect(servers[0]).not.toHaveProperty('digest');
  expect((await approve(postern, { files: servers[1].digest })).status).toBe(200);
});

test('§22.6 approving: the file keeps its mode, and nothing else is left beside it', async () => {
  changeServers();
  await chmod(lockPath(), 0o640);
  const postern = await start();
  const { digests } = await review(postern);
  expect((await approve(postern, digests)).status).toBe(200);
  expect((await stat(lockPath())).mode & 0o777).toBe(0o640);
  expect((await readdir(cwd)).filter((name) => name.startsWith('postern.lock'))).toEqual([
    'postern.lock',
  ]);
});

test('§22.6 approving: a configuration file with problems does not keep the lock from being written, and it is said', async () => {
  changeServers();
  const postern = await start();
  const { digests } = await review(postern);
  await writeFile(join(cwd, 'mcp.json'), '{"mcpServers": ');
  expect((await approve(postern, digests)).json).toMatchObject({ isLoaded: false });
  expect(await call(postern, 'wiki__new')).toEqual(HIDDEN);
  const mcpServers = { wiki: { url: wiki.url }, files: { url: files.url } };
  await writeFile(join(cwd, 'mcp.json'), JSON.stringify({ mcpServers }));
  await expect.poll(() => call(postern, 'wiki__new'), SLOW).toBe('ran new');
});

test('§22.6 approving: only operators, by a client of theirs; digests alone count', async () => {
  changeServers();
  const postern = await start();
  const { digests } = await review(postern);
  const before = await readLockText();
  for (const claims of [{ groups: ['staff'] }, { azp: 'an-mcp-client' }]) {
    expect((await approve(postern, digests, claims)).status).toBe(403);
    expect((await ask(postern, '/lock/review', undefined, claims)).status).toBe(403);
  }
  for (const servers of [{}, { wiki: true }, { wiki: 'x' }, { ...digests, files: null }]) {
    expect((await approve(postern, servers)).status).toBe(400);
  }
  expect((await approve(postern, { nobody: digests.wiki })).status).toBe(404);
  expect((await approve(postern, { wiki: digests.files })).status).toBe(409);
  expect(await readLockText()).toBe(before);
});

const OAUTH_STATE_SECRET = 'one-secret-of-more-than-32-characters';
const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

const redis = useShared(startRedis);

test.each([1, 2])(
  '§22.4 the command that is named can be typed where the gateway was started (%d workers)',
  async (workers) => {
    const env: Env =
      workers === 1 ? {} : { WORKERS: String(workers), REDIS_URL: redis.url, OAUTH_STATE_SECRET };
    const global = join(cwd, 'postern');
    await symlink(MAIN, global);
    const commandOf = async (postern: RunningPostern) => (await ask(postern, '/lock')).json.command;
    const options = '--config mcp.json';
    const place = `cd ${await realpath(cwd)} &&`;
    expect(await commandOf(await start(env, global))).toBe(`${place} postern lock ${options}`);
    // npx would run what the registry has, where the package is not installed.
    const ofNode = await commandOf(await start({ ...env, npm_command: 'exec' }));
    expect(ofNode).toMatch(/^cd \S+ && node \S+main\.js lock --config mcp\.json$/);
    await mkdir(join(cwd, 'node_modules', '.bin'), { recursive: true });
    await symlink(MAIN, join(cwd, 'node_modules', '.bin', 'postern'));
    expect(await commandOf(await start(env))).toBe(`${place} npx postern lock ${options}`);
  },
);
