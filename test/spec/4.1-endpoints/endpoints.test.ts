import { beforeAll, describe, expect, test } from 'vitest';
import { startGateway } from '../../support/gateway/gateway.ts';
import { sendRaw, statusesOf } from '../../support/gateway/raw-http.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const gateway = useGateway();
let port: number;
beforeAll(async () => {
  port = await gateway.listen();
});

describe('health', () => {
  test('§4.2 GET /health answers ok and the version', async () => {
    const { status, json } = await gateway.request({ path: '/health' });
    expect(status).toBe(200);
    expect(json).toEqual({ status: 'ok', version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  });

  test('§4.3 GET /health/ready answers ready with its checks', async () => {
    await gateway.rpc({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const { status, json } = await gateway.request({ path: '/health/ready' });
    expect(status).toBe(200);
    expect(json).toEqual({
      status: 'ready',
      version: expect.any(String),
      checks: { store: { status: 'ok' }, keySet: { status: 'ok' } },
    });
  });

  test('§4.3 without a key set the service starts, is alive, and not ready', async () => {
    const cold = await startGateway({ env: { OIDC_JWKS_URL: 'http://127.0.0.1:9/none' } });
    try {
      expect((await cold.request({ path: '/health' })).status).toBe(200);
      const { status, json } = await cold.request({ path: '/health/ready' });
      expect(status).toBe(503);
      expect(json).toMatchObject({
        status: 'not_ready',
        checks: { keySet: { status: 'unavailable' } },
      });
    } finally {
      await cold.close();
    }
  });
});

describe('metadata', () => {
  test.each([
    { path: '', resource: '' },
    { path: '/mcp', resource: '/mcp' },
  ])('§4.9 protected resource metadata at …$path', async ({ path, resource }) => {
    const { status, headers, json } = await gateway.request({
      path: `/.well-known/oauth-protected-resource${path}`,
    });
    expect(status).toBe(200);
    expect(headers['cache-control']).toBe('public, max-age=300');
    expect(json).toEqual({
      resource: gateway.baseUrl + resource,
      authorization_servers: [gateway.baseUrl],
      scopes_supported: ['openid', 'profile', 'email'],
      bearer_methods_supported: ['header'],
      resource_documentation: `${gateway.baseUrl}/`,
    });
  });

  const expected = () => ({
    issuer: gateway.issuer.url,
    authorization_endpoint: `${gateway.baseUrl}/oauth/authorize`,
    token_endpoint: `${gateway.baseUrl}/oauth/token`,
    registration_endpoint: `${gateway.baseUrl}/oauth/register`,
    jwks_uri: `${gateway.issuer.url}/jwks`,
    scopes_supported: ['openid', 'profile', 'email'],
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
  });

  test('§4.10 authorization server metadata', async () => {
    const { status, headers, json } = await gateway.request({
      path: '/.well-known/oauth-authorization-server',
    });
    expect(status).toBe(200);
    expect(headers['cache-control']).toBe('public, max-age=300');
    expect(json).toEqual(expected());
  });

  test('§4.10 openid-configuration adds what OpenID clients insist on', async () => {
    const { json } = await gateway.request({ path: '/.well-known/openid-configuration' });
    expect(json).toEqual({
      ...expected(),
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
    });
  });

  test('§4.10 a revocation URL adds revocation_endpoint; URLs never follow the Host header', async () => {
    const other = await startGateway({
      env: {
        OAUTH_REVOCATION_URL: 'https://idp.example/revoke',
        BASE_URL: 'https://gw.example/base/',
      },
    });
    try {
      const { json } = await other.request({
        path: '/.well-known/oauth-authorization-server',
        headers: { host: 'localhost', 'x-forwarded-host': 'evil.example' },
      });
      expect(json.revocation_endpoint).toBe('https://gw.example/base/oauth/revoke');
      expect(json.token_endpoint).toBe('https://gw.example/base/oauth/token');
    } finally {
      await other.close();
    }
  });
});

describe('paths and methods', () => {
  test.each([
    { path: '/mcp', allow: 'POST, DELETE', wrong: 'PUT' },
    { path: '/health', allow: 'GET, HEAD', wrong: 'POST' },
    { path: '/oauth/authorize', allow: 'GET, HEAD', wrong: 'POST' },
    { path: '/oauth/token', allow: 'POST', wrong: 'GET' },
    { path: '/oauth/register', allow: 'POST', wrong: 'GET' },
    { path: '/oauth/revoke', allow: 'POST', wrong: 'DELETE' },
    { path: '/.well-known/oauth-authorization-server', allow: 'GET, HEAD', wrong: 'PATCH' },
  ])(
    '§4.1 $wrong $path: 405 with Allow: $allow, in JSON-RPC form',
    async ({ path, allow, wrong }) => {
      const { status, headers, json } = await gateway.request({ method: wrong, path });
      expect(status).toBe(405);
      expect(headers.allow).toBe(allow);
      expect(json.error).toMatchObject({ code: -32000, message: 'Method Not Allowed' });
      expect(headers['x-ratelimit-limit']).toBeUndefined();
    },
  );

  test('§4.1 HEAD is GET without a body', async () => {
    const answer = await sendRaw(
      port,
      'HEAD /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toMatch(/^content-length: [1-9]\d+\r$/im);
    expect(answer.slice(answer.indexOf('\r\n\r\n'))).toBe('\r\n\r\n');
  });

  test.each([
    '/nope',
    '//mcp',
    '/MCP',
    '/%6dcp',
    '/mcp%00',
    '/mcp;x',
    '/oauth/token/',
    '/assets/%2e%2e/package.json',
    '/..%2f..%2fetc/passwd',
  ])('§4.1 POST and GET %s: 404, whatever comes along', async (path) => {
    const authorization = `Bearer ${await gateway.issuer.sign()}`;
    for (const method of ['GET', 'POST']) {
      const { status, json } = await gateway.request({ method, path, headers: { authorization } });
      expect(status).toBe(404);
      expect(json.error).toMatchObject({ code: -32000, message: 'Not Found' });
    }
  });

  test('§4.1 dot segments are not resolved: 404', async () => {
    for (const path of [
      '/./mcp',
      '/mcp/.',
      '/mcp/./',
      '/mcp\\',
      '/health/../mcp',
      '/assets/../mcp',
      '/assets/../package.json',
    ]) {
      const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n`;
      expect(statusesOf(await sendRaw(port, `${head}Connection: close\r\n\r\n`))).toEqual([404]);
    }
  });

  test('§4.1 a path that cannot be decoded: 400', async () => {
    for (const path of ['/%', '/%zz', '/%ff%fe']) {
      expect((await gateway.request({ path })).status).toBe(400);
    }
  });

  test('§4.1 an absolute target means its path', async () => {
    const raw = `GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    expect(statusesOf(await sendRaw(port, raw))).toEqual([200]);
  });
});

describe('malformed and smuggled HTTP', () => {
  const HOST = 'Host: localhost\r\n';
  test.each([
    {
      what: 'two lengths',
      raw: `POST /mcp HTTP/1.1\r\n${HOST}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd`,
    },
    {
      what: 'length and chunked',
      raw: `POST /mcp HTTP/1.1\r\n${HOST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    },
    { what: 'a negative length', raw: `POST /mcp HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n` },
    {
      what: 'a chunked look-alike',
      raw: `POST /mcp HTTP/1.1\r\n${HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
    },
    {
      what: 'white space before the colon',
      raw: `GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n`,
    },
    { what: 'a header without a colon', raw: `GET /health HTTP/1.1\r\n${HOST}nonsense\r\n\r\n` },
    { what: 'bare line feeds in the head', raw: `GET /health HTTP/1.1\nHost: localhost\n\n` },
    { what: 'a NUL in a header', raw: `GET /health HTTP/1.1\r\n${HOST}X: a\u0000b\r\n\r\n` },
    { what: 'HTTP/2’s preface', raw: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' },
    {
      what: 'a head of 40 kB',
      raw: `GET /health HTTP/1.1\r\n${HOST}X: ${'x'.repeat(40_000)}\r\n\r\n`,
      status: 431,
    },
    { what: 'a space in the target', raw: `GET /he alth HTTP/1.1\r\n${HOST}\r\n` },
  ])(
    '§4.1 $what: refused or a closed connection, never two answers',
    async ({ raw, status = 400 }) => {
      const statuses = statusesOf(await sendRaw(port, raw));
      expect(statuses.length).toBeLessThanOrEqual(1);
      for (const one of statuses) expect(one).toBe(status);
    },
  );

  test('§4.1 pipelined requests are answered in order, a malformed one ends the connection', async () => {
    const good = `GET /health HTTP/1.1\r\n${HOST}\r\n`;
    const received = await sendRaw(port, `${good}${good}nonsense\r\n\r\n`);
    // node:http drops what is answered but not yet sent when it meets bytes that are no HTTP.
    expect([[], [200], [200, 200], [200, 200, 400]]).toContainEqual(statusesOf(received));
    const closing = `GET /health/ready HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`;
    expect(statusesOf(await sendRaw(port, `${good}${good}${closing}`))).toEqual([200, 200, 200]);
  });

  test('§4.1 more than 64 requests that wait on one connection end it', async () => {
    const many = `GET / HTTP/1.1\r\n${HOST}\r\n`.repeat(200);
    expect(statusesOf(await sendRaw(port, many)).length).toBeLessThanOrEqual(64);
  });

  test('§4.1 a body in another coding than chunked: 400', async () => {
    const raw = `POST /oauth/token HTTP/1.1\r\n${HOST}Content-Type: application/json\r\nTransfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n`;
    expect(statusesOf(await sendRaw(port, raw))).toEqual([400]);
  });

  test('§4.1 a caller who hangs up amid a body is no fault of the service', async () => {
    const raw = `POST /oauth/token HTTP/1.1\r\n${HOST}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;
    await sendRaw(port, raw, 50);
    await expect
      .poll(() => gateway.log.findLast(({ error }) => error === 'incomplete_body'))
      .toMatchObject({ level: 'info', status: 400 });
  });

  test('§4.1 Expect and Upgrade do not change an answer', async () => {
    for (const extra of ['Expect: something', 'Connection: Upgrade, close\r\nUpgrade: websocket']) {
      const raw = `GET /health HTTP/1.1\r\n${HOST}${extra}\r\nConnection: close\r\n\r\n`;
      expect(statusesOf(await sendRaw(port, raw)).at(-1)).toBe(200);
    }
  });

  test.each([
    { what: 'invalid UTF-8', body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]) },
    {
      what: 'a byte order mark',
      body: Buffer.from('\uFEFF{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
    },
  ])('§4.4 $what in a body: 400 -32700', async ({ body }) => {
    const token = await gateway.issuer.sign();
    const answer = await fetch(`http://127.0.0.1:${port}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: -32700 }, id: null });
  });

  test('§8.6 a 40 MB body is refused with 413 while others are served', async () => {
    const token = await gateway.issuer.sign();
    const upload = fetch(`http://127.0.0.1:${port}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: new Uint8Array(40_000_000),
    });
    const health = await fetch(`http://127.0.0.1:${port}/health`);
    expect(health.status).toBe(200);
    // The answer, or a connection that was closed on a body nobody wants.
    const status = await upload.then(
      (answer) => answer.status,
      () => 413,
    );
    expect(status).toBe(413);
  });
});
