// `postern doctor URL`: what a client sees of a running gateway, and what is wrong with it.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { KNOWN_CLIENTS } from '../../src/cli/doctor/authorization.ts';
import { runDoctor } from '../support/gateway/doctor.ts';
import { type GatewayInside, startInside } from '../support/gateway/gateway-inside.ts';
import { freePort } from '../support/gateway/ports.ts';
import { type Env, endPosterns } from '../support/gateway/process.ts';
import { startBrokerBehind } from '../support/gateway/process-broker.ts';
import { logIn } from '../support/gateway/process-login.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { startIssuer } from '../support/oauth/issuer.ts';
import { type Provider, type ProviderOptions, startProvider } from '../support/oauth/provider.ts';
import { startProxy as startForwardProxy } from '../support/oauth/proxy.ts';
import { startUpstream } from '../support/oauth/upstream.ts';
import { startRedis } from '../support/stores/redis.ts';

afterEach(endPosterns);

const issuer = useShared(startIssuer);

interface Started {
  readonly url: string;
  readonly gateway: GatewayInside;
  readonly provider: Provider;
}

/** A gateway in broker mode, and the provider that it is for. */
async function start(env: Env = {}, options: Partial<ProviderOptions> = {}): Promise<Started> {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const provider = closeAfterTest(await startProvider({ gatewayUrl: url, ...options }));
  const gateway = await startInside({
    ...provider.env,
    OAUTH_MODE: 'broker',
    CIMD_ALLOWED_HOSTS: 'none',
    PORT: String(port),
    ...env,
  });
  return { url, gateway, provider };
}

async function makeOwnFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-doctor-'));
  closeAfterTest({ close: () => rm(folder, { recursive: true }) });
  return folder;
}

/** In front of gateways: `choose` says to which port a request goes, and by which path. */
async function startFront(
  choose: (req: IncomingMessage) => { readonly port: number; readonly path?: string } | undefined,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  function pass(req: IncomingMessage, res: ServerResponse): void {
    const target = choose(req);
    if (target === undefined) return void res.writeHead(404).end('Nothing here.');
    const { method, url, headers } = req;
    const { port, path = url } = target;
    const onward = request({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    onward.on('error', () => res.destroy());
    req.pipe(onward);
  }
  const server = createServer(pass);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

test('§20.2 doctor URL: metrics that everyone can read are a warning; METRICS_PORT and a local address need none', async () => {
  const network = closeAfterTest(await startForwardProxy());
  const env = { OIDC_ISSUER: issuer.url, BASE_URL: 'http://gw.example', METRICS_ENABLED: 'true' };
  const diagnose = async (port: number, url: string) => {
    network.lead('gw.example:80', port);
    const { findings } = await runDoctor(url, { env: { HTTP_PROXY: network.url } });
    return findings.filter(({ check }) => check === 'gateway.metrics');
  };
  const open = await startInside(env);
  expect(await diagnose(open.port, 'http://gw.example')).toMatchObject([
    { status: 'warning', setting: 'METRICS_PORT', remedy: expect.stringContaining('METRICS_PORT') },
  ]);
  expect(await diagnose(open.port, `http://localhost:${open.port}`)).toEqual([]);
  const closed = await startInside({ ...env, METRICS_PORT: String(await freePort()) });
  expect(await diagnose(closed.port, 'http://gw.example')).toEqual([]);
});

test('§20.2 doctor URL: of a gateway in order, all is fine, from the 401 to the login page', async () => {
  const { url } = await start();
  const { code, failures, find } = await runDoctor(`${url}/mcp`);
  expect([code, failures]).toEqual([0, []]);
  for (const check of [
    'gateway.reachable',
    'gateway.ready',
    'challenge',
    'resource-metadata',
    'server-metadata.issuer',
    'server-metadata.members',
    'cors',
    'registration',
    'login',
    'provider.redirect-uri',
    'clock',
    'clients',
  ])
    expect(find(check).status, check).toBe('ok');
  expect(find('clients').what).toMatch(/Claude Code.*Codex.*Cursor.*VS Code/);
});

test('§20.2 doctor URL: a line for each finding, marked, in sections, and a summary; colours only where they are wanted', async () => {
  const { url } = await start();
  const args = ['doctor', url];
  const { stdout } = await runInside({}, { args });
  expect(stdout).toMatch(/^Checking http:\/\/localhost:\d+\n\nGateway\n {2}✓ /);
  expect(stdout).toMatch(/\n\nClients\n {2}✓ Would log in: /);
  expect(stdout).toMatch(/\n\nNo failures, \d+ warnings?, \d+ not known, \d+ fine\.\n$/);
  expect(stdout).not.toContain('\u001b');
  expect((await runInside({ FORCE_COLOR: '1' }, { args })).stdout).toContain(
    '\u001b[32m✓\u001b[0m',
  );
});

test('§20.2 doctor URL: what is no URL is a mistake of the command line', async () => {
  const { code, stdout, stderr } = await runInside({}, { args: ['doctor', 'ftp://x'] });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain('"ftp://x" is not the URL of a gateway');
});

test('§20.2 doctor URL: a website, a login page in front, an address that moved, and one with a path too many', async () => {
  const site = closeAfterTest(await startUpstream());
  const answerWith = (status: number, headers: Record<string, string>) =>
    site.answer((res) => res.writeHead(status, headers).end('<p>Welcome!</p>'));
  const diagnose = async () => {
    const { failures, find } = await runDoctor(site.url);
    expect(failures).toEqual(['gateway.endpoint']);
    return find('gateway.endpoint');
  };
  answerWith(200, { 'Content-Type': 'text/html' });
  expect((await diagnose()).what).toContain('is not an MCP server: 200, text/html');
  answerWith(403, { 'Content-Type': 'text/html' });
  expect((await diagnose()).remedy).toContain('a firewall or proxy in front refuses');
  // The health check of a proxy keeps requests from a gateway that runs, but is not ready.
  answerWith(503, { 'Content-Type': 'text/html' });
  const { failures, find } = await runDoctor(site.url);
  expect(failures).toEqual(['gateway.reachable']);
  expect(find('gateway.reachable').remedy).toContain('because it is not ready');
  answerWith(302, { Location: 'https://sso.example/login?next=secret' });
  const sso = await diagnose();
  expect(sso.what).toContain('redirects to https://sso.example/login:');
  expect(sso.remedy).toContain('login page of a proxy');
  answerWith(301, { Location: 'https://gateway.example/mcp' });
  expect((await diagnose()).remedy).toContain('postern doctor https://gateway.example/mcp');

  const { url } = await start();
  const docs = await runDoctor(`${url}/docs`);
  expect(docs.find('gateway.endpoint')).toMatchObject({
    setting: 'BASE_URL',
    remedy: expect.stringContaining(
      `postern doctor ${url}. If BASE_URL has the path /docs by mistake`,
    ),
  });
});

test('§20.2 doctor URL: a proxy that takes away the challenge, cookies or CORS headers', async () => {
  const takesAway = new Set<string>();
  const gatewayPort = await freePort();
  const front = createServer((req, res) => {
    const { method, url: path } = req;
    const headers = Object.entries(req.headers).filter(([name]) => !takesAway.has(name));
    const onward = request(
      { host: '127.0.0.1', port: gatewayPort, method, path, headers: Object.fromEntries(headers) },
      (answer) => {
        for (const [name, value = ''] of Object.entries(answer.headers))
          if (!takesAway.has(name)) res.setHeader(name, value);
        res.writeHead(answer.statusCode ?? 502);
        answer.pipe(res);
      },
    );
    req.pipe(onward);
  });
  await new Promise<void>((listening) => front.listen(0, '127.0.0.1', listening));
  const url = `http://localhost:${(front.address() as AddressInfo).port}`;
  await startBrokerBehind(url, gatewayPort);

  takesAway.add('www-authenticate');
  const unchallenged = await runDoctor(url);
  expect(unchallenged.failures).toEqual([]);
  expect(unchallenged.find('challenge')).toMatchObject({ status: 'warning' });
  expect(unchallenged.find('resource-metadata').status).toBe('ok');
  expect(unchallenged.find('clients').what).toContain('TypeScript SDK 2.x');

  takesAway.clear();
  takesAway.add('cookie').add('access-control-allow-origin');
  const { failures, find } = await runDoctor(url);
  expect(failures).toEqual(['cors', 'login']);
  expect(find('login').remedy).toContain('pass on Cookie and Set-Cookie headers');
  expect(find('clients')).toMatchObject({ status: 'unknown' });

  front.closeAllConnections();
  await new Promise((closed) => front.close(closed));
});

/** Says of itself what a gateway says, but for what `answer` knows. */
async function startImpostor(answer: (path: string, base: string) => Reply | undefined) {
  const server = createServer(({ url = '', headers }, res) => {
    const base = `http://${headers.host}`;
    const [path = ''] = url.split('?');
    const { status, text = '', ...more } = answer(path, base) ?? imitateGateway(path, base);
    res.writeHead(status, more.headers).end(text);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  closeAfterTest({ close: () => new Promise<void>((closed) => void server.close(() => closed())) });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Reply {
  readonly status: number;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function imitateGateway(path: string, base: string): Reply {
  const metadata = `${base}/.well-known/oauth-protected-resource`;
  const challenge = { 'WWW-Authenticate': `Bearer resource_metadata="${metadata}"` };
  if (path === '/mcp') return { status: 401, headers: challenge };
  if (path === '/.well-known/oauth-protected-resource')
    return toJson({ resource: `${base}/mcp`, authorization_servers: [base] });
  if (path === '/.well-known/oauth-authorization-server')
    return toJson({
      issuer: base,
      authorization_endpoint: `${base}/authorize`,
      registration_endpoint: `${base}/register`,
    });
  if (path === '/register') return { ...toJson({ client_id: 'x' }), status: 201 };
  return { status: 404 };
}

const toJson = (value: unknown): Reply => ({ status: 200, text: JSON.stringify(value) });

const fill = (text: string): string => text.repeat(1_000_000 / text.length);

test.each<[string, string, (path: string, base: string) => Reply | undefined]>([
  [
    'a page without end when a client registers',
    'registration',
    (path) => (path === '/register' ? { status: 500, text: fill('<') } : undefined),
  ],
  [
    'one for the consent page',
    'login',
    (path) => (path === '/authorize' ? { status: 200, text: fill('<form ') } : undefined),
  ],
  [
    'one for the login page of its provider',
    'provider.authorization-request',
    (path, base) =>
      path === '/authorize'
        ? { status: 303, headers: { Location: `${base}/login` } }
        : path === '/login'
          ? { status: 400, text: fill('<head ') }
          : undefined,
  ],
])('§20.2 doctor URL: a hostile server cannot hold it up: %s', async (_, check, answer) => {
  const { find } = await runDoctor(await startImpostor(answer));
  expect(find(check).status).toBe('failure');
});

test('§20.2 doctor URL: a text where a list of authorization servers belongs names none', async () => {
  const url = await startImpostor((path, base) =>
    path === '/.well-known/oauth-protected-resource'
      ? toJson({ resource: `${base}/mcp`, authorization_servers: 'elsewhere' })
      : undefined,
  );
  const { find } = await runDoctor(url);
  expect(find('resource-metadata').what).toContain('names no authorization server');
  expect(find('server-metadata.issuer').status).toBe('ok');
});

test('§20.2 doctor URL: a hostile server cannot act on the terminal', async () => {
  const text = JSON.stringify({
    error: 'x\u001b]0;title\u0007\u009b31m\u202e',
    error_description: '\n✓',
  });
  const url = await startImpostor((path) =>
    path === '/register' ? { status: 400, text } : undefined,
  );
  const { stdout } = await runInside({}, { args: ['doctor', url] });
  expect(stdout).toContain('Clients cannot register: 400 x ]0;title 31m');
  expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  const json = await runInside({}, { args: ['doctor', '--json', url] });
  expect(json.stdout).toContain('\\u009b31m\\u202e');
  expect(json.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
});

test('§20.2 doctor URL: a hostile server cannot push the rest off the screen', async () => {
  const url = await startImpostor((path) =>
    path === '/health/ready'
      ? { status: 200, text: JSON.stringify({ version: 'x'.repeat(500_000), checks: {} }) }
      : undefined,
  );
  const { stdout } = await runInside({}, { args: ['doctor', url] });
  expect(stdout).toMatch(/The gateway is ready \(version\s+xxx/);
  expect(stdout.length).toBeLessThan(20_000);
});

test('§20.2 doctor URL: a wrong client secret of the gateway, in proxy mode', async () => {
  const { url } = await start(
    { OAUTH_MODE: 'proxy', OAUTH_CLIENT_SECRET: 'not-the-secret' },
    { client: { secret: 'the-secret', auth: 'post' } },
  );
  const { code, failures, find } = await runDoctor(url);
  expect([code, failures]).toEqual([1, ['provider.client-secret']]);
  expect(find('provider.client-secret').setting).toContain('OAUTH_CLIENT_SECRET');
});

test('§20.2 doctor URL: a provider that is down since before the start', async () => {
  const port = await freePort();
  const gateway = await startInside({
    OIDC_ISSUER: `http://localhost:${port}`,
    OAUTH_MODE: 'proxy',
    OAUTH_CLIENT_ID: 'gateway',
    CIMD_ALLOWED_HOSTS: 'none',
  });
  const { failures, find } = await runDoctor(`http://localhost:${gateway.port}`);
  expect(failures).toEqual(['gateway.ready.keySet', 'server-metadata']);
  expect(find('gateway.ready.keySet').why).toContain('The provider is down');
});

test('§20.2 doctor URL: a provider that went down later', async () => {
  const { url, provider } = await start();
  await fetch(`${url}/.well-known/oauth-authorization-server`);
  await provider.close();
  const { failures } = await runDoctor(url);
  expect(failures).toContain('provider.reachable');
});

test('§20.2 doctor URL: a clock of the provider that differs', async () => {
  const { url } = await start({}, { clockOffsetSeconds: 3600 });
  const { failures, find } = await runDoctor(url);
  expect(failures).toEqual(['clock']);
  expect(find('clock').what).toMatch(
    /^The provider's clock is (3599|360[01]) s ahead of that of the gateway\.$/,
  );
});

test('§20.2 doctor URL: a gateway that calls itself by another address', async () => {
  const { gateway } = await start();
  const { failures, find } = await runDoctor(gateway.url);
  // What it would be told of the other address says nothing of this one.
  expect(failures).toEqual(['gateway.base-url']);
  expect(find('gateway.base-url')).toMatchObject({
    setting: 'BASE_URL',
    remedy: expect.stringContaining(`set BASE_URL=${gateway.url}`),
  });
});

test('§20.2 doctor URL: a name that the gateway does not answer to', async () => {
  const { gateway } = await start({ NODE_ENV: 'production' });
  const { failures, find } = await runDoctor(gateway.url);
  expect(failures).toEqual(['gateway.endpoint']);
  expect(find('gateway.endpoint').remedy).toContain(`set BASE_URL=${gateway.url}`);
});

test('§20.2 doctor URL: BASE_URL has a path, and the proxy in front changes it, or passes on what is below it only', async () => {
  const gatewayPort = await freePort();
  let rewrite = (path: string): string | undefined => `/other${path}`;
  const front = closeAfterTest(
    await startFront(({ url: asked = '' }) => {
      const path = rewrite(asked);
      return path === undefined ? undefined : { port: gatewayPort, path };
    }),
  );
  const url = `http://localhost:${front.port}/gateway`;
  await startBrokerBehind(url, gatewayPort);
  const changed = await runDoctor(url);
  expect(changed.failures).toEqual(['gateway.endpoint']);
  expect(changed.find('gateway.endpoint')).toMatchObject({
    setting: 'BASE_URL',
    why: expect.stringContaining('with another path than /mcp'),
    remedy: expect.stringContaining('pass on requests below /gateway/'),
  });

  const isBelow = (path: string) => path.startsWith('/gateway/');
  const keep = (path: string) => path;
  const remove = (path: string) => path.replace('/gateway', '');
  for (const pass of [keep, remove]) {
    rewrite = (path) => (isBelow(path) ? pass(path) : undefined);
    const below = await runDoctor(url);
    expect(below.failures).toEqual([]);
    expect(below.find('server-metadata.places')).toMatchObject({
      status: 'warning',
      what: expect.stringContaining('/.well-known/oauth-authorization-server/gateway (404)'),
      setting: 'BASE_URL',
      remedy: expect.stringContaining('pass on requests for these addresses'),
    });

    rewrite = (path) =>
      isBelow(path) || path.startsWith('/.well-known/') ? pass(path) : undefined;
    const { failures, findings } = await runDoctor(url);
    const places = findings.filter(({ check }) => /places|derived/.test(check));
    expect([failures, places]).toEqual([[], []]);
  }
});

test('§20.2 doctor URL: replicas whose secrets differ, and replicas without a common store', async () => {
  const redis = closeAfterTest(await startRedis());
  const ports = [await freePort(), await freePort()];
  let turn = 0;
  const front = closeAfterTest(
    await startFront(() => {
      turn += 1;
      return { port: ports[turn % ports.length] ?? 0 };
    }),
  );
  const url = `http://localhost:${front.port}`;
  const provider = closeAfterTest(await startProvider({ gatewayUrl: url }));
  const env = {
    ...provider.env,
    OAUTH_MODE: 'broker',
    CIMD_ALLOWED_HOSTS: 'none',
    BASE_URL: url,
  };
  const startBoth = (differing: (replica: number) => Env) =>
    Promise.all(
      ports.map((port, at) => startInside({ ...env, PORT: String(port), ...differing(at) })),
    );

  const secrets = [
    'the-secret-of-the-first-of-the-replicas',
    'the-secret-of-the-other-of-the-replicas',
  ];
  const both = await startBoth((at) => ({
    REDIS_URL: redis.url,
    OAUTH_STATE_SECRET: secrets[at] ?? '',
  }));
  const { code, failures, find } = await runDoctor(url);
  expect([code, failures]).toEqual([1, ['replicas.secret']]);
  expect(find('replicas.secret').setting).toBe('OAUTH_STATE_SECRET');
  // While replicas restart one after the other, none may seal with what another cannot open.
  expect(find('replicas.secret').remedy).toContain('all with old,new; then all with new,old');

  for (const replica of both) await replica.close();
  await startBoth(() => ({}));
  const apart = await runDoctor(url);
  expect(apart.failures).toEqual(['replicas.store']);
  expect(apart.find('replicas.store').setting).toBe('REDIS_URL');
});

test('§20.2 doctor URL: at a public address it begins several logins, while half of the limit is left', async () => {
  const gatewayPort = await freePort();
  const begun: string[] = [];
  const proxy = closeAfterTest(
    await startFront(({ url = '' }) => {
      if (!URL.canParse(url)) return undefined;
      const { pathname, search } = new URL(url);
      if (pathname === '/oauth/authorize') begun.push(url);
      return { port: gatewayPort, path: pathname + search };
    }),
  );
  const env = { HTTP_PROXY: `http://127.0.0.1:${proxy.port}`, NO_PROXY: 'localhost' };
  const baseUrl = 'http://gateway.example';
  await start({ OAUTH_MODE: 'proxy', PORT: String(gatewayPort), BASE_URL: baseUrl });
  const counts: number[] = [];
  for (const _ of [1, 2, 3]) {
    const { find } = await runDoctor(baseUrl, { env });
    expect(find('login').status).toBe('ok');
    counts.push(begun.splice(0).length);
  }
  expect(counts).toEqual([3, 3, 1]);
});

test('§20.2 doctor URL: in proxy mode it says which clients would refuse, and why', async () => {
  const { url } = await start({ OAUTH_MODE: 'proxy', OAUTH_METADATA_ISSUER: 'upstream' });
  const { code, find } = await runDoctor(url);
  expect(code).toBe(0);
  expect(find('server-metadata.issuer').status).toBe('warning');
  expect(find('clients.issuer').what).toContain('TypeScript SDK 2.x');
  expect(find('clients.issuer').setting).toBe('OAUTH_MODE');
  expect(find('registration.schemes').setting).toBe('OAUTH_REDIRECT_SCHEMES');
  expect(find('clients.scheme').what).toContain('Cursor');
});

test('§20.2 doctor URL: registration that needs a token', async () => {
  const { url } = await start({ DCR_ACCESS_TOKEN: 'a-token-to-register-clients' });
  const { find } = await runDoctor(url);
  expect(find('registration').setting).toBe('DCR_ACCESS_TOKEN');
  expect(find('clients.registration').what).toContain('Codex');
});

test('§20.2 doctor URL: a gateway without authentication', async () => {
  const gateway = await startInside({ AUTH_REQUIRED: 'false' });
  const { code, find } = await runDoctor(`http://localhost:${gateway.port}`);
  expect(code).toBe(0);
  expect(find('challenge')).toMatchObject({ status: 'warning', setting: 'AUTH_REQUIRED' });
});

test('§20.2 doctor URL --token: a token of a login in proxy mode, what its user sees, and tokens that are refused', async () => {
  const { url, gateway } = await start({ OAUTH_MODE: 'proxy' });
  const { accessToken } = await logIn(url, 'ann');
  const args = (token: string) => ({ args: ['--token', token] });
  const good = await runDoctor(url, args(accessToken));
  expect(good.failures).toEqual([]);
  expect(good.find('token').what).toContain('sub "ann"');
  expect(good.find('tools').what).toContain('service_ping');

  const opaque = await runDoctor(url, args('opaque-token-of-a-provider'));
  expect(opaque.failures).toEqual(['token.opaque']);

  const pasted = await runDoctor(url, args(`Bearer ${accessToken}\n`));
  expect(pasted.find('token').status).toBe('ok');

  const port = await freePort();
  const otherUrl = `http://localhost:${port}`;
  await startInside({
    OIDC_ISSUER: issuer.url,
    PORT: String(port),
    BASE_URL: otherUrl,
    DATA_DIR: `${gateway.dataDir}-other`,
  });
  const wrong = await runDoctor(otherUrl, args(await issuer.sign({ aud: undefined })));
  expect(wrong.failures).toContain('token.audience-missing');
});

test('§20.2 doctor URL: where it may not register, the login is tried as the playground would', async () => {
  const { url } = await start({ DCR_ACCESS_TOKEN: 'a-token-to-register-clients' });
  const { failures, find } = await runDoctor(url);
  expect(failures).toEqual([]);
  for (const check of ['login', 'provider.redirect-uri'])
    expect(find(check).status, check).toBe('ok');
});

test('§20.2 doctor URL: .env of the current folder leads the token nowhere', async () => {
  const taken: string[] = [];
  const proxy = createServer((req, res) => {
    taken.push(String(req.url));
    res.end();
  });
  await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening));
  const cwd = await makeOwnFolder();
  const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  await writeFile(join(cwd, '.env'), `HTTP_PROXY=${address}\nNODE_TLS_REJECT_UNAUTHORIZED=0\n`);
  const { find } = await runDoctor('http://gateway.invalid', { cwd, args: ['--token', 'hunter2'] });
  expect(find('gateway.reachable').what).toContain('cannot be resolved');
  expect(taken).toEqual([]);
  await new Promise((closed) => proxy.close(closed));
});

test('§20.2 doctor URL: the clients that it knows are those of the page about clients', async () => {
  const page = await readFile(new URL('../../docs/clients.md', import.meta.url), 'utf8');
  const [, table = ''] = /^\| Client \| Package .*\n\|[ -|]*\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const tried = [...table.matchAll(/^\| ([^|]+?) \|/gm)].map(
    ([, name = '']) => name.split(', ')[0],
  );
  expect(tried.length).toBeGreaterThan(20);
  const known = KNOWN_CLIENTS.map(({ name }) => name);
  expect(known.slice(0, -4)).toEqual([...new Set(tried)]);
  for (const name of known.slice(-4)) expect(page).toContain(name);
});
