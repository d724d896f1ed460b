import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { expect, test } from 'vitest';
import { connect, createMemory, spoil } from '../support/clients/sdk-1-client.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { type Service, type ServiceOptions, startService } from '../support/gateway/service.ts';
import { closeAfterTest } from '../support/lifetimes.ts';

const MINUTE_MS = 60_000;
/** Calls that refresh at once. */
const CALLS = 5;

/** Its endpoints are in its discovery document. */
const DISCOVERED = { OAUTH_AUTHORIZATION_URL: '', OAUTH_TOKEN_URL: '', OAUTH_REVOCATION_URL: '' };

const start = async (options?: Omit<ServiceOptions, 'mode'>): Promise<Service> =>
  closeAfterTest(await startService({ mode: 'broker', ...options }));

test.each([
  ['a public client', {}],
  ['client_secret_post', { provider: { client: { secret: 'a +/%:secret', auth: 'post' } } }],
  ['client_secret_basic', { provider: { client: { secret: 'a +/%:secret', auth: 'basic' } } }],
  ['endpoints by discovery', { env: DISCOVERED }],
] as const)(
  '§4.6 broker: official client 1.x goes the whole way through %s at the provider',
  async (_name, options) => {
    const { mcpUrl, baseUrl } = await start(options);
    const memory = createMemory();
    const { client, transport } = await connect(mcpUrl, memory);

    const [registered] = memory.saved.clients;
    expect(registered).toMatchObject({
      client_id: expect.stringMatching(/^svc-[A-Za-z0-9]{12}$/),
      issuer: expect.stringMatching(`^${baseUrl}/?$`),
    });
    expect(memory.saved.authorizations[0]?.href).toContain(`${baseUrl}/oauth/authorize?`);
    expect(memory.saved.tokens).toEqual([
      expect.not.objectContaining({ id_token: expect.anything() }),
    ]);
    const pong = await client.callTool({ name: 'service_ping', arguments: { message: 'hello' } });
    expect(pong.content).toEqual([{ type: 'text', text: 'Postern MCP Server: hello' }]);
    const { contents } = await client.readResource({ uri: 'user://profile' });
    expect(JSON.stringify(contents)).toContain('ada@example.com');

    await transport.terminateSession();
    expect(transport.sessionId).toBeUndefined();
    await expect(client.listTools()).rejects.toThrow(/missing_session_id/);
  },
);

test('§4.7 broker: official client 1.x refreshes an expired token by itself and keeps its session', async () => {
  const clock = manualClock();
  const { mcpUrl } = await start({
    deps: { clock },
    env: { ...DISCOVERED, OAUTH_ACCESS_TTL_SECONDS: '600' },
  });
  const memory = createMemory();
  const { client, transport } = await connect(mcpUrl, memory);
  const session = transport.sessionId;

  clock.advance(600_000);
  await expect(client.ping()).resolves.toEqual({});
  expect(memory.saved.tokens).toHaveLength(2);

  expect(transport.sessionId).toBe(session);
  expect(memory.saved.authorizations).toHaveLength(1);
  const refreshTokens = memory.saved.tokens.map((tokens) => tokens.refresh_token);
  expect(new Set(refreshTokens).size).toBe(refreshTokens.length);
});

test('§4.7 broker: official client 1.x that refreshes from many calls at once stays logged in', async () => {
  const { mcpUrl } = await start();
  const memory = createMemory();
  // This client gives up a call whose first 401 comes after another call has refreshed: all get theirs before that.
  let refusals = 0;
  const waiting: (() => void)[] = [];
  const fetchTogether: typeof fetch = async (url, init) => {
    const response = await fetch(url, init);
    if (response.status === 401 && memory.saved.tokens.length > 0) {
      refusals += 1;
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        if (waiting.length === CALLS) for (const goOn of waiting.splice(0)) goOn();
      });
    }
    return response;
  };
  const { client } = await connect(mcpUrl, memory, 'ada', { fetch: fetchTogether });

  for (let turn = 1; turn <= 3; turn += 1) {
    spoil(memory);
    const calls = Array.from({ length: CALLS }, () => client.ping());
    await expect(Promise.all(calls)).resolves.toEqual(Array(CALLS).fill({}));
    expect(refusals).toBe(turn * CALLS);
  }
  expect(memory.saved.authorizations).toHaveLength(1);
});

test('§4.1 broker: official client 1.x has to log in again after revocation', async () => {
  const { mcpUrl, baseUrl } = await start({ env: DISCOVERED });
  const memory = createMemory();
  const { client } = await connect(mcpUrl, memory);
  const form = {
    token: memory.saved.tokens[0]?.refresh_token ?? '',
    client_id: memory.saved.clients[0]?.client_id ?? '',
  };

  const revoked = await fetch(`${baseUrl}/oauth/revoke`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
  expect(revoked.status).toBe(200);
  spoil(memory);
  await expect(client.ping()).rejects.toThrow(UnauthorizedError);
  expect(memory.saved.authorizations).toHaveLength(2);
});

test('§3.2 broker: official client 1.x registers and logs in anew when its registration has expired', async () => {
  const clock = manualClock();
  const { mcpUrl } = await start({
    deps: { clock },
    env: { DCR_CLIENT_TTL: '1200' },
  });
  const memory = createMemory();
  await connect(mcpUrl, memory);

  clock.advance(20 * MINUTE_MS);
  spoil(memory);
  const { client } = await connect(mcpUrl, memory);
  await expect(client.ping()).resolves.toEqual({});

  const [first, second, ...more] = memory.saved.clients.map(({ client_id }) => client_id);
  expect(second).toMatch(/^svc-/);
  expect(second).not.toBe(first);
  expect(more).toEqual([]);
  const asked = memory.saved.authorizations.map((url) => url.searchParams.get('client_id'));
  expect(asked).toEqual([first, second]);
});

test.each([
  ['true', 1],
  ['false', 2],
])(
  '§3.2 broker: with DCR_RENEW=%s a client that is in use for longer than DCR_CLIENT_TTL logs in %i times',
  async (DCR_RENEW, times) => {
    const clock = manualClock();
    const { mcpUrl } = await start({
      deps: { clock },
      env: { DCR_RENEW, DCR_CLIENT_TTL: '1200' },
    });
    const memory = createMemory();
    await connect(mcpUrl, memory);

    for (let turn = 0; turn < 2; turn += 1) {
      clock.advance(15 * MINUTE_MS);
      spoil(memory);
      const { client } = await connect(mcpUrl, memory);
      await expect(client.ping()).resolves.toEqual({});
    }
    expect(memory.saved.clients).toHaveLength(times);
    expect(memory.saved.authorizations).toHaveLength(times);
  },
);

test('§4.6 broker: a provider that promises iss and leaves it out is not believed (RFC 9207)', async () => {
  const { mcpUrl, log } = await start({ provider: { sendsIssuer: false } });
  await expect(connect(mcpUrl, createMemory())).rejects.toThrow(
    'The response came from another identity provider than the one that was asked.',
  );
  expect(log).toContainEqual(expect.objectContaining({ path: '/oauth/callback', status: 400 }));
});
