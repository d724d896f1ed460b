import { beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../support/gateway/gateway.ts';
import { sendRaw, statusesOf } from '../../support/gateway/raw-http.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const SECURITY = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-dns-prefetch-control': 'off',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'cross-origin',
};

const gateway = useGateway({
  env: {
    ALLOWED_ORIGINS: 'https://App.example, vscode-file://vscode-app',
    ALLOWED_HOSTS: 'other.example,exact.example:8080',
  },
});
const production = useGateway({
  env: { NODE_ENV: 'production', BASE_URL: 'https://gw.example/', OIDC_AUDIENCE: 'x' },
});
let port: number;
beforeAll(async () => {
  port = await gateway.listen();
});

describe('security headers', () => {
  test.each([
    { what: 'an answer', ask: { path: '/health' } },
    { what: 'an unknown path', ask: { path: '/nope' } },
    { what: 'a page for people', ask: { path: '/nope', headers: { accept: 'text/html' } } },
    { what: 'a malformed URL', ask: { path: '/%zz' } },
    { what: 'a wrong method', ask: { path: '/health', method: 'DELETE' } },
    { what: 'a preflight', ask: { path: '/mcp', method: 'OPTIONS' } },
    { what: 'a missing token', ask: { path: '/mcp', method: 'POST' } },
    {
      what: 'a foreign origin',
      ask: { path: '/mcp', headers: { origin: 'https://evil.example' } },
    },
    { what: 'a foreign host', ask: { path: '/mcp', headers: { host: 'evil.example' } } },
    { what: 'an OAuth error', ask: { path: '/oauth/authorize' } },
    { what: 'metadata', ask: { path: '/.well-known/oauth-protected-resource' } },
    { what: 'metrics', ask: { path: '/metrics' } },
  ])('§4.12 $what carries them, and Vary: Origin', async ({ ask }) => {
    const { headers } = await gateway.request(ask);
    expect(headers).toMatchObject(SECURITY);
    expect(headers.vary).toMatch(/^Origin/);
    expect(headers['strict-transport-security']).toBeUndefined();
    expect(headers['x-powered-by']).toBeUndefined();
  });

  test('§4.12 bytes that are no HTTP get them too', async () => {
    const received = await sendRaw(port, 'nonsense\r\n\r\n');
    expect(statusesOf(received)).toEqual([400]);
    for (const [name, value] of Object.entries(SECURITY)) {
      expect(received.toLowerCase()).toContain(`${name}: ${value.toLowerCase()}`);
    }
    expect(JSON.parse(received.slice(received.indexOf('{')))).toMatchObject({
      jsonrpc: '2.0',
      error: { code: -32000, message: 'Bad Request' },
      id: null,
    });
  });

  test('§4.12 production over HTTPS adds HSTS', async () => {
    const { headers } = await production.request({ path: '/health' });
    expect(headers['strict-transport-security']).toBe(
      'max-age=31536000; includeSubDomains; preload',
    );
  });
});

describe('names of headers', () => {
  const ALLOWED = 'Origin: https://app.example\r\n';
  test.each([
    { what: 'an answer', path: '/health', headers: '' },
    { what: 'a page', path: '/nope', headers: 'Accept: text/html\r\n' },
    {
      what: 'a page with its own Referrer-Policy',
      path: '/oauth/authorize',
      headers: 'Accept: text/html\r\n',
    },
    { what: 'an answer that a page may read', path: '/health', headers: ALLOWED },
    { what: 'a refusal that closes', path: '/mcp', headers: 'Transfer-Encoding: identity\r\n' },
  ])('§4.12 $what has none twice', async ({ path, headers }) => {
    const received = await sendRaw(
      port,
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headers}\r\n`,
    );
    const head = received.slice(0, received.indexOf('\r\n\r\n')).split('\r\n').slice(1);
    const names = head.map((line) => line.slice(0, line.indexOf(':')).toLowerCase());
    expect(names).toContain('content-length');
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });
});

describe('CORS', () => {
  test.each([
    { origin: 'https://app.example' },
    { origin: 'vscode-file://vscode-app' },
    { origin: 'http://localhost:3000' },
    { origin: 'http://localhost' },
    { origin: 'http://localhost:6274' },
    { origin: 'http://127.0.0.1:1' },
  ])('§4.12 $origin is granted, on errors as well', async ({ origin }) => {
    for (const ask of [{ path: '/health' }, { path: '/nope' }, { path: '/mcp', method: 'POST' }]) {
      const { headers } = await gateway.request({ ...ask, headers: { origin } });
      expect(headers['access-control-allow-origin']).toBe(origin);
      expect(headers['access-control-allow-credentials']).toBe('true');
      expect(headers['access-control-allow-methods']).toBe('GET, POST, PUT, DELETE, OPTIONS');
      expect(headers['access-control-allow-headers']).toMatch(
        /^Content-Type, Authorization, mcp-session-id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID$/,
      );
      expect(headers['access-control-expose-headers']).toMatch(
        /^X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, mcp-session-id, X-Session-Expires-At, WWW-Authenticate, Retry-After$/,
      );
      expect(headers['access-control-max-age']).toBe('86400');
    }
  });

  test('§4.12 a preflight is 204 without a body, before method and token', async () => {
    for (const path of ['/mcp', '/oauth/token', '/nope']) {
      const { status, text } = await gateway.request({
        method: 'OPTIONS',
        path,
        headers: { origin: 'http://localhost:1' },
      });
      expect(status).toBe(204);
      expect(text).toBe('');
    }
  });

  test('§4.12 without an Origin there is no grant', async () => {
    const { headers } = await gateway.request({ path: '/health' });
    expect(headers['access-control-allow-origin']).toBeUndefined();
  });
});

describe('foreign origins', () => {
  test.each([
    'https://evil.example',
    'null',
    'https://app.example.evil.example',
    'https://evil-app.example',
    'https://app.example:444',
    'http://app.example',
    'http://localhost.evil.example',
    'http://localhost:1.evil.example',
    'https://localhost:3000',
    'http://127.0.0.1.evil.example',
    'http://[::1]:3000',
    'file://',
    'https://app.example, https://evil.example',
    '',
  ])('§7.4 Origin "%s": 403 invalid_origin and no grant', async (origin) => {
    for (const ask of [
      { path: '/mcp', method: 'POST' },
      { path: '/mcp', method: 'OPTIONS' },
      { path: '/health' },
    ]) {
      const { status, headers, json } = await gateway.request({ ...ask, headers: { origin } });
      expect(status).toBe(403);
      expect(json.error).toMatchObject({
        code: -32000,
        message: 'Forbidden',
        data: { reason: 'invalid_origin' },
      });
      expect(headers['access-control-allow-origin']).toBeUndefined();
      expect(gateway.log.at(-1)).toMatchObject({ error: 'invalid_origin', found: origin });
    }
  });

  test('§7.4 in production localhost is foreign, BASE_URL’s own origin is not', async () => {
    const ask = (origin: string) => production.request({ path: '/health', headers: { origin } });
    expect((await ask('http://localhost:3000')).status).toBe(403);
    expect((await ask('http://127.0.0.1:3000')).status).toBe(403);
    expect((await ask('https://gw.example')).headers['access-control-allow-origin']).toBe(
      'https://gw.example',
    );
  });
});

describe('the Host header', () => {
  const status = async (
    at: TestGateway,
    host: string,
    path = '/.well-known/oauth-protected-resource',
  ) => (await at.request({ path, headers: { host } })).status;

  test.each([
    'localhost:3000',
    'LOCALHOST:3000',
    'localhost:9999',
    'localhost',
    '127.0.0.1:3000',
    '[::1]:3000',
    'other.example',
    'other.example:1234',
    'exact.example:8080',
  ])('§4.12 Host %s is allowed', async (host) => {
    expect(await status(gateway, host)).toBe(200);
  });

  test.each([
    'evil.example',
    'localhost.evil.example',
    'evil.example:3000',
    'xlocalhost',
    'exact.example',
    'exact.example:8081',
    'other.example.',
    'other.example:port',
    'a@localhost:3000',
    '127.0.0.1.evil.example',
  ])('§4.12 Host %s: 403 invalid_host', async (host) => {
    const { status: code, json } = await gateway.request({ path: '/mcp', headers: { host } });
    expect(code).toBe(403);
    expect(json.error).toMatchObject({
      code: -32000,
      message: 'Forbidden',
      data: { reason: 'invalid_host' },
    });
    expect(gateway.log.at(-1)).toMatchObject({
      error: 'invalid_host',
      found: host,
      expected: expect.arrayContaining(['other.example', 'exact.example:8080']),
    });
  });

  test('§4.12 in production only BASE_URL’s host is left, its port may be spelled out', async () => {
    expect(await status(production, 'gw.example')).toBe(200);
    expect(await status(production, 'gw.example:443')).toBe(200);
    expect(await status(production, 'gw.example:80')).toBe(403);
    expect(await status(production, 'localhost')).toBe(403);
    expect(await status(production, '127.0.0.1:3000')).toBe(403);
  });

  test('§4.12 probes call by address: health and metrics take any Host', async () => {
    for (const path of ['/health', '/health/ready', '/metrics']) {
      expect(await status(production, '10.1.2.3:3000', path)).not.toBe(403);
    }
    expect(statusesOf(await sendRaw(port, 'GET /health HTTP/1.0\r\n\r\n'))).toEqual([200]);
  });

  test.each([
    { what: 'two Hosts', head: 'Host: localhost\r\nHost: localhost\r\n', status: 400 },
    { what: 'none, as by HTTP/1.0', head: '', status: 200 },
  ])('§4.12 a probe with $what: $status', async ({ head, status: wanted }) => {
    const raw = `GET /health HTTP/1.1\r\n${head}Connection: close\r\n\r\n`;
    expect(statusesOf(await sendRaw(await gateway.listen(), raw))).toEqual([wanted]);
  });

  test('§4.12 no Host or two: 400', async () => {
    const close = 'Connection: close\r\n\r\n';
    const none = await sendRaw(port, `GET /nope HTTP/1.1\r\n${close}`);
    expect(statusesOf(none)).toEqual([400]);
    const two = await sendRaw(
      port,
      `GET /nope HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n${close}`,
    );
    expect(statusesOf(two)).toEqual([400]);
    const absolute = await sendRaw(
      port,
      `GET http://evil.example/nope HTTP/1.1\r\nHost: localhost\r\n${close}`,
    );
    expect(statusesOf(absolute)).toEqual([400]);
  });

  test('§11 Host wins over Origin, Origin over everything else', async () => {
    const foreign = { origin: 'https://evil.example' };
    const both = await gateway.request({
      path: '/nope',
      headers: { ...foreign, host: 'evil.example' },
    });
    expect(both.json.error.data.reason).toBe('invalid_host');
    const unknown = await gateway.request({ path: '/nope', headers: foreign });
    expect(unknown.json.error.data.reason).toBe('invalid_origin');
    const method = await gateway.request({ path: '/health', method: 'POST', headers: foreign });
    expect(method.status).toBe(403);
  });
});
