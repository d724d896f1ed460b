// §22.6: where operators can approve at their page, and what cannot be approved there.
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import {
  findLockObstacle,
  readLockFile,
  saveLockFile,
} from '../../../src/cli/setup/lock-file-on-disk.ts';
import { createLock } from '../../../src/lock/lock.ts';
import { computeFingerprint, EMPTY_LOCK_FILE, type LockFile } from '../../../src/lock/lock-file.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

const env = { ADMIN_GROUPS: 'operators', ADMIN_CLIENTS: 'ops-script' };

async function ask(gateway: CatalogGateway, path: string, body?: object) {
  const token = await gateway.issuer.sign({ groups: ['operators'], azp: 'ops-script' });
  const headers = { authorization: `Bearer ${token}` };
  return gateway.request({
    path: `/admin/api${path}`,
    headers,
    ...(body && { method: 'POST', body }),
  });
}

interface Start {
  readonly mcpServers: Readonly<Record<string, unknown>>;
  /** Of postern.lock; one that approves nothing unless given. */
  readonly text?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly path?: string;
  /** What the system says before the file is written, of a user who is not root. */
  readonly obstacle?: string;
  /** Before the file is written. */
  readonly beforeSave?: (path: string) => Promise<void>;
}

async function start({ mcpServers, text, env: more, path: given, ...how }: Start) {
  const folder = closeAfterTest(await createTemporaryFolder());
  const path = given ?? join(folder.path, 'postern.lock');
  if (text !== undefined) await writeFile(path, text);
  else if (given === undefined) await saveLockFile(path, EMPTY_LOCK_FILE);
  const gateway: CatalogGateway = await startForTest({
    file: { mcpServers },
    lock: createLock(EMPTY_LOCK_FILE),
    env: { ...env, ...more },
    deps: {
      storedLock: {
        path,
        read: () => readLockFile(path),
        findObstacle: async () => how.obstacle ?? findLockObstacle(path),
        async save(file) {
          await how.beforeSave?.(path);
          await saveLockFile(path, file);
          await gateway.reload({ mcpServers }, createLock(file));
          return true;
        },
      },
    },
  });
  return { gateway, path };
}

const expectObstacle = async (gateway: CatalogGateway, sentence: string | RegExp) => {
  const says = typeof sentence === 'string' ? sentence : expect.stringMatching(sentence);
  expect((await ask(gateway, '/lock')).json.obstacle).toEqual(says);
  const digest = 'x'.repeat(43);
  for (const refused of [
    await ask(gateway, '/lock/review'),
    await ask(gateway, '/lock', { servers: { files: digest } }),
  ]) {
    expect(refused.status).toBe(409);
    expect(refused.json.error.data).toMatchObject({
      reason: 'lock_not_approvable',
      details: says,
    });
  }
};

test('§22.6 approving: where others may serve with the same store, it is said why the page cannot', async () => {
  const server = await serveForTest({ tools: [buildTool('read')] });
  const { gateway, path } = await start({
    mcpServers: { files: server.url },
    env: { REDIS_URL: 'redis://127.0.0.1:1', STATELESS_ONLY: 'true' },
  });
  const before = await readFile(path, 'utf8');
  await expectObstacle(gateway, /^With Redis there may be several replicas/);
  expect(await readFile(path, 'utf8')).toBe(before);
});

test.each([
  { text: '{}', says: /postern\.lock is not there, or is \{\}: everything is approved\.$/ },
  { text: '{"version":1,"serv', says: /^postern\.lock is not JSON\./ },
])('§22.6 approving: a file that is $text now is none to write to', async ({ text, says }) => {
  const server = await serveForTest({ tools: [buildTool('read')] });
  const { gateway } = await start({ mcpServers: { files: server.url }, text });
  await expectObstacle(gateway, says);
});

test('§22.6 approving: a lock that cannot be written is named with the reason', async () => {
  const server = await serveForTest({ tools: [buildTool('read')] });
  const { gateway, path } = await start({
    mcpServers: { files: server.url },
    obstacle: 'EROFS',
  });
  await expectObstacle(gateway, `The gateway cannot write ${path} (EROFS).`);
  expect(await findLockObstacle(path)).toBeUndefined();
  expect(await findLockObstacle(join(path, 'postern.lock'))).toBe('ENOTDIR');
});

test('§22.6 approving: where the lock is a link, the file is written that it leads to', async () => {
  const folder = closeAfterTest(await createTemporaryFolder());
  await mkdir(join(folder.path, 'kept'));
  const target = join(folder.path, 'kept', 'the.lock');
  await saveLockFile(target, EMPTY_LOCK_FILE);
  const link = join(folder.path, 'postern.lock');
  await symlink(target, link);
  const server = await serveForTest({ tools: [buildTool('read')] });
  const { gateway } = await start({ mcpServers: { files: server.url }, path: link });
  const { digest } = (await ask(gateway, '/lock/review?server=files')).json.servers[0];
  expect((await ask(gateway, '/lock', { servers: { files: digest } })).status).toBe(200);
  expect(readLockFile(target)?.servers.has('files')).toBe(true);
});

test('§22.6 approving: a file that cannot be written is named with the reason, and nothing is left beside it', async () => {
  const server = await serveForTest({ tools: [buildTool('read')] });
  const { gateway, path } = await start({
    mcpServers: { files: server.url },
    async beforeSave(lockPath) {
      await rm(lockPath);
      await mkdir(lockPath);
    },
  });
  const { digest } = (await ask(gateway, '/lock/review?server=files')).json.servers[0];
  const failed = await ask(gateway, '/lock', { servers: { files: digest } });
  expect(failed).toMatchObject({
    status: 500,
    json: {
      error: {
        data: {
          reason: 'lock_not_written',
          details: `${path} could not be written (EISDIR). Nothing was approved.`,
        },
      },
    },
  });
  expect(await readdir(dirname(path))).toEqual(['postern.lock']);
  expect(await gateway.listNames('tools/list')).toEqual([]);
});

test('§22.6 approving: whoever else writes the lock at the same moment, it is whole, and a link in the place of the draft is not followed', async () => {
  const folder = closeAfterTest(await createTemporaryFolder());
  const path = join(folder.path, 'postern.lock');
  const other = join(folder.path, 'other');
  await writeFile(other, 'kept');
  await symlink(other, `${path}.${process.pid}`);
  await Promise.all(Array.from({ length: 20 }, () => saveLockFile(path, EMPTY_LOCK_FILE)));
  expect(readLockFile(path)).toEqual(EMPTY_LOCK_FILE);
  expect(await readFile(other, 'utf8')).toBe('kept');
});

test('§22.6 approving: what is too long to be shown whole has no digest', async () => {
  const build = (name: string, length: number) =>
    buildTool(name, { description: 'x'.repeat(length) });
  const files = await serveForTest({ tools: [build('read', 600_000)] });
  const wiki = await serveForTest({ tools: [build('search', 600_000)] });
  const huge = await serveForTest({ tools: [build('one', 600_000), build('two', 600_000)] });
  const { gateway } = await start({
    mcpServers: { files: files.url, wiki: wiki.url, huge: huge.url },
  });
  expect((await ask(gateway, '/lock/review')).json.servers).toMatchObject([
    { server: 'files', digest: expect.any(String) },
    { server: 'wiki', problem: expect.stringMatching(/approve it by itself$/) },
    { server: 'huge', problem: expect.stringMatching(/approve it by itself$/) },
  ]);
  const [wikiAlone] = (await ask(gateway, '/lock/review?server=wiki')).json.servers;
  expect(wikiAlone.differences[0].members[0].now).toHaveLength(600_000);
  expect((await ask(gateway, '/lock/review?server=huge')).json.servers).toEqual([
    { server: 'huge', problem: expect.stringMatching(/approve it by the command$/) },
  ]);
});

test('§22.6 approving: servers whose lists differ between users are left to the command', async () => {
  const server = await serveForTest({ tools: [buildTool('read')] });
  const { gateway, path } = await start({
    mcpServers: { files: server.url, own: { url: server.url, auth: { type: 'identity' } } },
  });
  expect((await ask(gateway, '/lock/review')).json.servers).toMatchObject([{ server: 'files' }]);
  expect((await ask(gateway, '/lock/review?server=own')).json.servers).toEqual([
    { server: 'own', problem: expect.stringContaining('postern lock --token-file FILE') },
  ]);
  const refused = await ask(gateway, '/lock', { servers: { own: 'x'.repeat(43) } });
  expect(refused.json.error.data.reason).toBe('lock_server_unread');
  expect(readLockFile(path)?.servers.size).toBe(0);
  expect((await ask(gateway, '/lock/review?server=nobody')).status).toBe(404);
});

test('§22.6 approving: what this process saw approved is shown beside what the server says now', async () => {
  const server = await serveForTest({ tools: [buildTool('read')] });
  const { gateway } = await start({ mcpServers: { files: server.url } });
  const { digest } = (await ask(gateway, '/lock/review?server=files')).json.servers[0];
  expect((await ask(gateway, '/lock', { servers: { files: digest } })).status).toBe(200);
  expect(await gateway.listNames('tools/list')).toEqual(['files__read']);
  server.listing.tools = [buildTool('read', { description: 'Sends all.' })];
  expect((await ask(gateway, '/lock/review?server=files')).json.servers[0].differences).toEqual([
    {
      server: 'files',
      kind: 'tool',
      name: 'read',
      change: 'changed',
      isFormerKnown: true,
      members: [{ name: 'description', before: 'Does read.', now: 'Sends all.' }],
    },
  ]);
});

test.each([
  { isFormerKnown: true, when: 'where this process saw that one' },
  { isFormerKnown: false, when: 'where it did not' },
])(
  '§22.6 approving: a description with the short hash of the approved one is shown all the same, $when',
  async ({ isFormerKnown }) => {
    const approved = buildTool('read');
    const forged = { ...approved, title: 'Read', description: 'Sends all.' };
    const [good, evil] = [computeFingerprint('tool', approved), computeFingerprint('tool', forged)];
    // A server finds such a description within hours: the short hashes have 32 bits.
    const parts = { ...good?.parts, description: evil?.parts.description ?? '' };
    const locked: LockFile = {
      servers: new Map([
        [
          'files',
          {
            instructions: undefined,
            skills: new Map(),
            prompts: new Map(),
            tools: new Map([['read', [{ sha256: good?.sha256 ?? '', parts }]]]),
          },
        ],
      ]),
    };
    const server = await serveForTest({ tools: [isFormerKnown ? approved : forged] });
    const file = { mcpServers: { files: server.url } };
    const { gateway, path } = await start(file);
    await saveLockFile(path, locked);
    await gateway.reload(file, createLock(locked));
    if (isFormerKnown) expect(await gateway.listNames('tools/list')).toEqual(['files__read']);
    server.listing.tools = [forged];
    const [review] = (await ask(gateway, '/lock/review?server=files')).json.servers;
    expect(review.differences).toMatchObject([{ change: 'changed', isFormerKnown }]);
    expect(review.differences[0].members).toContainEqual({
      name: 'description',
      ...(isFormerKnown && { before: 'Does read.' }),
      now: 'Sends all.',
    });
  },
);

test('§22.6 approving: of all who look at a server at once one asks it, and nobody waits for a server that hangs', async () => {
  let release = () => {};
  const tools = new Promise<object>((resolve) => {
    release = () => resolve({ result: { tools: [] } });
  });
  const answers = {
    'tools/list': () => (files.count('tools/list') > 1 ? tools : { result: { tools: [] } }),
  };
  const files = await serveForTest({ answers });
  const wiki = await serveForTest({ tools: [buildTool('search')] });
  const { gateway } = await start({ mcpServers: { files: files.url, wiki: wiki.url } });
  await gateway.listNames('tools/list');
  const asked = files.count('tools/list');
  const reviews = Array.from({ length: 5 }, () => ask(gateway, '/lock/review?server=files'));
  await expect.poll(() => files.count('tools/list')).toBe(asked + 1);
  expect((await ask(gateway, '/lock/review?server=wiki')).json.servers).toMatchObject([
    { server: 'wiki', differences: [{ name: 'search' }] },
  ]);
  expect(files.count('tools/list')).toBe(asked + 1);
  release();
  for (const { json } of await Promise.all(reviews))
    expect(json.servers).toMatchObject([{ server: 'files', digest: expect.any(String) }]);
});

test('§22.6 approving: while one operator’s approval is written, the next one waits, and changes nothing of it', async () => {
  const files = await serveForTest({ tools: [buildTool('read')] });
  const wiki = await serveForTest({ tools: [buildTool('search')] });
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let saves = 0;
  const { gateway, path } = await start({
    mcpServers: { files: files.url, wiki: wiki.url },
    async beforeSave() {
      saves += 1;
      if (saves === 1) await released;
    },
  });
  const { servers } = (await ask(gateway, '/lock/review')).json;
  const approve = (at: number) =>
    ask(gateway, '/lock', { servers: { [servers[at].server]: servers[at].digest } });
  const one = approve(0);
  await expect.poll(() => saves).toBe(1);
  const asked = wiki.count('tools/list');
  const two = approve(1);
  await expect.poll(() => wiki.count('tools/list')).toBeGreaterThan(asked);
  await ask(gateway, '/lock/review');
  expect(saves).toBe(1);
  release();
  expect([(await one).status, (await two).status]).toEqual([200, 200]);
  expect([...(readLockFile(path)?.servers.keys() ?? [])]).toEqual(['files', 'wiki']);
});
