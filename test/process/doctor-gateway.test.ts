// `postern doctor URL`: what a client sees of a running gateway, and what is wrong with it.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { KNOWN_CLIENTS } from '../../src/cli/doctor/clients/known-clients.ts';
import { runDoctor } from '../support/gateway/doctor.ts';
import { freePort } from '../support/gateway/ports.ts';
import {
  type Env,
  endPosterns,
  type RunningPostern,
  runPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { logIn } from '../support/gateway/process-login.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { startIssuer } from '../support/oauth/issuer.ts';
import { type Provider, type ProviderOptions, startProvider } from '../support/oauth/provider.ts';
import { newCertificate, startRedis } from '../support/stores/redis.ts';

afterEach(endPosterns);

const issuer = useShared(startIssuer);

interface Started {
  readonly url: string;
  readonly gateway: RunningPostern;
  readonly provider: Provider;
}

/** A gateway in broker mode, and the provider that it is for. */
async function start(env: Env = {}, options: Partial<ProviderOptions> = {}): Promise<Started> {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const provider = closeAfterTest(await startProvider({ gatewayUrl: url, ...options }));
  const gateway = await startPostern({
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
    'provider.client-secret',
    'clock',
    'clients',
  ])
    expect(find(check).status, check).toBe('ok');
  expect(find('clients').what).toMatch(/Claude Code.*Codex.*Cursor.*VS Code/);
});

test('§20.2 doctor URL: a line for each finding, marked, in sections, and a summary; colours only where they are wanted', async () => {
  const { url } = await start();
  const args = ['doctor', url];
  const { stdout } = await runPostern({}, { args });
  expect(stdout).toMatch(/^Checking http:\/\/localhost:\d+\n\nGateway\n {2}✓ /);
  expect(stdout).toMatch(/\n\nClients\n {2}✓ Would log in: /);
  expect(stdout).toMatch(/\n\n0 failures, \d+ warnings?, \d+ not known, \d+ fine\.\n$/);
  expect(stdout).not.toContain('\u001b');
  expect((await runPostern({ FORCE_COLOR: '1' }, { args })).stdout).toContain(
    '\u001b[32m✓\u001b[0m',
  );
});

test('§20.2 doctor URL: what is no URL is a mistake of the command line', async () => {
  const { code, stdout, stderr } = await runPostern({}, { args: ['doctor', 'ftp://x'] });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain('"ftp://x" is not the URL of a gateway');
});

test('§20.2 doctor URL: nothing listens there, no such name, and no gateway', async () => {
  const port = await freePort();
  const nobody = await runDoctor(`localhost:${port}`);
  expect([nobody.code, nobody.failures]).toEqual([1, ['gateway.reachable']]);
  expect(nobody.find('gateway.reachable').what).toBe(`Nothing listens at localhost:${port}.`);
  const nameless = await runDoctor('https://gateway.invalid');
  expect(nameless.find('gateway.reachable').what).toContain('cannot be resolved');
  const other = await runDoctor(issuer.url);
  expect(other.code).toBe(1);
});

test('§20.2 doctor URL: a wrong client secret of the gateway', async () => {
  const { url } = await start(
    { OAUTH_CLIENT_SECRET: 'not-the-secret' },
    { client: { secret: 'the-secret', auth: 'post' } },
  );
  const { code, failures, find } = await runDoctor(url);
  expect([code, failures]).toEqual([1, ['provider.client-secret']]);
  expect(find('provider.client-secret').setting).toContain('OAUTH_CLIENT_SECRET');
});

test('§20.2 doctor URL: a provider that is down since before the start', async () => {
  const port = await freePort();
  const gateway = await startPostern({
    OIDC_ISSUER: `http://localhost:${port}`,
    OAUTH_MODE: 'broker',
    OAUTH_CLIENT_ID: 'gateway',
    CIMD_ALLOWED_HOSTS: 'none',
  });
  const { failures, find } = await runDoctor(`http://localhost:${gateway.port}`);
  expect(failures).toEqual(['gateway.ready.keySet', 'server-metadata', 'clients']);
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
  expect(failures).toEqual(expect.arrayContaining(['gateway.base-url', 'resource-metadata']));
  expect(find('gateway.base-url')).toMatchObject({
    setting: 'BASE_URL',
    remedy: expect.stringContaining(`set BASE_URL=${gateway.url}`),
  });
});

test('§20.2 doctor URL: a name that the gateway does not answer to', async () => {
  const { gateway } = await start({ NODE_ENV: 'production' });
  const { failures, find } = await runDoctor(gateway.url);
  expect(failures).toEqual(['gateway.reachable']);
  expect(find('gateway.reachable').remedy).toContain(`set BASE_URL=${gateway.url}`);
});

test('§20.2 doctor URL: BASE_URL has a path, which the proxy in front does not remove, or only below it', async () => {
  const gatewayPort = await freePort();
  let removesPath = false;
  const front = closeAfterTest(
    await startFront(({ url: path = '' }) => {
      if (!path.startsWith('/gateway/')) return undefined;
      return { port: gatewayPort, path: removesPath ? path.slice('/gateway'.length) : path };
    }),
  );
  const url = `http://localhost:${front.port}/gateway`;
  const provider = closeAfterTest(await startProvider({ gatewayUrl: url }));
  await startPostern({
    ...provider.env,
    OAUTH_MODE: 'broker',
    CIMD_ALLOWED_HOSTS: 'none',
    PORT: String(gatewayPort),
    BASE_URL: url,
  });
  const kept = await runDoctor(url);
  expect(kept.failures).toEqual(['gateway.reachable']);
  expect(kept.find('gateway.reachable')).toMatchObject({
    setting: 'BASE_URL',
    why: expect.stringContaining('has to remove the path of BASE_URL'),
  });
  removesPath = true;
  const removed = await runDoctor(url);
  expect(removed.failures).toEqual([]);
  expect(removed.find('server-metadata.places')).toMatchObject({
    status: 'warning',
    what: expect.stringContaining('/.well-known/oauth-authorization-server/gateway (404)'),
    setting: 'BASE_URL',
  });
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
  const env = { ...provider.env, OAUTH_MODE: 'broker', CIMD_ALLOWED_HOSTS: 'none', BASE_URL: url };
  const startBoth = (differing: (replica: number) => Env) =>
    Promise.all(
      ports.map((port, at) => startPostern({ ...env, PORT: String(port), ...differing(at) })),
    );

  const secrets = [
    'the-secret-of-the-first-of-the-replicas',
    'the-secret-of-the-other-of-the-replicas',
  ];
  await startBoth((at) => ({ REDIS_URL: redis.url, OAUTH_STATE_SECRET: secrets[at] ?? '' }));
  const { code, failures, find } = await runDoctor(url);
  expect([code, failures]).toEqual([1, ['replicas.secret', 'clients']]);
  expect(find('replicas.secret').setting).toBe('OAUTH_STATE_SECRET');

  await endPosterns();
  await startBoth(() => ({}));
  const apart = await runDoctor(url);
  expect(apart.failures).toEqual(['replicas.store', 'clients']);
  expect(apart.find('replicas.store').setting).toBe('REDIS_URL');
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
  const gateway = await startPostern({ AUTH_REQUIRED: 'false' });
  const { code, find } = await runDoctor(`http://localhost:${gateway.port}`);
  expect(code).toBe(0);
  expect(find('challenge')).toMatchObject({ status: 'warning', setting: 'AUTH_REQUIRED' });
});

test('§20.2 doctor URL --token: a token of a login, what its user sees, and tokens that are refused', async () => {
  const { url, gateway } = await start();
  const { accessToken } = await logIn(url, 'ann');
  const args = (token: string) => ({ args: ['--token', token] });
  const good = await runDoctor(url, args(accessToken));
  expect(good.failures).toEqual([]);
  expect(good.find('token').what).toContain('sub "ann"');
  expect(good.find('tools').what).toContain('service_ping');

  const opaque = await runDoctor(url, args('opaque-token-of-a-provider'));
  expect(opaque.failures).toEqual(['token.opaque']);

  const other = await startPostern({
    OIDC_ISSUER: issuer.url,
    BASE_URL: 'http://localhost:3000',
    DATA_DIR: `${gateway.dataDir}-other`,
  });
  const wrong = await runDoctor(other.url, args(await issuer.sign({ aud: undefined })));
  expect(wrong.failures).toContain('token.audience-missing');
});

test('§20.2 doctor URL: where it may not register, the login is tried as the playground would', async () => {
  const { url } = await start({ DCR_ACCESS_TOKEN: 'a-token-to-register-clients' });
  const { failures, find } = await runDoctor(url);
  expect(failures).toEqual([]);
  for (const check of ['login', 'provider.redirect-uri', 'provider.client-secret'])
    expect(find(check).status, check).toBe('ok');
});

test('§20.2 doctor URL: TLS: a certificate that is not trusted, one that is, and none; an unknown redirect URI', async () => {
  const { cert, key } = await newCertificate();
  const gatewayPort = await freePort();
  const front = createTlsServer({ cert, key }, (req, res) => {
    const { method, url: path, headers } = req;
    const onward = request(
      { host: '127.0.0.1', port: gatewayPort, method, path, headers },
      (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      },
    );
    onward.on('error', () => res.destroy());
    req.pipe(onward);
  });
  await new Promise<void>((listening) => front.listen(0, '127.0.0.1', listening));
  const { port } = front.address() as AddressInfo;
  const url = `https://127.0.0.1:${port}`;
  const env = {
    OAUTH_MODE: 'broker',
    CIMD_ALLOWED_HOSTS: 'none',
    PORT: String(gatewayPort),
    BASE_URL: url,
  };
  const provider = closeAfterTest(await startProvider({ gatewayUrl: url }));
  await startPostern({ ...provider.env, ...env });
  const ca = join(await makeOwnFolder(), 'ca.pem');
  await writeFile(ca, cert);

  const untrusted = await runDoctor(url);
  expect(untrusted.failures).toEqual(['gateway.reachable']);
  expect(untrusted.find('gateway.reachable').what).toContain('TLS certificate');
  const trusted = await runDoctor(url, { env: { NODE_EXTRA_CA_CERTS: ca } });
  expect(trusted.failures).toEqual([]);
  expect(trusted.find('gateway.certificate').what).toMatch(/valid for \d+ more days/);
  const plain = await runDoctor(`https://localhost:${gatewayPort}`);
  expect(plain.find('gateway.reachable').what).toContain('does not speak TLS');

  await endPosterns();
  const foreign = closeAfterTest(await startProvider({ gatewayUrl: 'https://other.example' }));
  await startPostern({ ...foreign.env, ...env });
  const unregistered = await runDoctor(url, { env: { NODE_EXTRA_CA_CERTS: ca } });
  expect(unregistered.failures).toEqual(['provider.redirect-uri']);
  expect(unregistered.find('provider.redirect-uri').remedy).toContain(
    `register exactly ${url}/oauth/callback`,
  );

  front.closeAllConnections();
  await new Promise((closed) => front.close(closed));
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
