// Tokens of the gateway's own over two replicas: one store, one truth.
import { expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import { BASE, startOwnTokens, toTokens } from '../../support/oauth/own-tokens.ts';

const own = useFresh(() => startOwnTokens({ isReplicated: true }));

test('§5.11 replicas: a token of one is good at the other, and out at its next call once it was revoked', async () => {
  const { client, access, refresh } = await own.logIn();
  const bystander = await own.logIn();
  expect((await own.other.call(access)).status).toBe(200);
  const revoked = await own.steps.post('/oauth/revoke', { token: refresh, client_id: client.id });
  expect(revoked.status).toBe(200);
  const { status, json, headers } = await own.other.call(access);
  expect([status, json.error.data.reason]).toEqual([401, 'token_revoked']);
  expect(headers['www-authenticate']).toContain('error="invalid_token"');
  expect((await own.other.call(bystander.access)).status).toBe(200);
});

test('§5.11 replicas: one that meets a login only after its end says what one says that knew it', async () => {
  const { client, access, refresh } = await own.logIn();
  expect((await own.call(access)).status).toBe(200);
  await own.steps.post('/oauth/revoke', { token: refresh, client_id: client.id });
  const answers = [await own.call(access), await own.other.call(access)];
  for (const { status, json, headers } of answers) {
    expect([status, json.error.data.reason]).toEqual([401, 'token_revoked']);
    expect(headers['www-authenticate']).toBe(
      `Bearer error="invalid_token", resource_metadata="${BASE}/.well-known/oauth-protected-resource/mcp"`,
    );
  }
});

test('§5.11 replicas: to revoke an access token ends the login, too, and who revokes again hears no error', async () => {
  const { client, access, refresh } = await own.logIn();
  const form = { token: access, client_id: client.id };
  expect((await own.other.steps.post('/oauth/revoke', form)).status).toBe(200);
  expect((await own.call(access)).status).toBe(401);
  expect((await own.steps.refresh(client, refresh)).json.error).toBe('invalid_grant');
  expect((await own.steps.post('/oauth/revoke', form)).status).toBe(200);
});

test('RFC 7009 §2.1, §5.11 replicas: a client revokes its own tokens only', async () => {
  const { access, refresh } = await own.logIn();
  const stranger = await own.steps.register();
  for (const token of [access, refresh]) {
    const { status } = await own.steps.post('/oauth/revoke', { token, client_id: stranger.id });
    expect(status).toBe(400);
  }
  expect((await own.call(access)).status).toBe(200);
});

test('§5.11 replicas: of forty refreshes at once one asks the provider, and all get the same good answer', async () => {
  const tokens = await own.logIn();
  own.clock.advance(61 * 60_000);
  // Those who wait look again after a while.
  const passing = setInterval(() => own.clock.advance(50), 5);
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? own : own.other).refresh(tokens)),
  ).finally(() => clearInterval(passing));
  const pairs = answers.map((answer) => toTokens(tokens.client, answer));
  expect(own.provider.asked.refresh).toBe(1);
  expect(new Set(pairs.map(({ refresh }) => refresh)).size).toBe(1);
  expect((await own.other.call(pairs[0]?.access ?? '')).status).toBe(200);
});

test('§5.11 replicas: claims that a renewal changed hold at the next call of the other replica', async () => {
  const first = await own.logIn({ name: 'Ada' });
  expect((await own.other.call(first.access)).status).toBe(200);
  own.provider.idToken = { name: 'Countess Lovelace' };
  own.clock.advance(61 * 60_000);
  const second = toTokens(first.client, await own.refresh(first));
  const opened = await own.other.call(second.access);
  const session = String(opened.headers['mcp-session-id']);
  const { json } = await own.other.gateway.rpc(
    { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'user://profile' } },
    { token: second.access, session },
  );
  expect(JSON.parse(json.result.contents[0].text)).toMatchObject({ name: 'Countess Lovelace' });
});
