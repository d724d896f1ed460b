import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { expect, test } from 'vitest';
import { connect, createMemory } from '../support/clients/sdk-1-client.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { type Service, type ServiceOptions, startService } from '../support/gateway/service.ts';
import { closeAfterTest } from '../support/lifetimes.ts';

const DAY_MS = 86_400_000;

const start = async (options?: ServiceOptions): Promise<Service> =>
  closeAfterTest(await startService(options));

test('§1 official client 1.x: a refused call leads through discovery, registration and login to a session', async () => {
  const { mcpUrl, baseUrl } = await start();
  const memory = createMemory();
  const { client, transport } = await connect(mcpUrl, memory);

  expect(client.getServerVersion()?.name).toBe('postern');
  expect(transport.sessionId).toMatch(/^[0-9a-f-]{36}$/);
  expect(memory.saved.clients.map(({ client_id }) => client_id)).toEqual([
    expect.stringMatching(/^svc-[A-Za-z0-9]{12}$/),
  ]);
  expect(memory.saved.authorizations[0]?.href).toContain(`${baseUrl}/oauth/authorize?`);
  expect(memory.saved.tokens).toHaveLength(1);
});

test('§4.4 official client 1.x: lists and uses every tool, prompt and resource', async () => {
  const { mcpUrl } = await start();
  const { client } = await connect(mcpUrl, createMemory(), 'grace');

  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('service_ping');
  const pong = await client.callTool({ name: 'service_ping', arguments: { message: 'hello' } });
  expect(pong.content).toEqual([{ type: 'text', text: 'Postern MCP Server: hello' }]);

  const { prompts } = await client.listPrompts();
  expect(prompts.map(({ name }) => name)).toEqual(['greeting', 'user-context']);
  const greeting = await client.getPrompt({ name: 'greeting', arguments: { name: 'Ada' } });
  expect(JSON.stringify(greeting.messages)).toContain('Ada');
  // Without arguments at all, as the client sends it.
  expect((await client.getPrompt({ name: 'user-context' })).messages).toHaveLength(1);

  const { resources } = await client.listResources();
  expect(resources.map(({ uri }) => uri)).toEqual(['config://server', 'user://profile']);
  const { contents } = await client.readResource({ uri: 'user://profile' });
  const [profile] = contents;
  expect(JSON.parse(profile && 'text' in profile ? profile.text : '')).toEqual({
    sub: 'grace',
    name: 'grace',
    email: 'grace@example.com',
    groups: ['developers'],
  });
});

test('§3.1 official client 1.x: terminateSession ends the session', async () => {
  const { mcpUrl } = await start();
  const { client, transport } = await connect(mcpUrl, createMemory());

  const session = transport.sessionId;
  await transport.terminateSession();
  expect(transport.sessionId).toBeUndefined();
  expect(session).toBeDefined();
  // Without its session the client sends none.
  await expect(client.listTools()).rejects.toThrow(/missing_session_id/);
});

test.each([
  ['a public client', {}],
  ['client_secret_post', { client: { secret: 'a +/%:secret', auth: 'post' as const } }],
  ['client_secret_basic', { client: { secret: 'a +/%:secret', auth: 'basic' as const } }],
  ['a provider that sends no iss', { sendsIssuer: false }],
])('§4.7 official client 1.x: logs in through %s at the provider', async (_name, provider) => {
  const { mcpUrl } = await start({ provider });
  const { client } = await connect(mcpUrl, createMemory());
  await expect(client.ping()).resolves.toEqual({});
});

test('§4.7 official client 1.x: refreshes an expired token by itself and keeps its session', async () => {
  const { mcpUrl } = await start({
    provider: { accessTokenTtlSeconds: 3 },
    env: { OIDC_CLOCK_TOLERANCE_SECONDS: '0' },
  });
  const memory = createMemory();
  const { client, transport } = await connect(mcpUrl, memory);
  const session = transport.sessionId;

  async function callsAfterRefresh() {
    await client.ping();
    return memory.saved.tokens.length;
  }
  await expect.poll(callsAfterRefresh, { timeout: 15_000, interval: 200 }).toBeGreaterThan(1);

  expect(transport.sessionId).toBe(session);
  expect(memory.saved.authorizations).toHaveLength(1);
});

test('§4.1 official client 1.x: after revocation it has to log in again', async () => {
  const { mcpUrl, baseUrl } = await start();
  const memory = createMemory();
  const { client } = await connect(mcpUrl, memory);
  const [tokens] = memory.saved.tokens;
  const [registered] = memory.saved.clients;

  const revoked = await fetch(`${baseUrl}/oauth/revoke`, {
    method: 'POST',
    body: new URLSearchParams({
      token: tokens?.refresh_token ?? '',
      client_id: registered?.client_id ?? '',
    }),
  });
  expect(revoked.status).toBe(200);
  // §5.9: what was issued lasts until it expires.
  await expect(client.ping()).resolves.toEqual({});

  memory.saveTokens({ ...tokens, access_token: 'no longer good', token_type: 'Bearer' });
  await expect(client.ping()).rejects.toThrow(UnauthorizedError);
  expect(memory.saved.authorizations).toHaveLength(2);
});

test('§3.2 official client 1.x: registers anew when its registration has expired', async () => {
  const clock = manualClock();
  const { mcpUrl } = await start({ deps: { clock } });
  const memory = createMemory();
  const { client } = await connect(mcpUrl, memory);

  clock.sleep(31 * DAY_MS);
  await expect(client.ping()).rejects.toThrow(UnauthorizedError);

  const [first, second] = memory.saved.clients.map(({ client_id }) => client_id);
  expect(second).toMatch(/^svc-/);
  expect(second).not.toBe(first);
  expect(memory.saved.authorizations.at(-1)?.searchParams.get('client_id')).toBe(second);
});
