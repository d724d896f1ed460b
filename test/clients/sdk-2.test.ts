import {
  Client,
  IssuerMismatchError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { createMemory } from '../support/clients/sdk-1-client.ts';
import { startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';

const service = useShared(startService);

const newClient = () => new Client({ name: 'test', version: '1' });

test("§4.10 official client 2.x: refuses the provider's issuer before it registers (RFC 8414 §3.3)", async () => {
  const memory = createMemory();
  const transport = new StreamableHTTPClientTransport(service.mcpUrl, { authProvider: memory });

  // The documented limit of the spec's `issuer`.
  const refusal = await newClient()
    .connect(transport)
    .catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(IssuerMismatchError);
  expect(refusal).toMatchObject({ kind: 'metadata', received: service.issuer });
  expect(memory.saved.clients).toEqual([]);
  expect(memory.saved.authorizations).toEqual([]);
});

test.each([
  ['its default', {}],
  ['automatic version negotiation', { versionNegotiation: { mode: 'auto' as const } }],
])(
  '§4.4 official client 2.x: with a token at hand and %s it uses everything',
  async (_name, options) => {
    const { accessToken } = await service.logIn('grace');
    const client = new Client({ name: 'test', version: '1' }, options);
    const transport = new StreamableHTTPClientTransport(service.mcpUrl, {
      requestInit: { headers: { authorization: `Bearer ${accessToken}` } },
    });
    await client.connect(transport);

    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('service_ping');
    const { content } = await client.callTool({
      name: 'service_ping',
      arguments: { message: 'hi' },
    });
    expect(content).toEqual([{ type: 'text', text: 'Postern MCP Server: hi' }]);
    const { messages } = await client.getPrompt({ name: 'user-context' });
    expect(JSON.stringify(messages)).toContain('grace');
    const { contents } = await client.readResource({ uri: 'config://server' });
    expect(contents).toHaveLength(1);
    await client.close();
  },
);
