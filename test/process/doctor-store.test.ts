// `postern doctor` without a URL: Redis, replicas with other secrets, and servers behind the gateway.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { runDoctor } from '../support/gateway/doctor.ts';
import { startInside } from '../support/gateway/gateway-inside.ts';
import { freePort } from '../support/gateway/ports.ts';
import { type Env, endPosterns, makeFolder } from '../support/gateway/process.ts';
import { logIn } from '../support/gateway/process-login.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { startIssuer } from '../support/oauth/issuer.ts';
import { type ProviderOptions, startProvider } from '../support/oauth/provider.ts';
import { startRedis } from '../support/stores/redis.ts';
import { startRedisCluster } from '../support/stores/redis-cluster.ts';
import { startRedisSentinel } from '../support/stores/redis-sentinel.ts';
import { listenOnLoopback } from '../support/upstreams/listen.ts';
import { buildTool, startListingServer } from '../support/upstreams/listing-server.ts';

afterEach(endPosterns);

const issuer = useShared(startIssuer);

/** Settings that lack nothing but the store. */
const settings = (changed: Env): Env => ({
  OIDC_ISSUER: issuer.url,
  BASE_URL: 'http://localhost:9',
  HOST: '127.0.0.1',
  ...changed,
});

const examine = (redisUrl: string) =>
  runDoctor(undefined, { env: settings({ REDIS_URL: redisUrl }) });

test('§20.2 doctor: a Redis that is as it should be', async () => {
  const redis = closeAfterTest(
    await startRedis({ config: ['maxmemory-policy noeviction', 'appendonly yes'] }),
  );
  const { failures, find } = await examine(redis.url);
  expect(failures).toEqual([]);
  expect(find('store').what).toMatch(/^(Redis|Valkey) \d+\.\d+\.\d+ answers \(one server\)\.$/);
  expect(find('store.eviction').status).toBe('ok');
  expect(find('store.persistence').what).toContain('append-only file');
  expect(find('store.latency').what).toMatch(/ \d+(\.\d)? ms/);
});

test('§20.2 doctor: a Redis that evicts sessions, and keeps nothing on disk', async () => {
  const redis = closeAfterTest(
    await startRedis({ config: ['maxmemory 100mb', 'maxmemory-policy allkeys-lru'] }),
  );
  const { code, find } = await examine(redis.url);
  expect(code).toBe(0);
  expect(find('store.eviction')).toMatchObject({
    status: 'warning',
    what: expect.stringContaining('allkeys-lru'),
    remedy: expect.stringContaining('maxmemory-policy noeviction'),
  });
  expect(find('store.persistence').status).toBe('warning');
});

test('§20.2 doctor: a Redis that is down, one with another password, and a user who may not ask', async () => {
  const redis = closeAfterTest(await startRedis({ password: 'right' }));
  const down = await examine(`redis://127.0.0.1:${await freePort()}`);
  expect(down.find('store')).toMatchObject({
    status: 'failure',
    setting: 'REDIS_URL',
    remedy: expect.stringContaining('start Redis'),
  });
  const wrong = await examine(redis.url.replace('right', 'wrong'));
  expect(wrong.find('store')).toMatchObject({
    what: 'Redis does not accept the user or the password.',
    remedy: expect.stringContaining('set REDIS_URL=redis://user:password@'),
  });
  const plain = await examine(redis.url.replace('redis:', 'rediss:'));
  expect(plain.find('store').remedy).toContain('redis:// instead of rediss://');
  const beyond = await examine(`${redis.url}/99`);
  expect(beyond.find('store')).toMatchObject({
    what: 'Redis does not have the database that the address names at its end.',
    remedy: expect.stringContaining('redis://host:6379/0'),
  });

  await redis
    .client()
    .call('ACL', ['SETUSER', 'postern', 'on', '>password', '~*', '&*', '+@all', '-@dangerous']);
  const limited = await examine(redis.url.replace(':right@', 'postern:password@'));
  expect(limited.failures).toEqual([]);
  expect(limited.find('store.eviction').status).toBe('unknown');
});

test('§20.2 doctor: a Redis that tells of changes, and a user who may not be told', async () => {
  const redis = closeAfterTest(await startRedis());
  const examineTracked = (url: string) =>
    runDoctor(undefined, { env: settings({ REDIS_URL: url, STORE_READS: 'tracked' }) });
  const good = await examineTracked(redis.url);
  expect(good.find('store.tracking').status).toBe('ok');
  await redis
    .client()
    .call('ACL', ['SETUSER', 'postern', 'on', '>password', '~*', '&mcp:session:*', '+@all']);
  const limited = await examineTracked(redis.url.replace('//', '//postern:password@'));
  expect(limited.failures).toEqual([]);
  expect(limited.find('store.tracking')).toMatchObject({
    status: 'warning',
    why: expect.stringContaining('NOPERM'),
    remedy: expect.stringContaining('__redis__:invalidate'),
  });
});

test('§20.2 doctor: a replica in place of the primary', async () => {
  const primary = closeAfterTest(await startRedis());
  const replica = closeAfterTest(
    await startRedis({ config: [`replicaof 127.0.0.1 ${primary.port}`] }),
  );
  const { failures } = await examine(replica.url);
  expect(failures).toEqual(['store.role']);
});

test('§20.2 doctor: a Redis Cluster, and one that is not named as such', async () => {
  const cluster = closeAfterTest(await startRedisCluster());
  const named = await examine(cluster.url);
  expect(named.failures).toEqual([]);
  expect(named.find('store').what).toContain('Cluster');
  const plain = await examine(cluster.url.replace('?cluster=true', ''));
  expect(plain.find('store')).toMatchObject({ status: 'failure', remedy: 'add ?cluster=true.' });
});

test('§20.2 doctor: Sentinel, and a sentinel in place of Redis', async () => {
  const sentinels = closeAfterTest(await startRedisSentinel());
  const named = await examine(sentinels.url);
  expect(named.failures).toEqual([]);
  expect(named.find('store').what).toContain('Sentinel');
  const [first] = sentinels.sentinels;
  const sentinel = await examine(`redis://127.0.0.1:${first?.port}`);
  expect(sentinel.find('store')).toMatchObject({
    status: 'failure',
    remedy: expect.stringContaining('redis+sentinel://'),
  });
});

test('§20.2 doctor: with the store of a running gateway down, what needs it is not tried, and one sentence says where to start', async () => {
  const redis = await startRedis();
  const env = settings({
    REDIS_URL: redis.url,
    OAUTH_STATE_SECRET: 'a-state-secret-of-at-least-32-characters',
    PORT: String(await freePort()),
  });
  const running = await startInside({ ...env, BASE_URL: `http://127.0.0.1:${env.PORT}` });
  await redis.close();
  const own = { ...env, BASE_URL: running.url };
  const { failures, findings } = await runDoctor(undefined, { env: own });
  expect(failures).toEqual(['gateway.ready.store', 'store']);
  const skipped = findings.filter(({ check }) => check === 'not-tried');
  expect(skipped.map(({ status, what }) => [status, what])).toEqual([
    ['unknown', 'whether clients can register. Not tried: the store does not answer.'],
    ['unknown', 'whether users can log in. Not tried: the store does not answer.'],
  ]);
  const printed = await runInside(own, { args: ['doctor'] });
  expect(printed.stdout.trimEnd().replaceAll('\n', ' ')).toMatch(
    /Start here: Nothing listens at the address of Redis \(REDIS_URL\): .+ and port\.$/,
  );
  const outside = await runDoctor(running.url);
  expect(outside.failures).toEqual(['gateway.ready.store']);
});

const CLIENT = { secret: 'the-right-secret', auth: 'post' } as const;

/** Of a gateway on a free port, and a provider that knows it. */
async function prepareGateway(
  options: Partial<ProviderOptions> = {},
  mode: 'broker' | 'proxy' = 'broker',
): Promise<{ readonly url: string; readonly env: Env }> {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const provider = closeAfterTest(await startProvider({ gatewayUrl: url, ...options }));
  const env = {
    ...provider.env,
    OAUTH_MODE: mode,
    CIMD_ALLOWED_HOSTS: 'none',
    PORT: String(port),
    HOST: '127.0.0.1',
  };
  return { url, env };
}

test('§20.2 doctor: a running replica whose secret differs from the one at hand', async () => {
  const redis = closeAfterTest(await startRedis());
  const { env: own } = await prepareGateway();
  const env = {
    ...own,
    REDIS_URL: redis.url,
    OAUTH_STATE_SECRET: 'the-secret-that-all-replicas-have-today',
  };
  await startInside(env);
  const same = await runDoctor(undefined, { env });
  expect(same.failures).toEqual([]);
  expect(same.find('replicas.secret').status).toBe('ok');
  expect(same.find('login').status).toBe('ok');
  const other = await runDoctor(undefined, {
    env: { ...env, OAUTH_STATE_SECRET: 'the-secret-of-another-of-the-replicas' },
  });
  expect([other.code, other.failures]).toEqual([1, ['replicas.secret']]);
  expect(other.find('replicas.secret').setting).toBe('OAUTH_STATE_SECRET');
});

test('§20.2 doctor: a gateway that runs with other settings than those at hand, and a token for both', async () => {
  const { url, env } = await prepareGateway({ client: CLIENT }, 'proxy');
  const running = await startInside({ ...env, OAUTH_CLIENT_SECRET: 'a-secret-of-last-week' });
  const corrected = await runDoctor(undefined, { env });
  expect(corrected.failures).toEqual(['gateway.settings']);
  expect(corrected.find('gateway.settings')).toMatchObject({
    what: expect.stringContaining('does not accept'),
    remedy: expect.stringContaining('restart the gateway'),
  });
  await running.close();
  await startInside(env);
  const { accessToken } = await logIn(url, 'ann');
  const restarted = await runDoctor(undefined, { env, args: ['--token', accessToken] });
  expect(restarted.failures).toEqual([]);
  expect(restarted.find('token').what).toContain('sub "ann"');
  expect(restarted.find('tools').what).toContain('service_ping');
});

test('§20.2 doctor: mending a setting uses up no limit, a run takes one login, and a limit is named with its end', async () => {
  const { url, env: own } = await prepareGateway({ client: CLIENT });
  const env = {
    ...own,
    DCR_RATE_LIMIT_MAX: '1',
    OAUTH_AUTHORIZE_RATE_LIMIT_MAX: '1',
    OAUTH_AUTHORIZE_RATE_LIMIT_WINDOW_MS: '600000',
  };
  await startInside(env);
  const wrong = await runDoctor(undefined, { env: { ...env, OAUTH_CLIENT_SECRET: 'another' } });
  expect(wrong.failures).toEqual(['provider.client-secret']);
  expect(wrong.find('login')).toMatchObject({
    status: 'unknown',
    why: expect.stringContaining('counts towards rate limits'),
  });
  const right = await runDoctor(undefined, { env });
  expect(right.failures).toEqual([]);
  for (const check of ['registration', 'login']) expect(right.find(check).status).toBe('ok');
  for (const again of [await runDoctor(undefined, { env }), await runDoctor(url)]) {
    expect(again.failures).toEqual([]);
    expect(again.find('registration')).toMatchObject({
      status: 'unknown',
      setting: 'DCR_RATE_LIMIT_MAX',
      remedy: expect.stringMatching(/^try again in \d+ minutes, or raise/),
    });
    expect(again.find('login')).toMatchObject({
      status: 'unknown',
      setting: 'OAUTH_AUTHORIZE_RATE_LIMIT_MAX',
      remedy: expect.stringMatching(/^try again in \d+ minutes, or raise/),
    });
  }
});

test('§20.2 doctor: in proxy mode it registers once where the settings let no editor register', async () => {
  const { env: own } = await prepareGateway({}, 'proxy');
  const env = { ...own, DCR_RATE_LIMIT_MAX: '1' };
  await startInside(env);
  const { find } = await runDoctor(undefined, { env });
  expect(find('registration').status).toBe('ok');
  expect(find('registration.schemes').setting).toBe('OAUTH_REDIRECT_SCHEMES');
});

const scripted = fileURLToPath(
  new URL('../support/upstreams/scripted-server.mjs', import.meta.url),
);

test('§20.2 doctor: servers of the configuration file, and what is wrong with the file', async () => {
  const wiki = closeAfterTest(
    await startListingServer({ tools: [buildTool('search'), buildTool('edit')] }),
  );
  const location = 'https://new.example/mcp?key=secret';
  const moved = closeAfterTest(
    await listenOnLoopback((_req, res) => void res.writeHead(308, { location }).end()),
  );
  const cwd = await makeFolder();
  const diagnose = async (mcpServers: unknown) => {
    await writeFile(join(cwd, 'mcp.json'), JSON.stringify({ mcpServers }));
    return runDoctor(undefined, { env: settings({}), args: ['--config', 'mcp.json'], cwd });
  };
  const { failures, findings } = await diagnose({
    wiki: { url: wiki.url },
    files: { command: process.execPath, args: [scripted] },
    gone: { url: `http://127.0.0.1:${await freePort()}/mcp` },
    missing: { command: 'no-such-program-here' },
    moved: { url: moved.url },
    users: { url: wiki.url, auth: { type: 'forward', audience: 'http://localhost:9/mcp' } },
  });
  expect(failures).toEqual(['server', 'server', 'server']);
  const servers = findings.filter(({ check }) => check === 'server');
  expect(servers.map(({ status, what }) => [status, what.split(' ')[0]])).toEqual([
    ['ok', 'wiki'],
    ['ok', 'files'],
    ['failure', 'gone'],
    ['failure', 'missing'],
    ['failure', 'moved'],
    ['unknown', 'whether'],
  ]);
  expect(servers[0]?.what).toBe(
    'wiki answers, and has 2 tools. It is spoken to with sessions (MCP 2025-11-25).',
  );
  expect(servers[3]).toMatchObject({
    what: 'missing cannot be used: its command could not be started.',
    remedy: expect.stringMatching(/^The command no-such-program-here was not found\. Install it/),
  });

  expect(servers[4]?.what).toBe(
    'moved cannot be used: it redirects to https://new.example/mcp (308), which is not followed: write this address in the configuration file.',
  );

  const script = 'echo booting >&2; echo "no database: $API_KEY" >&2; exit 3';
  const dying = await diagnose({
    dies: { command: 'sh', args: ['-c', script], env: { API_KEY: 'k-123456' } },
  });
  expect(dying.find('server')).toMatchObject({
    what: 'dies cannot be used: its process ended with exit code 3.',
    why: 'The end of its error output: booting | no database: [secret]',
  });

  const broken = await diagnose({ wiki: { ulr: wiki.url } });
  expect([broken.code, broken.failures.length > 0]).toEqual([1, true]);
  expect(broken.find('settings').what).toContain('mcp.json');
});

test('§20.2 doctor: tools that a program hides because "isolation" lets it ask nobody, and the one that shows them', async () => {
  const cwd = await makeFolder();
  const findHidden = async (members: object, modes: readonly string[] = ['lists-asking-tools']) => {
    const files = { command: process.execPath, args: [scripted, ...modes], ...members };
    await writeFile(join(cwd, 'mcp.json'), JSON.stringify({ mcpServers: { files } }));
    const { find, findings } = await runDoctor(undefined, {
      env: settings({}),
      args: ['--config', 'mcp.json'],
      cwd,
    });
    expect(find('server').status).toBe('ok');
    return findings.filter(({ check }) => check === 'server.isolation');
  };
  expect(await findHidden({ maxProcesses: 1 })).toEqual([
    {
      check: 'server.isolation',
      status: 'warning',
      what: 'Tools of files that no client sees: book, survey.',
      why: 'It lists them only for clients that accept requests from it. With "isolation": "shared" all users share one process, which cannot say which user a request is for, so it is told that no client accepts requests.',
      setting: 'POSTERN_CONFIG',
      remedy: 'if they are needed, set "isolation": "user" for files in the configuration file.',
    },
  ]);
  expect(await findHidden({ isolation: 'user' })).toEqual([]);
  expect(await findHidden({}, [])).toEqual([]);
});

test('§20.2 doctor: lists that a server has and does not declare', async () => {
  const lists: Readonly<Record<string, object>> = {
    'tools/list': { tools: [buildTool('one')] },
    'prompts/list': { prompts: [{ name: 'one' }, { name: 'two' }] },
    'resources/list': { resources: [] },
  };
  const startWith = async (capabilities: object) =>
    closeAfterTest(
      await listenOnLoopback(async (req, res) => {
        const { id, method } = JSON.parse((await text(req)) || '{}');
        const initialized = {
          protocolVersion: '2025-11-25',
          capabilities,
          serverInfo: { name: 's', version: '1' },
        };
        const result = method === 'initialize' ? initialized : lists[method];
        if (id === undefined) return void res.writeHead(202).end();
        res.writeHead(200, { 'content-type': 'application/json' });
        const error = { code: -32601, message: 'Unknown method' };
        res.end(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }));
      }),
    );
  const silent = await startWith({ resources: {} });
  const honest = await startWith({ tools: {}, prompts: {} });
  const cwd = await makeFolder();
  await writeFile(
    join(cwd, 'mcp.json'),
    JSON.stringify({ mcpServers: { silent: { url: silent.url }, honest: { url: honest.url } } }),
  );
  const { failures, findings } = await runDoctor(undefined, {
    env: settings({}),
    args: ['--config', 'mcp.json'],
    cwd,
  });
  expect(failures).toEqual([]);
  expect(findings.filter(({ check }) => check === 'server.undeclared')).toMatchObject([
    {
      status: 'warning',
      what: 'silent does not declare tools; its list has 1.',
      why: expect.stringMatching(/so no client sees these tools\.$/),
      remedy: expect.stringContaining('have the server declare tools'),
    },
    { what: 'silent does not declare prompts; its list has 2.' },
  ]);
});

test('§20.2 doctor: names of tools that clients change, and the member of the file that prevents it', async () => {
  const long = 'l'.repeat(50);
  const server = closeAfterTest(
    await startListingServer({ tools: [long, 'repo.read', 'fine'].map((name) => buildTool(name)) }),
  );
  const cwd = await makeFolder();
  const findNames = async (members: object) => {
    await writeFile(
      join(cwd, 'mcp.json'),
      JSON.stringify({ ...members, mcpServers: { it: { url: server.url } } }),
    );
    const { findings } = await runDoctor(undefined, {
      env: settings({}),
      args: ['--config', 'mcp.json'],
      cwd,
    });
    return findings.filter(({ check }) => check === 'server.names');
  };
  expect(await findNames({})).toMatchObject([
    {
      status: 'warning',
      what: `Names of tools of it over 48 characters: it__${long}.`,
      remedy: expect.stringContaining('"maxNameLength": 48'),
    },
    {
      status: 'warning',
      what: 'Names of tools of it with a dot: it__repo.read.',
      remedy: expect.stringContaining('"names": "strict"'),
    },
  ]);
  expect(await findNames({ maxNameLength: 48, names: 'strict' })).toEqual([]);
});
