// §18.6 through a whole gateway: what reaches a server of the caller, and where it finds the keys.
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose';
import { describe, expect, test } from 'vitest';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { INITIALIZE_REQUEST, startGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import { startUpstream } from '../../support/oauth/upstream.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';
import { buildTool, startListingServer } from '../../support/upstreams/listing-server.ts';
import { startRecorder } from '../../support/upstreams/recorder.ts';

const AUDIENCE = 'https://wiki.example';
const JWKS = { path: '/.well-known/jwks.json' };

/** A server that writes down what reaches it, and a token endpoint of the provider. */
const world = useFresh(async () => {
  const wiki = await startListingServer({
    tools: [buildTool('search')],
    prompts: [{ name: 'greet' }],
    resources: [{ uri: 'wiki://start', name: 'start' }],
  });
  const recorder = await startRecorder(wiki.url);
  const provider = await startUpstream();
  provider.answer((res) =>
    res.end('{"access_token":"exchanged","token_type":"Bearer","expires_in":300}'),
  );
  return {
    recorder,
    provider,
    async close() {
      await recorder.close();
      await wiki.close();
      await provider.close();
    },
  };
});

const fileOf = (auth?: object) =>
  readFile({
    mcpServers: {
      wiki: { url: world.recorder.url, headers: { 'X-Team': 'docs' }, ...(auth && { auth }) },
    },
  });

const startWith = async (auth?: object) =>
  closeAfterTest(
    await startGateway({
      deps: { file: await fileOf(auth) },
      env: {
        OAUTH_TOKEN_URL: `${world.provider.url}/token`,
        OAUTH_CLIENT_ID: 'gateway',
        OAUTH_CLIENT_SECRET: 'secret',
      },
    }),
  );

/** What a caller sends beside its message, each recognizable. */
const CALLERS_OWN = {
  cookie: 'session=cookie-of-the-caller',
  'proxy-authorization': 'Basic proxy-of-the-caller',
  'x-forwarded-for': '203.0.113.7',
  forwarded: 'for=203.0.113.7',
  'x-api-key': 'key-of-the-caller',
  te: 'trailers-of-the-caller',
};

/** Uses the server as clients of both eras do, and resolves to the caller's token. */
async function useServer(gateway: Awaited<ReturnType<typeof startGateway>>): Promise<string> {
  const token = await gateway.issuer.sign({
    sub: 'ada',
    email: 'ada@example.com',
    aud: [`${gateway.baseUrl}/mcp`, AUDIENCE],
  });
  const send = async (sent: object, own: object = {}) => {
    const { status, headers: answered } = await gateway.rpc(sent, {
      token,
      headers: { ...CALLERS_OWN, ...own },
    });
    return { status, session: answered['mcp-session-id'] };
  };
  const { session } = await send(INITIALIZE_REQUEST);
  for (const [method, params] of [
    ['tools/list', {}],
    ['tools/call', { name: 'wiki__search', arguments: {} }],
    ['prompts/get', { name: 'wiki__greet' }],
    ['resources/read', { uri: 'wiki://start' }],
  ]) {
    const message = { jsonrpc: '2.0', id: 1, method, params };
    expect(await send(message, { 'mcp-session-id': session })).toMatchObject({ status: 200 });
  }
  const { message, headers } = statelessRequest('tools/call', {
    name: 'wiki__search',
    arguments: {},
  });
  expect(await send(message, headers)).toMatchObject({ status: 200 });
  await gateway.request({
    method: 'DELETE',
    path: '/mcp',
    headers: {
      ...CALLERS_OWN,
      authorization: `Bearer ${token}`,
      'mcp-session-id': session ?? '',
    },
  });
  return token;
}

const authorizations = () => [
  ...new Set(world.recorder.received.map(({ headers }) => headers.authorization)),
];

/** All that reached the server, and the provider, as text. */
const everything = () => JSON.stringify(world.recorder.received);

describe('what reaches a server', () => {
  test.each([
    { what: 'no auth', auth: undefined },
    { what: 'identity', auth: { type: 'identity' } },
    { what: 'token-exchange', auth: { type: 'token-exchange', audience: AUDIENCE } },
  ])(
    "§18.6 $what: never the caller's token, a cookie or another header of the caller",
    async ({ auth }) => {
      const gateway = await startWith(auth);
      const token = await useServer(gateway);
      const calls = world.recorder.received.filter(({ body }) => body.includes('"tools/call"'));
      expect(calls).toHaveLength(2);
      const [header, payload, signature] = token.split('.');
      for (const secret of [
        ...Object.values(CALLERS_OWN),
        ...[header, payload, signature].map((part) => `.${part}`),
        `Bearer ${header}.`,
      ]) {
        expect(everything()).not.toContain(secret);
      }
      for (const { headers } of world.recorder.received) {
        expect(headers['x-team']).toBe('docs');
        expect(Object.keys(headers)).not.toEqual(
          expect.arrayContaining([expect.stringMatching(/cookie|forwarded|api-key|proxy/)]),
        );
      }
    },
  );

  test('§18.6 without auth: no token at all', async () => {
    await useServer(await startWith());
    expect(authorizations()).toEqual([undefined]);
  });

  test("§18.6 token-exchange: the provider's token, for which it was asked once", async () => {
    const gateway = await startWith({ type: 'token-exchange', audience: AUDIENCE });
    const token = await useServer(gateway);
    expect(authorizations().filter((one) => one !== undefined)).toEqual(['Bearer exchanged']);
    for (const { body, headers } of world.recorder.received) {
      if (body.includes('"tools/call"')) expect(headers.authorization).toBe('Bearer exchanged');
    }
    expect(world.provider.received.map(({ form }) => form.get('subject_token'))).toEqual([token]);
  });

  test('§18.6 token-exchange: a refusal is an error result that the model can read', async () => {
    world.provider.answer((res) => res.writeHead(400).end('{"error":"invalid_target"}'));
    const gateway = await startWith({ type: 'token-exchange', audience: AUDIENCE });
    const { message, headers } = statelessRequest('tools/call', {
      name: 'wiki__search',
      arguments: {},
    });
    const { text } = await gateway.rpc(message, { headers });
    expect(text).not.toContain('invalid_target');
    expect(world.recorder.received.filter(({ body }) => body.includes('"tools/call"'))).toEqual([]);
    expect(gateway.log).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        server: 'wiki',
        reason: expect.stringContaining('invalid_target'),
      }),
    );
  });

  test("§18.6 forward: the caller's token, and nothing else of the caller", async () => {
    const token = await useServer(await startWith({ type: 'forward', audience: AUDIENCE }));
    expect(authorizations().filter((one) => one !== undefined)).toEqual([`Bearer ${token}`]);
    for (const secret of Object.values(CALLERS_OWN)) expect(everything()).not.toContain(secret);
  });

  test('§18.6 identity: a token that the server can check by the key set of the gateway', async () => {
    const gateway = await startWith({ type: 'identity' });
    await useServer(gateway);
    const keySet = await gateway.request(JWKS);
    expect([keySet.status, keySet.headers['cache-control']]).toEqual([200, 'public, max-age=300']);
    const calls = world.recorder.received.filter(({ body }) => body.includes('"tools/call"'));
    for (const { headers } of calls) {
      const token = headers.authorization?.replace('Bearer ', '') ?? '';
      const { payload } = await jwtVerify(token, createLocalJWKSet(keySet.json), {
        issuer: gateway.baseUrl,
        audience: world.recorder.url,
      });
      expect(payload).toMatchObject({ sub: 'ada', email: 'ada@example.com' });
    }
  });
});

test('§18.6 identity: without login a caller is anonymous, and is not taken for the gateway itself', async () => {
  const gateway = closeAfterTest(
    await startGateway({
      deps: { file: await fileOf({ type: 'identity' }) },
      env: { AUTH_REQUIRED: 'false' },
    }),
  );
  const { message, headers } = statelessRequest('tools/call', { name: 'wiki__search' });
  expect((await gateway.rpc(message, { headers })).status).toBe(200);
  const [call] = world.recorder.received.filter(({ body }) => body.includes('"tools/call"'));
  const token = call?.headers.authorization?.replace('Bearer ', '') ?? '';
  expect(decodeJwt(token)).toMatchObject({ iss: gateway.baseUrl, sub: 'anonymous' });
});

test('§18.6 identity: in broker mode the token says which client calls, though no rule asks for it', async () => {
  const file = await fileOf({ type: 'identity' });
  const broker = closeAfterTest(await startBroker({}, { file }));
  const { gateway, steps } = broker;
  const client = await steps.register();
  broker.answerLogins({ sub: 'ada' });
  const { access_token: token } = await broker.logIn(client);
  const { message, headers } = statelessRequest('tools/call', { name: 'wiki__search' });
  expect((await gateway.rpc(message, { token, headers })).status).toBe(200);
  const [call] = world.recorder.received.filter(({ body }) => body.includes('"tools/call"'));
  const sent = call?.headers.authorization?.replace('Bearer ', '') ?? '';
  expect(decodeJwt(sent)).toMatchObject({ sub: 'ada', client: client.id });
});

describe('the key set', () => {
  test('§18.6 identity: exists while a server has identity', async () => {
    const gateway = await startWith();
    const getStatus = async () => (await gateway.request(JWKS)).status;
    expect(await getStatus()).toBe(404);
    await gateway.gateway.reload({ file: await fileOf({ type: 'identity' }) });
    expect(await getStatus()).toBe(200);
    await gateway.gateway.reload({ file: await fileOf() });
    expect(await getStatus()).toBe(404);
  });

  test('§18.6 identity: without a configuration file there is none', async () => {
    const gateway = closeAfterTest(await startGateway());
    expect((await gateway.request(JWKS)).status).toBe(404);
    expect((await gateway.request({ ...JWKS, method: 'POST' })).status).toBe(404);
  });
});
