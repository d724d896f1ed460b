// A service that goes from proxy to broker mode: its users log in once more, and nothing else is lost.
import { expect, test } from 'vitest';
import { connect, createMemory, spoil } from '../support/clients/sdk-1-client.ts';
import { startService } from '../support/gateway/service.ts';
import { useFresh } from '../support/lifetimes.ts';

const service = useFresh(startService);

test('§4.7 broker: official client 1.x logs in once more after the switch, by the registration that it has', async () => {
  const memory = createMemory();
  await connect(service.mcpUrl, memory);
  await service.restart({ OAUTH_MODE: 'broker' });
  for (let turn = 0; turn < 2; turn += 1) {
    spoil(memory);
    const { client } = await connect(service.mcpUrl, memory);
    await expect(client.ping()).resolves.toEqual({});
  }
  expect(memory.saved.authorizations).toHaveLength(2);
  expect(memory.saved.clients).toHaveLength(1);
});

test('§3.1 broker: where tokens of the provider are accepted, a session from proxy mode goes on with the one from before', async () => {
  const { client } = await connect(service.mcpUrl, createMemory());
  await service.restart({
    OAUTH_MODE: 'broker',
    OAUTH_ACCEPT_PROVIDER_TOKENS: 'true',
    OIDC_AUDIENCE: ['', '/', '/mcp'].map((path) => service.baseUrl + path).join(),
  });
  await expect(client.ping()).resolves.toEqual({});
});
