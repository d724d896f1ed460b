import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startUpstream } from '../../support/oauth/upstream.ts';

const REDIRECT = 'https://client.example/cb';
const upstream = useShared(startUpstream);
const gateway = useGateway(() => ({
  env: {
    OAUTH_TOKEN_URL: `${upstream.url}/token?tenant=1`,
    OAUTH_REVOCATION_URL: `${upstream.url}/revoke`,
    OAUTH_CLIENT_ID: 'static-client',
    OAUTH_CLIENT_SECRET: 's3cret/&=',
  },
}));
let svc: string;
beforeAll(async () => {
  svc = await registerAt(gateway);
});
beforeEach(() => upstream.answer((res) => void res.end('{}')));

async function registerAt(at: TestGateway): Promise<string> {
  const body = { redirect_uris: [REDIRECT] };
  return (await at.request({ method: 'POST', path: '/oauth/register', body })).json.client_id;
}

type Fields = Readonly<Record<string, string | undefined>>;
const present = (fields: Fields): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );

const codeGrant = (change: Fields = {}) =>
  present({
    grant_type: 'authorization_code',
    code: 'c0de',
    redirect_uri: REDIRECT,
    client_id: svc,
    code_verifier: 'verifier-verifier-verifier-verifier-verifier',
    ...change,
  });
const refreshGrant = (change: Fields = {}) =>
  present({ grant_type: 'refresh_token', refresh_token: 'r3fresh', client_id: svc, ...change });

const post = (path: string, body: unknown, headers = {}, at = gateway) =>
  at.request({ method: 'POST', path, body, headers });
const token = (body: unknown, headers = {}, at = gateway) =>
  post('/oauth/token', body, headers, at);
const form = (fields: Record<string, string>) => new URLSearchParams(fields);
const last = () => upstream.received.at(-1);

describe('the token endpoint', () => {
  test.each([
    { how: 'a form', body: () => form(codeGrant({ resource: 'https://a.example' })) },
    { how: 'JSON', body: () => codeGrant({ resource: 'https://a.example' }) },
  ])('§4.7 a code by $how goes upstream as a form with the static client', async ({ body }) => {
    const answer = { access_token: 'a.b.c', token_type: 'Bearer', expires_in: 60, extra: [] };
    upstream.answer((res) =>
      res
        .writeHead(200, {
          'content-type': 'application/json;charset=UTF-8',
          'x-internal': '1',
          'set-cookie': 'a=b',
        })
        .end(JSON.stringify(answer)),
    );
    const reply = await token(body(), { cookie: 'session=1', 'x-custom': 'y' });
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual(answer);
    expect(reply.headers['content-type']).toBe('application/json;charset=UTF-8');
    expect(reply.headers['cache-control']).toBe('no-store');
    expect(reply.headers['set-cookie']).toBeUndefined();
    expect(reply.headers['x-internal']).toBeUndefined();
    const sent = last();
    expect(sent?.path).toBe('/token?tenant=1');
    expect(sent?.method).toBe('POST');
    expect(sent?.headers['content-type']).toBe('application/x-www-form-urlencoded');
    expect(sent?.headers.cookie).toBeUndefined();
    expect(sent?.headers['x-custom']).toBeUndefined();
    expect(Object.fromEntries(sent?.form ?? [])).toEqual({
      ...codeGrant({ resource: 'https://a.example' }),
      client_id: 'static-client',
      client_secret: 's3cret/&=',
    });
  });

  test('§4.7 a refresh token goes upstream likewise', async () => {
    await token(form(refreshGrant({ scope: 'openid' })));
    expect(Object.fromEntries(last()?.form ?? [])).toEqual({
      ...refreshGrant({ scope: 'openid' }),
      client_id: 'static-client',
      client_secret: 's3cret/&=',
    });
  });

  test('§4.7 a svc- client’s own credentials are dropped', async () => {
    await token(
      form(codeGrant({ client_secret: 'mine', client_assertion: 'x', client_assertion_type: 'y' })),
      { authorization: 'Basic bWluZTptaW5l' },
    );
    expect(last()?.form.getAll('client_secret')).toEqual(['s3cret/&=']);
    expect(last()?.form.has('client_assertion')).toBe(false);
    expect(last()?.headers.authorization).toBeUndefined();
  });

  test('§4.7 another client goes on as it came, with its Basic header and never our secret', async () => {
    const fields = codeGrant({ client_id: 'my-app', client_secret: 'own' });
    await token(form(fields), { authorization: 'Basic bWluZTptaW5l' });
    expect(Object.fromEntries(last()?.form ?? [])).toEqual(fields);
    expect(last()?.headers.authorization).toBe('Basic bWluZTptaW5l');
  });

  test('§4.7 the static client named by the caller itself does not get its secret', async () => {
    await token(form(codeGrant({ client_id: 'static-client' })), { authorization: 'Bearer x' });
    expect(last()?.form.has('client_secret')).toBe(false);
    expect(last()?.headers.authorization).toBeUndefined();
  });

  test('§4.7 with OAUTH_CLIENT_AUTH=basic the secret goes into the header, form-encoded', async () => {
    const basic = await startGateway({
      env: {
        OAUTH_TOKEN_URL: `${upstream.url}/token`,
        OAUTH_CLIENT_ID: 'static client',
        OAUTH_CLIENT_SECRET: 's3cret/&=',
        OAUTH_CLIENT_AUTH: 'basic',
      },
    });
    try {
      await token(form(codeGrant({ client_id: await registerAt(basic) })), {}, basic);
      const expected = Buffer.from('static+client:s3cret%2F%26%3D').toString('base64');
      expect(last()?.headers.authorization).toBe(`Basic ${expected}`);
      expect(last()?.form.has('client_secret')).toBe(false);
      expect(last()?.form.get('client_id')).toBe('static client');
    } finally {
      await basic.close();
    }
  });

  test.each([
    { status: 400, type: 'application/json', body: '{"error":"invalid_grant"}' },
    { status: 401, type: 'application/json', body: '{"error":"invalid_client"}' },
    { status: 500, type: 'text/html', body: '<h1>broken</h1>' },
    { status: 200, type: 'application/json', body: '' },
  ])(
    '§4.7 upstream’s $status, body and type come back unchanged',
    async ({ status, type, body }) => {
      upstream.answer((res) => res.writeHead(status, { 'content-type': type }).end(body));
      const reply = await token(form(codeGrant()));
      expect(reply.status).toBe(status);
      expect(reply.text).toBe(body);
      expect(reply.headers['content-type']).toBe(type);
      expect(reply.headers['cache-control']).toBe('no-store');
    },
  );

  test.each([
    {
      what: 'no grant_type',
      body: () => codeGrant({ grant_type: undefined }),
      status: 400,
      error: 'invalid_request',
      names: 'grant_type',
    },
    {
      what: 'an empty grant_type',
      body: () => codeGrant({ grant_type: '' }),
      status: 400,
      error: 'invalid_request',
      names: 'grant_type',
    },
    {
      what: 'grant_type password',
      body: () => codeGrant({ grant_type: 'password' }),
      status: 400,
      error: 'unsupported_grant_type',
      names: '',
    },
    {
      what: 'grant_type client_credentials',
      body: () => ({ grant_type: 'client_credentials' }),
      status: 400,
      error: 'unsupported_grant_type',
      names: '',
    },
    {
      what: 'grant_type constructor',
      body: () => ({ grant_type: 'constructor' }),
      status: 400,
      error: 'unsupported_grant_type',
      names: '',
    },
    ...['code', 'redirect_uri', 'client_id', 'code_verifier'].map((name) => ({
      what: `no ${name}`,
      body: () => codeGrant({ [name]: undefined }),
      status: 400,
      error: 'invalid_request',
      names: name,
    })),
    ...['refresh_token', 'client_id'].map((name) => ({
      what: `a refresh without ${name}`,
      body: () => refreshGrant({ [name]: undefined }),
      status: 400,
      error: 'invalid_request',
      names: name,
    })),
    {
      what: 'a foreign redirect_uri',
      body: () => codeGrant({ redirect_uri: 'https://evil.example/' }),
      status: 400,
      error: 'invalid_grant',
      names: '',
    },
    {
      what: 'an unknown client',
      body: () => codeGrant({ client_id: 'svc-AAAAAAAAAAAA' }),
      status: 401,
      error: 'invalid_client',
      names: '',
    },
    {
      what: 'an unknown client’s refresh',
      body: () => refreshGrant({ client_id: 'svc-AAAAAAAAAAAA' }),
      status: 401,
      error: 'invalid_client',
      names: '',
    },
    {
      what: 'a client id that never was one',
      body: () => refreshGrant({ client_id: 'svc-../../x' }),
      status: 401,
      error: 'invalid_client',
      names: '',
    },
  ])('§7.3 token with $what: $status $error, nothing goes upstream', async (row) => {
    const before = upstream.received.length;
    for (const body of [form(row.body() as Record<string, string>), row.body()]) {
      const { status, json } = await token(body);
      expect(status).toBe(row.status);
      expect(json.error).toBe(row.error);
      expect(json.error_description).toContain(row.names);
    }
    expect(upstream.received.length).toBe(before);
  });

  test.each([
    {
      what: 'a parameter given twice',
      body: 'grant_type=refresh_token&client_id=a&client_id=b&refresh_token=x',
      type: 'application/x-www-form-urlencoded',
      status: 400,
    },
    {
      what: 'a JSON member that is no string',
      body: '{"grant_type":["authorization_code"]}',
      type: 'application/json',
      status: 400,
    },
    {
      what: 'a JSON member given twice',
      body: JSON.stringify(codeGrant()).replace('{', '{"redirect_uri":"https://evil.example",'),
      type: 'application/json',
      status: 400,
    },
    {
      what: 'a JSON member given twice, spelled otherwise',
      body: JSON.stringify(codeGrant()).replace('{', '{"c\\u006fde":"\\"","'.slice(0, -1)),
      type: 'application/json',
      status: 400,
    },
    {
      what: 'more than 100 parameters',
      body: Array.from({ length: 101 }, (_, at) => `p${at}=`).join('&'),
      type: 'application/x-www-form-urlencoded',
      status: 400,
    },
    { what: 'a JSON array', body: '[]', type: 'application/json', status: 400 },
    { what: 'broken JSON', body: '{', type: 'application/json', status: 400 },
    { what: 'no JSON at all', body: '\u{fffd}', type: 'application/json', status: 400 },
    { what: 'another content type', body: 'x', type: 'text/plain', status: 415 },
    {
      what: 'a body too large',
      body: `code=${'x'.repeat(70_000)}`,
      type: 'application/x-www-form-urlencoded',
      status: 413,
    },
  ])('§7.3 token with $what: $status invalid_request', async ({ body, type, status }) => {
    const before = upstream.received.length;
    const reply = await token(body, { 'content-type': type });
    expect(reply.status).toBe(status);
    expect(reply.json.error).toBe('invalid_request');
    expect(upstream.received.length).toBe(before);
  });

  test.each([
    {
      what: 'closes the connection',
      respond: (res: import('node:http').ServerResponse) => void res.destroy(),
    },
    {
      what: 'redirects',
      respond: (res: import('node:http').ServerResponse) =>
        void res.writeHead(302, { location: '/elsewhere' }).end(),
    },
    {
      what: 'answers more than 1 MiB',
      respond: (res: import('node:http').ServerResponse) => void res.end('x'.repeat(1_100_000)),
    },
  ])('§7.3 an upstream that $what: 502 server_error', async ({ respond }) => {
    upstream.answer(respond);
    const { status, json, headers } = await token(form(codeGrant()));
    expect(status).toBe(502);
    expect(json).toEqual({ error: 'server_error', error_description: expect.any(String) });
    expect(headers.location).toBeUndefined();
    expect(last()?.path).not.toBe('/elsewhere');
  });

  test('§7.3 no token URL: 500 server_error, after the checks of the request', async () => {
    const bare = await startGateway();
    try {
      const id = await registerAt(bare);
      const { status, json } = await token(form(codeGrant({ client_id: id })), {}, bare);
      expect(status).toBe(500);
      expect(json.error_description).toContain('OAUTH_TOKEN_URL');
      expect((await token(form({ grant_type: 'x' }), {}, bare)).status).toBe(400);
    } finally {
      await bare.close();
    }
  });

  test('§7.3 no static client for a svc- client: 500 server_error', async () => {
    const half = await startGateway({ env: { OAUTH_TOKEN_URL: `${upstream.url}/token` } });
    try {
      const id = await registerAt(half);
      const { status, json } = await token(form(refreshGrant({ client_id: id })), {}, half);
      expect(status).toBe(500);
      expect(json.error_description).toContain('OAUTH_CLIENT_ID');
    } finally {
      await half.close();
    }
  });

  test.each([
    { error: 'invalid_client', level: 'warn', says: 'OAUTH_CLIENT_SECRET' },
    { error: 'invalid_grant', level: 'info', says: 'invalid_grant' },
  ])('§4.7 the log says that the provider answers $error, without secrets', async (row) => {
    const body = { error: row.error, error_description: 'bad r3fresh or s3cret/&=' };
    upstream.answer((res) => void res.writeHead(400).end(JSON.stringify(body)));
    expect((await token(form(refreshGrant()))).json).toEqual(body);
    const line = gateway.log.at(-1);
    expect(line).toMatchObject({ level: row.level, status: 400, path: '/oauth/token' });
    expect(line?.details).toContain(row.says);
    expect(line?.details).toContain('bad … or …');
  });

  test('§4.7 no code, verifier, token or secret gets into the log', async () => {
    upstream.answer((res) => res.writeHead(400).end('{"error":"invalid_grant"}'));
    await token(form(codeGrant()));
    await token(form(refreshGrant({ client_id: 'svc-AAAAAAAAAAAA' })));
    upstream.answer((res) => void res.destroy());
    await token(form(codeGrant()));
    const text = JSON.stringify(gateway.log);
    for (const secret of ['c0de', 'verifier-verifier', 'r3fresh', 's3cret']) {
      expect(text).not.toContain(secret);
    }
  });
});

describe('the revocation endpoint', () => {
  test.each([
    {
      how: 'a form',
      body: () => form({ token: 'r3fresh', token_type_hint: 'refresh_token', client_id: svc }),
    },
    {
      how: 'JSON',
      body: () => ({ token: 'r3fresh', token_type_hint: 'refresh_token', client_id: svc }),
    },
  ])('§4.1 revocation by $how is forwarded with the static client', async ({ body }) => {
    upstream.answer((res) => res.writeHead(200).end());
    const reply = await post('/oauth/revoke', body());
    expect(reply.status).toBe(200);
    expect(last()?.path).toBe('/revoke');
    expect(Object.fromEntries(last()?.form ?? [])).toEqual({
      token: 'r3fresh',
      token_type_hint: 'refresh_token',
      client_id: 'static-client',
      client_secret: 's3cret/&=',
    });
  });

  test('§4.1 revoke without token: 400; unknown client: 401; network failure: 502', async () => {
    const missing = await post('/oauth/revoke', form({ client_id: svc }));
    expect([missing.status, missing.json.error]).toEqual([400, 'invalid_request']);
    const unknown = await post(
      '/oauth/revoke',
      form({ token: 'x', client_id: 'svc-AAAAAAAAAAAA' }),
    );
    expect([unknown.status, unknown.json.error]).toEqual([401, 'invalid_client']);
    upstream.answer((res) => void res.destroy());
    const failed = await post('/oauth/revoke', form({ token: 'x', client_id: svc }));
    expect([failed.status, failed.json.error]).toEqual([502, 'server_error']);
  });

  test('§4.1 revoke without a revocation URL: 500 server_error', async () => {
    const bare = await startGateway();
    try {
      const { status, json } = await post('/oauth/revoke', form({ token: 'x' }), {}, bare);
      expect(status).toBe(500);
      expect(json.error_description).toContain('OAUTH_REVOCATION_URL');
    } finally {
      await bare.close();
    }
  });
});
