// Some clients refresh at every look at a session: in broker mode they get the last answer again while it is fresh.
import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import { logInByCode, rotate } from './rotating-provider.ts';

describe('in broker mode, with tokens of the provider', () => {
  const broker = useShared(() => startBroker());
  const logIn = () => logInByCode(broker, true);
  beforeEach(() => rotate(broker));

  /** A login whose refresh token was replaced once; both refresh tokens. */
  async function logInAndRefresh() {
    const login = await logIn();
    broker.clock.advance(151_000);
    const { json } = await broker.steps.refresh(login.client, login.refreshToken);
    return { ...login, next: json.refresh_token as string, tokens: json, asked: broker.asked() };
  }

  test('§4.7 token: a fresh answer is given again, with the life that is left', async () => {
    const { client, refreshToken, asked } = await logIn();
    broker.clock.advance(100_000);
    const { status, json, headers } = await broker.steps.refresh(client, refreshToken);
    expect([status, json.expires_in, json.refresh_token]).toEqual([200, 200, refreshToken]);
    expect(json.token_type).toBe('Bearer');
    expect(headers['cache-control']).toBe('no-store');
    expect(broker.asked()).toBe(asked);
  });

  test('§4.7 token: once half of its life is over, the provider is asked', async () => {
    const { client, refreshToken, asked } = await logIn();
    broker.clock.advance(150_000);
    const { json } = await broker.steps.refresh(client, refreshToken);
    expect([json.expires_in, broker.asked()]).toEqual([300, asked + 1]);
    expect(json.refresh_token).not.toBe(refreshToken);
  });

  test('§4.7 token: after five minutes the provider is asked, however long the token lives', async () => {
    await rotate(broker, { expires_in: 86_400 });
    const { client, refreshToken, asked } = await logIn();
    broker.clock.advance(299_000);
    expect((await broker.steps.refresh(client, refreshToken)).json.expires_in).toBe(86_101);
    broker.clock.advance(2000);
    await broker.steps.refresh(client, refreshToken);
    expect(broker.asked()).toBe(asked + 1);
  });

  test('§4.7 token: 300 refreshes with the token that was issued are none at the provider', async () => {
    const { client, next, tokens, asked } = await logInAndRefresh();
    for (let n = 0; n < 300; n += 1) {
      const { json } = await broker.steps.refresh(client, next);
      expect([json.access_token, json.refresh_token]).toEqual([tokens.access_token, next]);
    }
    expect(broker.asked()).toBe(asked);
  });

  test('§4.7 token: a client that lost the answer gets it with the token before', async () => {
    const { client, refreshToken, tokens, asked } = await logInAndRefresh();
    broker.clock.advance(9000);
    const { json } = await broker.steps.refresh(client, refreshToken);
    expect(json).toEqual({ ...tokens, expires_in: 291 });
    expect(broker.asked()).toBe(asked);
  });

  test('§4.7 token: the token before counts for ten seconds', async () => {
    const { client, refreshToken, asked } = await logInAndRefresh();
    broker.clock.advance(11_000);
    await broker.steps.refresh(client, refreshToken);
    expect(broker.asked()).toBe(asked + 1);
  });

  test('§4.7 token: once its successor was used, the token before is the provider’s to judge', async () => {
    const { client, refreshToken, next, asked } = await logInAndRefresh();
    await broker.steps.refresh(client, next);
    broker.clock.advance(20_000);
    await broker.steps.refresh(client, refreshToken);
    expect(broker.asked()).toBe(asked + 1);
  });

  test('§4.7 token: when the provider finds that a token was used twice, nothing is given again', async () => {
    const { client, refreshToken, next } = await logInAndRefresh();
    await broker.steps.refresh(client, next);
    broker.clock.advance(20_000);
    broker.answer(400, { error: 'invalid_grant' });
    expect((await broker.steps.refresh(client, refreshToken)).status).toBe(400);
    const { status, json } = await broker.steps.refresh(client, next);
    expect([status, json.error]).toEqual([400, 'invalid_grant']);
  });

  test('§4.7 token: a provider that is down does not end what is fresh', async () => {
    const { client, refreshToken } = await logIn();
    broker.answer(503, { error: 'temporarily_unavailable' });
    await broker.steps.refresh(client, refreshToken, { scope: 'openid' });
    expect((await broker.steps.refresh(client, refreshToken)).status).toBe(200);
  });

  test.each([
    ['another scope', { scope: 'openid' }],
    ['another resource', { resource: 'https://gw.example/mcp' }],
    ['another audience', { audience: 'https://other.example/' }],
    ['an extension of the provider’s', { organization: 'acme' }],
  ])(
    '§4.7 token: a refresh for %s is never answered by what was given before',
    async (_what, change) => {
      const { client, refreshToken, asked } = await logIn();
      await broker.steps.refresh(client, refreshToken, change);
      expect(broker.asked()).toBe(asked + 1);
    },
  );

  test('§4.7 token: an access token that /mcp would refuse is not given again', async () => {
    const expiring = await broker.sign({ exp: broker.clock.now() / 1000 + 90 });
    await rotate(broker, { access_token: expiring });
    const { client, refreshToken, asked } = await logIn();
    broker.clock.advance(30_000);
    expect((await broker.steps.refresh(client, refreshToken)).json.access_token).toBe(expiring);
    broker.clock.advance(100_000);
    await rotate(broker);
    expect((await broker.steps.refresh(client, refreshToken)).json.access_token).not.toBe(expiring);
    expect(broker.asked()).toBe(asked + 1);
  });

  test('§4.7 token: another client never gets what a client was given', async () => {
    const { refreshToken } = await logIn();
    const thief = await broker.steps.register();
    broker.answer(400, { error: 'invalid_grant' });
    const { status, json } = await broker.steps.refresh(thief, refreshToken);
    expect([status, json.error]).toEqual([400, 'invalid_grant']);
  });

  test.each([
    ['refresh token', (tokens: { next: string }) => tokens.next],
    ['refresh token before', (tokens: { refreshToken: string }) => tokens.refreshToken],
    ['access token', (login: { tokens: { access_token: string } }) => login.tokens.access_token],
  ])('§4.7 revoke: once its %s was revoked, nothing is given again', async (_what, select) => {
    const login = await logInAndRefresh();
    broker.respond((res) => void res.writeHead(200).end());
    const revoked = { token: select(login), client_id: login.client.id };
    expect((await broker.steps.post('/oauth/revoke', revoked)).status).toBe(200);
    broker.answer(400, { error: 'invalid_grant' });
    expect((await broker.steps.refresh(login.client, login.next)).status).toBe(400);
  });

  test('§4.7 token: an answer that does not say how long it is good is not given again', async () => {
    await rotate(broker, { expires_in: undefined });
    const { client, refreshToken, asked } = await logIn();
    await broker.steps.refresh(client, refreshToken);
    expect(broker.asked()).toBe(asked + 1);
  });

  test('§4.7 token: nothing that the store has shows a token', async () => {
    const { refreshToken } = await logIn();
    expect(refreshToken).toMatch(/^r-/);
    const key = `oauth:recent-answer:${hash(refreshToken)}`;
    const stored = await broker.store.get(key);
    expect(stored).toBeDefined();
    expect(stored).not.toContain(refreshToken);
    expect(stored).not.toContain('access_token');
  });
});

const hash = (text: string) => createHash('sha256').update(text).digest('base64url');
