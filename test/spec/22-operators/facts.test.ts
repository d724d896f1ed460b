// §22.4: what operators see of the gateway and of logins that failed.
import { describe, expect, test } from 'vitest';
import { startOperators } from '../../support/gateway/operators.ts';
import { type Broker, MCP } from '../../support/oauth/broker.ts';
import { REDIRECT } from '../../support/oauth/login-steps.ts';

test('§22.4 operators: limits as they are set, and whom this process refuses until when', async () => {
  const { broker, show } = await startOperators({
    MCP_RATE_LIMIT_MAX: '1',
    MCP_USER_RATE_LIMIT_MAX: '5',
  });
  const { gateway, clock } = broker;
  const call = { method: 'POST', path: '/mcp', body: {}, remoteAddress: '192.0.2.7' };
  const headers = { authorization: `Bearer ${await broker.sign({ aud: MCP })}` };
  await gateway.request({ ...call, headers });
  expect((await show('/limits')).json).toMatchObject({ enabled: true, refused: 0, refusals: [] });
  expect((await gateway.request({ ...call, headers })).status).toBe(429);
  const { json } = await show('/limits');
  expect(json.groups).toContainEqual({
    group: 'mcp',
    prefix: 'MCP',
    windowMs: 60_000,
    max: { ip: 1, user: 5, global: 10_000 },
  });
  expect(json).toMatchObject({
    refused: 1,
    refusals: [
      {
        group: 'mcp',
        by: 'address',
        caller: '192.0.2.7',
        max: 1,
        until: new Date(clock.now() + 60_000).toISOString(),
      },
    ],
  });
  clock.advance(60_001);
  expect((await show('/limits')).json.refusals).toEqual([]);
});

test('§22.4 operators: the keys in use, when they were fetched, and when they will be', async () => {
  const { broker, show } = await startOperators();
  const { issuer } = broker.gateway;
  const { json, text } = await show('/key-set');
  expect(json).toMatchObject({
    issuer: issuer.url,
    url: expect.stringContaining(issuer.url),
    fetchedAt: new Date(broker.clock.now()).toISOString(),
    nextFetchAt: new Date(broker.clock.now() + 600_000).toISOString(),
  });
  expect(json.problem).toBeUndefined();
  expect(json.keys.map(({ kid }: { kid: string }) => kid)).toEqual(
    issuer.keys.map(({ kid }) => kid),
  );
  expect(json.keys[0].algorithms.length).toBeGreaterThan(0);
  expect(text).not.toMatch(/"[nx]":/);
});

test('§22.4 operators: a key set that cannot be fetched any more says why', async () => {
  const { broker, show } = await startOperators();
  await show('/key-set');
  broker.gateway.issuer.behave('error');
  broker.clock.advance(600_001);
  await expect.poll(async () => (await show('/key-set')).json.problem).toMatch(/answered 5\d\d/);
  expect((await show('/key-set')).json.keys.length).toBeGreaterThan(0);
});

test('§22.4 operators: the store says what it is, and how quickly it answers', async () => {
  const { show } = await startOperators();
  expect((await show('/store')).json).toEqual({
    isUp: true,
    driver: 'embedded',
    bytes: expect.any(Number),
    latencyMs: expect.any(Number),
  });
});

test('§22.4 operators: a store that does not answer says why', async () => {
  const { broker, show } = await startOperators();
  await broker.store.close();
  const answer = await show('/store');
  expect(answer.status).toBe(200);
  expect(answer.json).toEqual({ isUp: false, problem: expect.stringContaining('closed') });
  expect((await show('/sessions')).status).toBe(500);
});

test('§22.4 operators: without servers behind the gateway there are none', async () => {
  const { show } = await startOperators();
  expect((await show('/servers')).json).toEqual({ servers: [] });
});

describe('logins that failed', () => {
  test.each([
    ['iat', { iat: 32_503_680_000 }, /clock/],
    ['exp', { exp: 1 }, /clock/],
    ['iss', { iss: 'https://other.example' }, /OIDC_ISSUER/],
    ['aud', { aud: 'other-client' }, /OAUTH_CLIENT_ID/],
    ['sub', { sub: '' }, /^Change what the message names/],
  ])(
    '§22.4 operators: an ID token with a wrong %s has the remedy of that claim',
    async (_member, claims, remedy) => {
      const { broker, show } = await startOperators();
      broker.answerLogins(claims);
      await broker.steps.logIn(await broker.steps.register());
      await expect
        .poll(async () => (await failuresOf(show))[0])
        .toMatchObject({
          error: 'unusable_id_token',
          remedy: expect.stringMatching(remedy),
        });
    },
  );

  const failuresOf = async (show: (path: string) => Promise<{ json: { failures: object[] } }>) =>
    (await show('/login-failures')).json.failures;

  test('§22.4 operators: each says when, which step, by whom, why, and what to do; never a secret', async () => {
    const { broker, show } = await startOperators();
    const { steps, gateway, clock } = broker;
    await gateway.request({ method: 'POST', path: '/oauth/register', body: { redirect_uris: [] } });
    const client = await steps.register();
    await steps.authorize(client, { redirect_uri: 'https://evil.example/' });
    broker.answer(400, { error: 'invalid_grant', error_description: 'too late' });
    await steps.logIn(client);
    await steps.redeem({ ...client, id: 'svc-AAAAAAAAAAAA' }, new URL(`${REDIRECT}?code=c`));
    await gateway.rpc({}, { token: await broker.sign({ aud: 'https://other.example' }) });
    await expect.poll(async () => (await failuresOf(show)).length).toBe(5);
    const time = new Date(clock.now()).toISOString();
    const common = { time, ip: '127.0.0.1' };
    const failures = await failuresOf(show);
    expect(failures).toEqual(
      expect.arrayContaining([
        {
          ...common,
          step: 'register',
          error: 'invalid_client_metadata',
          message: expect.stringContaining('redirect_uris'),
          remedy: expect.stringContaining('Update the client'),
        },
        {
          ...common,
          step: 'authorize',
          client: client.id,
          error: 'unregistered_redirect_uri',
          message: expect.any(String),
          remedy: expect.stringContaining('than it registered'),
        },
        {
          ...common,
          step: 'callback',
          client: client.id,
          error: 'upstream_failed',
          message: expect.stringContaining('too late'),
          remedy: expect.any(String),
        },
        {
          ...common,
          step: 'token',
          client: 'svc-AAAAAAAAAAAA',
          error: 'unauthenticated_client',
          message: expect.any(String),
          remedy: expect.stringContaining('add it again'),
        },
        {
          ...common,
          step: 'call',
          error: 'invalid_audience',
          message: expect.stringContaining('https://other.example'),
          remedy: expect.stringContaining('OIDC_AUDIENCE'),
        },
      ]),
    );
    const text = JSON.stringify(failures);
    for (const secret of ['provider-code', client.verifier]) {
      expect(text).not.toContain(secret);
    }
  });

  test('§22.4 operators: what succeeds is none, nor a call without a valid signature', async () => {
    const { broker, show } = await startOperators();
    const { steps, gateway } = broker;
    await broker.logIn(await steps.register());
    await gateway.request({ method: 'POST', path: '/mcp', body: {} });
    await gateway.rpc({}, { token: 'a.b.c' });
    await gateway.rpc({}, { token: await broker.sign({ exp: 1 }) });
    // The one that is written last tells that nothing was written before it.
    await steps.authorize({ id: 'svc-AAAAAAAAAAAA', verifier: 'v', challenge: 'c' });
    await expect.poll(() => failuresOf(show)).toMatchObject([{ error: 'unknown_client' }]);
  });

  test('§22.4 operators: the same failure again and again is one in a minute', async () => {
    const { broker, show } = await startOperators();
    const unknown = { id: 'svc-AAAAAAAAAAAA', verifier: 'v', challenge: 'c' };
    for (let at = 0; at < 5; at += 1) await broker.steps.authorize(unknown);
    broker.clock.advance(60_001);
    await broker.steps.authorize(unknown);
    await expect.poll(async () => (await failuresOf(show)).length).toBe(2);
  });

  const fail = (broker: Broker, id: string, remoteAddress: string) =>
    broker.gateway.request({ path: `/oauth/authorize?client_id=${id}`, remoteAddress });

  test('§22.4 operators: a flood fills no store: thirty in a minute, a hundred in all', async () => {
    const { broker, show } = await startOperators();
    for (let minute = 0; minute < 4; minute += 1) {
      for (let at = 0; at < 35; at += 1) {
        await fail(broker, `nobody-${minute}-${at}`, `192.0.2.${at}`);
      }
      broker.clock.advance(60_001);
    }
    await expect
      .poll(async () => JSON.stringify((await failuresOf(show))[0]))
      .toContain('nobody-3-29');
    expect(await failuresOf(show)).toHaveLength(100);
  });

  test('§22.4 operators: one address, or one site of IPv6, pushes nobody out: twenty in an hour', async () => {
    const { broker, show } = await startOperators();
    await fail(broker, 'somebody', '192.0.2.1');
    for (let minute = 0; minute < 6; minute += 1) {
      for (let at = 0; at < 25; at += 1) {
        await fail(broker, `nobody-${minute}-${at}`, `2001:db8::${minute}:${at}`);
      }
      broker.clock.advance(60_001);
    }
    await fail(broker, 'somebody-else', '192.0.2.2');
    await expect
      .poll(async () => JSON.stringify((await failuresOf(show))[0]))
      .toContain('somebody-else');
    const failures = await failuresOf(show);
    expect(failures).toHaveLength(1 + 20 + 1);
    expect(JSON.stringify(failures.at(-1))).toContain('somebody');

    broker.clock.advance(3_600_000);
    await fail(broker, 'nobody', '2001:db8::1');
    await expect.poll(async () => (await failuresOf(show)).length).toBe(23);
  });

  test('§22.4 operators: a client ID of any length is cut', async () => {
    const { broker, show } = await startOperators();
    await broker.steps.authorize({ id: 'x'.repeat(5000), verifier: 'v', challenge: 'c' });
    await expect.poll(async () => (await failuresOf(show)).length).toBe(1);
    expect(JSON.stringify(await failuresOf(show)).length).toBeLessThan(2000);
  });
});
