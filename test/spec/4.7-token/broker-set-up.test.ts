// §13: a fault of the gateway's set-up is said to be one, and costs no client its tokens.
import { beforeEach, describe, expect, test } from 'vitest';
import { hashSha256 } from '../../../src/platform/ids.ts';
import { buildOAuthKey } from '../../../src/store/keys.ts';
import { useShared } from '../../support/lifetimes.ts';
import { BASE, MCP, startBroker } from '../../support/oauth/broker.ts';
import type { Client } from '../../support/oauth/login-steps.ts';

const broker = useShared(startBroker);
let client: Client;
beforeEach(async () => {
  client = await broker.steps.register();
});

const foreign = () => broker.sign({ aud: 'https://other.example' });
const tokenSignedBySecret = () =>
  `${Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')}.e30.AAAA`;
/** The last line of the log about a token request. */
const lastLine = () => broker.gateway.log.filter(({ path }) => path === '/oauth/token').at(-1);

describe('an access token that the gateway would refuse is not handed out', () => {
  test.each([
    {
      what: 'of another audience',
      token: foreign,
      facts: { found: 'https://other.example', expected: [MCP, BASE, `${BASE}/`] },
      says: 'OIDC_AUDIENCE',
    },
    {
      what: 'of another issuer',
      token: () => broker.sign({ iss: 'https://other.example' }),
      facts: { found: 'https://other.example' },
      says: 'OIDC_ISSUER',
    },
    { what: 'that is no JWT', token: async () => 'opaque', facts: {}, says: 'not a JWT' },
    {
      what: 'that has expired',
      token: () => broker.sign({ exp: broker.clock.now() / 1000 - 60 }),
      facts: {},
      says: 'expired',
    },
    {
      what: 'that expired an hour ago: it is new, so a clock is wrong',
      token: () => broker.sign({ exp: broker.clock.now() / 1000 - 3600 }),
      facts: {},
      says: 'expired 3600 seconds ago. If it was issued just now, the clock of the provider or of this service is wrong',
    },
    {
      what: 'that is signed with a secret',
      token: async () => tokenSignedBySecret(),
      facts: { found: 'HS256' },
      says: 'choose another signature algorithm for access tokens at the provider',
    },
    {
      what: 'that is an ID token',
      token: () => broker.sign({ at_hash: 'x' }),
      facts: {},
      says: 'at_hash',
    },
  ])('§4.7 broker: one $what: 502, and a warning', async ({ token, facts, says }) => {
    const back = await broker.steps.logIn(client);
    const value = await token();
    broker.answer(200, { access_token: value, refresh_token: 'r-x' });
    const { status, json, text } = await broker.steps.redeem(client, back);
    expect([status, json.error]).toEqual([502, 'server_error']);
    expect(json.error_description).toContain('The gateway is misconfigured');
    expect(json.error_description).toContain(says);
    expect(lastLine()).toMatchObject({ level: 'warn', error: 'unusable_access_token', ...facts });
    expect(JSON.stringify(lastLine())).toContain(says);
    for (const told of [text, JSON.stringify(broker.gateway.log)]) {
      expect(told).not.toContain(value === 'opaque' ? '"opaque"' : value);
    }
  });

  test('§4.7 broker: the signature is not looked at: it came from the provider', async () => {
    const back = await broker.steps.logIn(client);
    const token = `${(await broker.sign()).split('.').slice(0, 2).join('.')}.AAAA`;
    broker.answer(200, { access_token: token });
    const { status, json } = await broker.steps.redeem(client, back);
    expect([status, json.access_token]).toEqual([200, token]);
  });

  test('§4.7 broker: a refresh that fails so loses no refresh token, however often it is tried', async () => {
    const { steps, answer, last, clock } = broker;
    const held = await broker.refreshTokenOf(client, 'held');
    for (const [sent, next] of [
      ['held', 'second'],
      ['second', 'third'],
    ] as const) {
      answer(200, { access_token: await foreign(), refresh_token: next });
      const refused = await steps.refresh(client, held);
      expect([refused.status, refused.json.error]).toEqual([502, 'server_error']);
      expect(last().refresh_token).toBe(sent);
      clock.advance(3_600_000);
    }
    // Mended: the client gets the latest, also when the provider keeps that one.
    answer(200, { access_token: await broker.sign() });
    const { status, json } = await steps.refresh(client, held);
    expect([status, json.refresh_token, last().refresh_token]).toEqual([200, 'third', 'third']);
    const thief = await steps.register();
    for (const token of [held, 'second', 'third']) {
      expect((await steps.refresh(thief, token)).json.error).toBe('invalid_grant');
    }
    answer(200, { access_token: await broker.sign(), refresh_token: 'fourth' });
    expect((await steps.refresh(client, 'third')).json.refresh_token).toBe('fourth');
  });

  test('§4.7 broker: revoked meanwhile, it is the latest that the provider hears of', async () => {
    const { steps, answer, last } = broker;
    const held = await broker.refreshTokenOf(client, 'to-revoke');
    answer(200, { access_token: await foreign(), refresh_token: 'unknown-to-its-client' });
    await steps.refresh(client, held);
    answer(200, {});
    const { status } = await steps.post('/oauth/revoke', { token: held, client_id: client.id });
    expect([status, last().token]).toEqual([200, 'unknown-to-its-client']);
    for (const token of [held, 'unknown-to-its-client']) {
      expect((await steps.refresh(client, token)).json.error).toBe('invalid_grant');
    }
  });

  test('§4.7 broker: the one that is kept is sealed', async () => {
    const held = await broker.refreshTokenOf(client, 'r-secret-1');
    broker.answer(200, { access_token: await foreign(), refresh_token: 'r-secret-2' });
    await broker.steps.refresh(client, held);
    const kept = await broker.store.get(buildOAuthKey('refresh-successor', hashSha256(held)));
    expect(kept).toMatch(/^[\w=-]+$/);
    expect(Buffer.from(kept ?? '', 'base64url').toString('latin1')).not.toContain('r-secret');
  });
});

describe('the provider refuses the gateway’s own credentials', () => {
  const refusals = [
    { status: 401, body: { error: 'invalid_client', error_description: 'secret is wrong' } },
    { status: 400, body: { error: 'unauthorized_client' } },
    { status: 400, body: { error: 'invalid_client' } },
    { status: 401, body: {} },
    { status: 401, body: { error: 'invalid_grant' } },
  ];

  test.each(refusals)('§4.7 broker: $status $body at the token endpoint: 502', async (row) => {
    const { steps, answer } = broker;
    const token = await broker.refreshTokenOf(client, `r-${JSON.stringify(row)}`);
    const back = await steps.logIn(client);
    answer(row.status, row.body);
    for (const ask of [
      () => steps.redeem(client, back),
      () => steps.refresh(client, token),
      () => steps.post('/oauth/revoke', { token, client_id: client.id }),
    ]) {
      const { status, json, headers } = await ask();
      expect([status, json.error]).toEqual([502, 'server_error']);
      expect(json.error_description).toContain('The gateway is misconfigured');
      expect(headers['www-authenticate']).toBeUndefined();
      const line = broker.gateway.log.filter(({ path }) => /oauth.(token|revoke)/.test(`${path}`));
      expect(line.at(-1)).toMatchObject({ level: 'warn', error: 'gateway_refused_by_provider' });
      for (const variable of ['OAUTH_CLIENT_ID', 'OAUTH_CLIENT_SECRET', 'OAUTH_CLIENT_AUTH']) {
        expect(JSON.stringify(line.at(-1))).toContain(variable);
      }
    }
    broker.clock.advance(2000);
    answer(200, { access_token: await broker.sign() });
    expect((await steps.refresh(client, token)).status).toBe(200);
  });

  test('§4.7 broker: invalid_grant stays the client’s matter', async () => {
    const token = await broker.refreshTokenOf(client, 'r-grant');
    broker.answer(400, { error: 'invalid_grant' });
    const { status, json } = await broker.steps.refresh(client, token);
    expect([status, json.error]).toEqual([400, 'invalid_grant']);
  });
});
