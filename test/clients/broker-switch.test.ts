// A service that goes from proxy to broker mode keeps its users logged in.
import { expect, test } from 'vitest';
import { connect, createMemory, spoil } from '../support/clients/sdk-1-client.ts';
import { postForm, register } from '../support/gateway/process-login.ts';
import { startService } from '../support/gateway/service.ts';
import { useFresh } from '../support/lifetimes.ts';

const service = useFresh(startService);

const refresh = async (clientId: string, refreshToken: string) => {
  const answer = await postForm(`${service.baseUrl}/oauth/token`, {
    grant_type: 'refresh_token',
    refresh_token: refreshToken,
    client_id: clientId,
  });
  return (await answer.json()) as Record<string, string>;
};

test('§4.7 broker: a refresh token from proxy mode is adopted, and bound to who brought it', async () => {
  const { clientId, refreshToken } = await service.logIn('ada');
  await service.restart({ OAUTH_MODE: 'broker', OAUTH_TOKENS: 'provider' });
  const thief = await register(service.baseUrl);

  const first = await refresh(clientId, refreshToken);
  expect(first).toMatchObject({ access_token: expect.any(String) });
  for (const token of [refreshToken, first.refresh_token ?? '']) {
    expect(await refresh(thief, token)).toMatchObject({ error: 'invalid_grant' });
  }
  const second = await refresh(clientId, first.refresh_token ?? '');
  expect(second).toMatchObject({ access_token: expect.any(String) });
});

test('§4.7 broker: of two that bring it at the same moment, nobody gets the answer of the other', async () => {
  const { clientId, refreshToken } = await service.logIn('ada');
  await service.restart({ OAUTH_MODE: 'broker', OAUTH_TOKENS: 'provider' });
  const thief = await register(service.baseUrl);
  const answers = await Promise.all([
    refresh(clientId, refreshToken),
    refresh(thief, refreshToken),
  ]);
  expect(new Set(answers.map((answer) => answer.access_token)).size).toBe(2);
});

test('§4.7 broker: official client 1.x is not asked to log in again after the switch, nor after the way back', async () => {
  const memory = createMemory();
  await connect(service.mcpUrl, memory);
  for (const mode of ['broker', 'proxy', 'broker']) {
    await service.restart({ OAUTH_MODE: mode });
    spoil(memory);
    const { client } = await connect(service.mcpUrl, memory);
    await expect(client.ping()).resolves.toEqual({});
  }
  expect(memory.saved.authorizations).toHaveLength(1);
  expect(memory.saved.clients).toHaveLength(1);
});

test('§3.1 broker: a session from proxy mode goes on, with the access token from before', async () => {
  const { client } = await connect(service.mcpUrl, createMemory());
  await service.restart({ OAUTH_MODE: 'broker', OAUTH_TOKENS: 'provider' });
  await expect(client.ping()).resolves.toEqual({});
});
