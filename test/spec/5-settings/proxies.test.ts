// §14: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, against a real proxy of the test's.
import { beforeEach, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { createClientDocuments } from '../../../src/logins/client-id-metadata/client-documents.ts';
import {
  type OutboundNetwork,
  openOutboundNetwork,
} from '../../../src/platform/outbound/outbound-network.ts';
import { createProxyChoice } from '../../../src/platform/outbound/proxy-choice.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import {
  INITIALIZE_REQUEST,
  startGateway,
  type TestGateway,
} from '../../support/gateway/gateway.ts';
import { collectLog, type LogLine } from '../../support/gateway/log.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { redirectUris } from '../../support/oauth/client-documents.ts';
import { documentAnswer, PUBLIC, startDocumentHost } from '../../support/oauth/document-host.ts';
import { startIssuer } from '../../support/oauth/issuer.ts';
import { startProxy } from '../../support/oauth/proxy.ts';
import { startUpstream } from '../../support/oauth/upstream.ts';

const ENV = { OIDC_ISSUER: 'https://id.example' };
const BROKER = {
  ...ENV,
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'gateway',
};

function problemsOf(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    loadConfig(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

describe('the settings of a proxy', () => {
  test.each([
    [{}, undefined, undefined, []],
    [{ HTTPS_PROXY: 'http://p.example:3128' }, undefined, 'http://p.example:3128', []],
    [{ https_proxy: 'http://p.example:3128' }, undefined, 'http://p.example:3128', []],
    [{ HTTP_PROXY: 'http://p.example' }, 'http://p.example', 'http://p.example', []],
    [
      { http_proxy: 'http://a.example', HTTPS_PROXY: 'https://b.example/' },
      'http://a.example',
      'https://b.example/',
      [],
    ],
    [
      { HTTPS_PROXY: 'http://a.example', https_proxy: 'http://b.example' },
      undefined,
      'http://a.example',
      [],
    ],
    [{ HTTPS_PROXY: '', https_proxy: 'http://b.example' }, undefined, 'http://b.example', []],
    [
      { HTTPS_PROXY: 'http://u%40x:p%3A@a.example:1' },
      undefined,
      'http://u%40x:p%3A@a.example:1',
      [],
    ],
    [
      { NO_PROXY: 'a.example, .b.example  10.0.0.0/8,' },
      undefined,
      undefined,
      ['a.example', '.b.example', '10.0.0.0/8'],
    ],
    [{ no_proxy: '*' }, undefined, undefined, ['*']],
  ])('§14 proxies: %j', (env, httpProxy, httpsProxy, noProxy) => {
    expect(loadConfig({ ...ENV, ...env }).outbound).toEqual({ httpProxy, httpsProxy, noProxy });
  });

  test.each(['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy', 'http_proxy'])(
    '§14 proxies: a wrong %s is named, and what was given is not shown',
    (variable) => {
      for (const wrong of [
        'p.example:3128',
        'socks5://p.example',
        'http://',
        'http://p.example/path',
        'http://p.example?hunter2',
        'http://hunter2@p.example',
        'http://u:hunter2%@p.example',
        'http://u:hunter2 @p.example',
      ]) {
        const problems = problemsOf({ ...ENV, [variable]: wrong });
        expect(problems).toEqual([
          expect.stringMatching(
            new RegExp(
              `^${variable}: the value given \\(not shown\\) is not valid\\. It must be http://host:port`,
            ),
          ),
        ]);
      }
    },
  );

  test.each(['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy'])(
    '§14 proxies: CIMD_ALLOWED_HOSTS=* together with %s is an error',
    (variable) => {
      const env = { ...BROKER, [variable]: 'http://p.example:3128' };
      expect(problemsOf(env)).toEqual([]);
      expect(problemsOf({ ...env, CIMD_ALLOWED_HOSTS: 'claude.ai,*' })).toEqual([
        expect.stringMatching(/^CIMD_ALLOWED_HOSTS: .*HTTPS_PROXY/),
      ]);
    },
  );
});

describe('which URLs go through a proxy', () => {
  const settings = { httpProxy: 'http://a.example', httpsProxy: 'http://b.example' };
  const by = (noProxy: readonly string[], url: string) =>
    createProxyChoice({ ...settings, noProxy })(new URL(url));

  test('§14 proxies: http and https have their own', () => {
    expect(by([], 'http://id.example/')).toBe('http://a.example');
    expect(by([], 'https://id.example/')).toBe('http://b.example');
    const https = { httpProxy: undefined, httpsProxy: 'http://b.example', noProxy: [] };
    expect(createProxyChoice(https)(new URL('http://id.example/'))).toBeUndefined();
  });

  test.each([
    'http://localhost/',
    'https://LOCALHOST:8443/',
    'http://localhost./',
    'http://keycloak.localhost:8080/',
    'http://127.0.0.1:8080/',
    'http://127.1.2.3/',
    'http://2130706433/',
    'https://[::1]:8080/',
    'http://[::ffff:127.0.0.1]/',
  ])('§14 proxies: loopback never does: %s', (url) => {
    expect(by([], url)).toBeUndefined();
  });

  test.each([
    ['https://localhost.example/'],
    ['https://notlocalhost/'],
    ['https://128.0.0.1/'],
    ['https://10.0.0.1/'],
  ])('§14 proxies: %s is not on this machine', (url) => {
    expect(by([], url)).toBe('http://b.example');
  });

  test.each([
    ['*', 'https://id.example/', true],
    ['id.example', 'https://id.example/', true],
    ['ID.Example', 'https://id.example./', true],
    ['id.example', 'https://a.id.example/', true],
    ['id.example', 'https://bid.example/', false],
    ['id.example', 'https://id.example.com/', false],
    ['.id.example', 'https://a.id.example/', true],
    ['*.id.example', 'https://a.b.id.example/', true],
    ['.id.example', 'https://id.example/', false],
    ['id.example:443', 'https://id.example/', true],
    ['id.example:443', 'https://id.example:8443/', false],
    ['id.example:80', 'https://id.example/', false],
    ['10.1.2.3', 'https://10.1.2.3/', true],
    ['10.1.2.3', 'https://10.1.2.4/', false],
    ['10.1.2.3:8443', 'https://10.1.2.3:8443/', true],
    ['10.0.0.0/8', 'https://10.200.0.1/', true],
    ['10.0.0.0/8', 'https://11.0.0.1/', false],
    ['10.0.0.0/40', 'https://10.0.0.1/', false],
    ['10.0.0.0/x', 'https://10.0.0.1/', false],
    ['10.0.0.0/8', 'https://10.example/', false],
    ['fd00::/8', 'https://[fd12::1]/', true],
    ['[fd12::1]', 'https://[fd12:0::1]/', true],
    ['[fd12::1]:8443', 'https://[fd12::1]:8443/', true],
    ['fd12::1', 'https://[fd12::2]/', false],
    ['<local>', 'https://id.example/', false],
  ])('§14 proxies: NO_PROXY=%s, %s: directly %s', (entry, url, isDirect) => {
    expect(by(['other.example', entry], url)).toBe(isDirect ? undefined : 'http://b.example');
  });
});

describe.each([
  { how: 'without credentials', credentials: undefined },
  { how: 'with credentials', credentials: ['us@er', 'p:ss w/rd%'] as const },
])('a proxy $how', ({ credentials }) => {
  const proxy = useFresh(() => startProxy(credentials));

  test('§14 proxies: discovery, key set and token endpoint of the provider are reached by it', async () => {
    const issuer = await startIssuer();
    const upstream = await startUpstream();
    const url = 'http://id.example';
    issuer.document = { issuer: url, jwks_uri: `${url}/jwks` };
    proxy.lead('id.example:80', portOf(issuer.url));
    proxy.lead('id.example:9000', portOf(upstream.url));
    const gateway = await startGateway({
      env: {
        OIDC_ISSUER: url,
        OAUTH_TOKEN_URL: `${url}:9000/token?tenant=1`,
        HTTP_PROXY: proxy.url,
      },
    });
    const token = await issuer.sign({ iss: url });
    expect((await gateway.rpc(INITIALIZE_REQUEST, { token })).status).toBe(200);
    const refreshes = Array.from({ length: 5 }, () => refresh(gateway));
    for (const { status } of await Promise.all(refreshes)) expect(status).toBe(200);
    expect([...new Set(proxy.asked)]).toEqual([
      `GET ${url}/.well-known/openid-configuration`,
      `GET ${url}/jwks`,
      `POST ${url}:9000/token?tenant=1`,
    ]);
    expect(upstream.received.at(-1)?.headers).not.toHaveProperty('authorization');
    expect(gateway.log.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
    await gateway.close();
    await issuer.close();
    await upstream.close();
  });

  test('§14 proxies: https goes through it by CONNECT, and the certificate is checked behind it', async () => {
    const host = await startDocumentHost({ names: ['id.example'] });
    proxy.lead('id.example:443', host.port);
    const gateway = await startGateway({
      env: { OIDC_ISSUER: 'https://id.example', HTTPS_PROXY: proxy.url },
    });
    await expect
      .poll(() => gateway.log.find(({ level }) => level === 'error')?.cause)
      .toMatch(/self-signed certificate/);
    expect(proxy.asked[0]).toBe('CONNECT id.example:443');
    expect(host.requests).toEqual([]);
    await gateway.close();
    await host.close();
  });

  test('§14 proxies: a provider on this machine is reached directly', async () => {
    const upstream = await startUpstream();
    const gateway = await startGateway({
      env: {
        HTTP_PROXY: proxy.url,
        HTTPS_PROXY: proxy.url,
        OAUTH_TOKEN_URL: upstream.url.replace('127.0.0.1', 'localhost'),
      },
    });
    expect((await gateway.rpc(INITIALIZE_REQUEST)).status).toBe(200);
    expect((await refresh(gateway)).status).toBe(200);
    expect(proxy.asked).toEqual([]);
    await gateway.close();
    await upstream.close();
  });

  describe('client ID metadata documents', () => {
    const ID = 'https://client.example/oauth/client.json';
    const host = useFresh(() => startDocumentHost({ names: ['client.example'] }));
    let outbound: OutboundNetwork;
    beforeEach(() => {
      host.answer(documentAnswer());
      proxy.lead('client.example:443', host.port);
    });

    async function open(env: Readonly<Record<string, string>> = { HTTPS_PROXY: proxy.url }) {
      outbound = closeAfterTest(
        openOutboundNetwork({
          outbound: loadConfig({ ...ENV, ...env }).outbound,
        }),
      );
      const clock = manualClock(1_800_000_000_000);
      const { log, lines } = collectLog();
      const documents = createClientDocuments(
        { clock, log },
        { ...host.network, tunnel: outbound.openTunnel },
        { allowedHosts: ['client.example'], redirectUris, acceptsKeys: false },
      );
      return { documents, clock, lines: lines as readonly LogLine[] };
    }

    test('§14 proxies: a document is fetched by CONNECT, and its host looked up by nobody here', async () => {
      const { documents } = await open();
      expect((await documents.find(ID)).client_id).toBe(ID);
      expect(proxy.asked).toEqual(['CONNECT client.example:443']);
      expect(host.requests.at(-1)).toMatchObject({
        servername: 'client.example',
        path: '/oauth/client.json',
      });
      expect(host.requests.at(-1)?.headers).not.toHaveProperty('proxy-authorization');
      expect([...host.resolved, ...host.dialled]).toEqual([]);
      await expect.poll(host.open).toBe(0);
      await expect.poll(proxy.open).toBe(0);
    });

    test('§14 proxies: a host of NO_PROXY is reached directly, and its addresses are checked', async () => {
      const env = { HTTPS_PROXY: proxy.url, NO_PROXY: 'client.example' };
      expect((await (await open(env)).documents.find(ID)).client_id).toBe(ID);
      expect(host.dialled).toEqual([PUBLIC]);
      host.resolveTo(async () => ['10.0.0.1']);
      outbound.close();
      await expect((await open(env)).documents.find(ID)).rejects.toThrow(/public addresses only/);
      expect(proxy.asked).toEqual([]);
    });

    test('§14 proxies: what the proxy says against it is in the log, its password is not', async () => {
      proxy.lead('client.example:443', 0);
      const { documents, lines } = await open({
        HTTPS_PROXY: `http://someone:hunter2@127.0.0.1:${proxy.port}`,
        CIMD_ALLOWED_HOSTS: 'other.example',
      });
      await expect(documents.find('https://client.example/a')).rejects.toThrow('cannot be fetched');
      if (credentials) {
        expect(lines.at(-1)?.cause).toMatch('the proxy answered 407 to CONNECT client.example:443');
      }
      await proxy.close();
      await expect(documents.find('https://client.example/b')).rejects.toThrow('cannot be fetched');
      expect(lines.at(-1)?.cause).toMatch(/ECONNREFUSED/);
      expect(JSON.stringify(lines)).not.toMatch(/hunter2|someone|c29tZW9uZ/);
    });

    test('§14 proxies: a proxy that says nothing is given up after the 5 s of the document', async () => {
      proxy.fallSilent();
      const { documents, clock } = await open();
      const finding = documents.find(ID).catch(String);
      await expect.poll(() => proxy.asked.length).toBe(1);
      clock.advance(5000);
      expect(await finding).toMatch(/did not arrive in full within 5 s/);
      await expect.poll(proxy.connections).toBe(0);
    });
  });
});

test('§14 proxies: the environment of the process is not read behind the settings', async () => {
  const proxy = await startProxy();
  const before = process.env.NO_PROXY;
  process.env.NO_PROXY = '*';
  try {
    const outbound = openOutboundNetwork({
      outbound: loadConfig({ ...ENV, HTTPS_PROXY: proxy.url }).outbound,
    });
    await expect(outbound.fetch('https://id.example/', {})).rejects.toThrow();
    outbound.close();
    expect(proxy.asked).toEqual(['CONNECT id.example:443']);
  } finally {
    if (before === undefined) delete process.env.NO_PROXY;
    else process.env.NO_PROXY = before;
    await proxy.close();
  }
});

const portOf = (url: string): number => Number(new URL(url).port);

const refresh = (gateway: TestGateway) =>
  gateway.request({
    method: 'POST',
    path: '/oauth/token',
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: 'r',
      client_id: 'my-app',
    }),
  });
