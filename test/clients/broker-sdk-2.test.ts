import {
  Client,
  IssuerMismatchError,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { spoil } from '../support/clients/sdk-1-client.ts';
import { connect, createMemory } from '../support/clients/sdk-2-client.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { createHttpRequest } from '../support/gateway/http-request.ts';
import { type Service, type ServiceOptions, startService } from '../support/gateway/service.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { createLoginSteps, questionOf } from '../support/oauth/login-steps.ts';

const MINUTE_MS = 60_000;

let service: Service;

const start = async (options?: Omit<ServiceOptions, 'mode'>) => {
  service = closeAfterTest(await startService({ mode: 'broker', ...options }));
  return service;
};

test('§4.6 broker: official client 2.x accepts the issuer and goes the whole way', async () => {
  const { mcpUrl, baseUrl } = await start();
  const memory = createMemory();
  const came: (string | null)[] = [];
  const { client, transport } = await connect(mcpUrl, memory, (query) => {
    came.push(query.get('iss'));
  });

  // RFC 9207: compared by the client with the issuer of the metadata.
  expect(came).toEqual([baseUrl]);
  expect(memory.saved.clients).toEqual([
    expect.objectContaining({
      client_id: expect.stringMatching(/^svc-[A-Za-z0-9]{12}$/),
      issuer: baseUrl,
    }),
  ]);
  expect(memory.saved.tokens).toEqual([expect.objectContaining({ issuer: baseUrl })]);
  expect(memory.saved.tokens[0]).not.toHaveProperty('id_token');

  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toContain('service_ping');
  const pong = await client.callTool({ name: 'service_ping', arguments: { message: 'hi' } });
  expect(pong.content).toEqual([{ type: 'text', text: 'Postern MCP Server: hi' }]);
  const { messages } = await client.getPrompt({ name: 'user-context' });
  expect(JSON.stringify(messages)).toContain('ada');

  expect(transport.sessionId).toMatch(/^[0-9a-f-]{36}$/);
  await transport.terminateSession();
  expect(transport.sessionId).toBeUndefined();
});

test.each([
  ['another iss', (query: URLSearchParams) => query.set('iss', 'https://evil.example')],
  ["the provider's iss", (query: URLSearchParams) => query.set('iss', service.issuer)],
  ['no iss', (query: URLSearchParams) => query.delete('iss')],
])(
  '§4.6 broker: official client 2.x refuses a callback with %s, so ours is what it needs',
  async (_name, change) => {
    const { mcpUrl } = await start();
    const memory = createMemory();
    const refusal = await connect(mcpUrl, memory, change).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(IssuerMismatchError);
    expect(memory.saved.tokens).toEqual([]);
  },
);

test('§4.7 broker: official client 2.x refreshes an expired token by itself and keeps its session', async () => {
  const clock = manualClock();
  const { mcpUrl } = await start({ deps: { clock }, env: { OAUTH_ACCESS_TTL_SECONDS: '600' } });
  const memory = createMemory();
  const { client, transport } = await connect(mcpUrl, memory);
  const session = transport.sessionId;

  clock.advance(600_000);
  await expect(client.ping()).resolves.toEqual({});
  expect(memory.saved.tokens).toHaveLength(2);

  expect(transport.sessionId).toBe(session);
  expect(memory.saved.authorizations).toHaveLength(1);
});

test('§4.7 broker: official client 2.x that refreshes from many calls at once stays logged in', async () => {
  const { mcpUrl } = await start();
  const memory = createMemory();
  const { client } = await connect(mcpUrl, memory);

  for (let turn = 0; turn < 3; turn += 1) {
    spoil(memory);
    const calls = Array.from({ length: 5 }, () => client.ping());
    await expect(Promise.all(calls)).resolves.toEqual(Array(5).fill({}));
  }
  expect(memory.saved.authorizations).toHaveLength(1);
});

test('§3.2 broker: official client 2.x registers and logs in anew when its registration has expired', async () => {
  const clock = manualClock();
  const { mcpUrl } = await start({ deps: { clock }, env: { DCR_CLIENT_TTL: '1200' } });
  const memory = createMemory();
  const { client } = await connect(mcpUrl, memory);

  clock.advance(20 * MINUTE_MS);
  spoil(memory);
  await expect(client.ping()).rejects.toThrow(UnauthorizedError);
  const again = await connect(mcpUrl, memory);
  await expect(again.client.ping()).resolves.toEqual({});

  const ids = memory.saved.clients.map(({ client_id }) => client_id);
  expect(ids).toHaveLength(2);
  expect(new Set(ids).size).toBe(2);
});

test('§4.6 broker: official client 2.x is told when the user denies it', async () => {
  const { mcpUrl, baseUrl } = await start();
  const memory = createMemory();
  const transport = new StreamableHTTPClientTransport(mcpUrl, { authProvider: memory });
  const client = new Client({ name: 'test', version: '1' });
  await expect(client.connect(transport)).rejects.toThrow(UnauthorizedError);

  const steps = createLoginSteps({ request: createHttpRequest(baseUrl) });
  const [{ pathname, search } = new URL(baseUrl)] = memory.saved.authorizations;
  const question = questionOf(await steps.get(`${pathname}${search}`));
  const denied = await steps.decide(question, 'deny');
  const { searchParams } = new URL(denied.headers.location ?? '');
  expect(searchParams.get('iss')).toBe(baseUrl);
  await expect(transport.finishAuth(searchParams)).rejects.toThrow('The user denied the request.');
});
