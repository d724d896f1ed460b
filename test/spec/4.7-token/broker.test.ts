// RFC 6749 §4.1.3, §6: codes and refresh tokens of broker mode. What becomes of their grants: ../5.11-own-tokens.
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { BASE, type Broker, MCP, startBroker } from '../../support/oauth/broker.ts';
import { type Client, newPkce, REDIRECT } from '../../support/oauth/login-steps.ts';

const broker = useShared(() => startBroker({ OAUTH_REFRESH_TTL_SECONDS: '7200' }));
let clock: Broker['clock'];
let steps: Broker['steps'];
let client: Client;
beforeAll(() => {
  ({ clock, steps } = broker);
});
beforeEach(async () => {
  client = await steps.register();
});

describe('authorization codes', () => {
  test('§4.7 broker: the provider gets its own code, our verifier, callback and credentials, and its tokens stay here', async () => {
    const { status, headers, json } = await steps.redeem(client, await steps.logIn(client));
    expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
    expect(json).toEqual({
      access_token: expect.stringMatching(/^pst_/),
      refresh_token: expect.stringMatching(/^psr_/),
      token_type: 'Bearer',
      expires_in: 3600,
      scope: 'openid profile',
    });
    expect(broker.last()).toEqual({
      grant_type: 'authorization_code',
      code: 'provider-code',
      redirect_uri: `${BASE}/oauth/callback`,
      code_verifier: expect.stringMatching(/^[\w-]{43}$/),
      client_id: 'provider-client',
      client_secret: 'provider-secret',
    });
    expect(broker.last().code_verifier).not.toBe(client.verifier);
  });

  test('§4.7 broker: a code is good for a minute', async () => {
    const back = await steps.logIn(client);
    clock.advance(60_000);
    expect((await steps.redeem(client, back)).json.error).toBe('invalid_grant');
  });

  test.each([
    { what: 'another redirect URI', change: { redirect_uri: `${REDIRECT}/2` } },
    { what: 'another verifier', change: { code_verifier: newPkce().verifier } },
    { what: 'the challenge for a verifier (plain)', change: 'challenge' },
    { what: 'a verifier that is too short', change: { code_verifier: 'short' } },
    { what: 'the provider’s own code', change: { code: 'provider-code' } },
  ])('§4.7 broker: $what: 400 invalid_grant', async ({ change }) => {
    const back = await steps.logIn(client);
    const sent = typeof change === 'string' ? { code_verifier: client.challenge } : change;
    const { status, json } = await steps.redeem(client, back, sent);
    expect([status, json.error]).toEqual([400, 'invalid_grant']);
  });

  test('§4.7 broker: the code of one client redeemed by another: 400 invalid_grant', async () => {
    const thief = { ...(await steps.register()), verifier: client.verifier };
    const { status, json } = await steps.redeem(thief, await steps.logIn(client));
    expect([status, json.error]).toEqual([400, 'invalid_grant']);
  });

  test.each(['code', 'redirect_uri', 'client_id', 'code_verifier'])(
    '§7.3 broker: without %s: 400 invalid_request, and the code is still good',
    async (name) => {
      const back = await steps.logIn(client);
      const { status, json } = await steps.redeem(client, back, { [name]: undefined });
      expect([status, json.error]).toEqual([400, 'invalid_request']);
      expect((await steps.redeem(client, back)).status).toBe(200);
    },
  );

  test('§7.3 broker: an unknown client: 401 invalid_client; another grant: 400', async () => {
    const back = await steps.logIn(client);
    const unknown = await steps.redeem({ ...client, id: 'svc-AAAAAAAAAAAA' }, back);
    expect([unknown.status, unknown.json.error]).toEqual([401, 'invalid_client']);
    const other = await steps.redeem(client, back, { grant_type: 'password' });
    expect([other.status, other.json.error]).toEqual([400, 'unsupported_grant_type']);
  });
});

describe('refresh tokens', () => {
  test('§4.7 broker: use renews the login and the registration', async () => {
    let { refresh_token: token } = await broker.logIn(client);
    for (let turn = 0; turn < 4; turn += 1) {
      clock.advance(3_600_000);
      const { status, json } = await steps.refresh(client, token);
      expect(status).toBe(200);
      token = json.refresh_token;
    }
    clock.advance(7_200_000);
    expect((await steps.refresh(client, token)).json.error).toBe('invalid_grant');
  });

  test.each(['r-made-up', 'of the provider'])(
    '§4.7 broker: %s, which is none of ours, is refused, and the provider not asked',
    async (token) => {
      await broker.logIn(client);
      const asked = broker.asked();
      const { status, json } = await steps.refresh(client, token);
      expect([status, json.error, broker.asked()]).toEqual([400, 'invalid_grant', asked]);
    },
  );

  test('§4.7 broker: a refresh for another service: 400 invalid_target', async () => {
    const { refresh_token: token } = await broker.logIn(client);
    const { status, json } = await steps.refresh(client, token, { resource: 'https://x.example' });
    expect([status, json.error]).toEqual([400, 'invalid_target']);
    expect((await steps.refresh(client, token, { resource: MCP })).status).toBe(200);
  });

  test('§4.7 broker: neither codes, verifiers nor tokens lie in the log', async () => {
    const back = await steps.logIn(client);
    const { json } = await steps.redeem(client, back);
    await steps.refresh(client, json.refresh_token);
    await steps.refresh(await steps.register(), json.refresh_token);
    const log = JSON.stringify(broker.gateway.log);
    for (const secret of [
      back.searchParams.get('code') ?? '',
      json.access_token,
      json.refresh_token,
      client.verifier,
      'provider-code',
      'provider-secret',
      'of the provider',
    ]) {
      expect(log).not.toContain(secret);
    }
  });
});

describe('revocation', () => {
  test('§4.1 broker: an unknown client: 401 invalid_client', async () => {
    const { access_token: token } = await broker.logIn(client);
    const form = { token, client_id: 'svc-AAAAAAAAAAAA' };
    const { status, json } = await steps.post('/oauth/revoke', form);
    expect([status, json.error]).toEqual([401, 'invalid_client']);
  });
});
