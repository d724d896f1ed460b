// §8: no stranger fills a window of all callers, at whichever replica they ask, and no network of theirs either.
import { describe, expect, test } from 'vitest';
import type { GatewayFile } from '../../../src/gateway/configuration/gateway-file.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { openAccount } from '../../support/oauth/account-steps.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import { newPkce, REDIRECT } from '../../support/oauth/login-steps.ts';
import { createLogoutTokens, sendLogout } from '../../support/oauth/logout-tokens.ts';
import { type OwnTokenSetup, startOwnTokens } from '../../support/oauth/own-tokens.ts';
import { takeSigningKey } from '../../support/oauth/signing-keys.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';
import { logInByCode, rotate } from '../4.7-token/rotating-provider.ts';

const PLAYGROUND = 'postern-playground';
const NETWORKS = Array.from({ length: 10 }, (_, at) => `2001:db8:${at}:1::`);

type Env = Readonly<Record<string, string>>;

const start = async (env: Env, file?: GatewayFile): Promise<OwnTokenSetup> =>
  closeAfterTest(
    await startOwnTokens({ isReplicated: true, env, deps: { ...(file && { file }) } }),
  );

/** By turns at both replicas. */
const gatewayAt = ({ gateway, other }: OwnTokenSetup, turn: number) =>
  turn % 2 === 0 ? gateway : other.gateway;

describe('logout tokens', () => {
  const LIMITS = {
    BACKCHANNEL_LOGOUT_RATE_LIMIT_MAX: '4',
    BACKCHANNEL_LOGOUT_GLOBAL_RATE_LIMIT_MAX: '10',
  };
  const PROVIDER = '192.0.2.1';
  const SESSION = { sid: 'sid-1' };

  async function makeUp(own: OwnTokenSetup): Promise<readonly string[]> {
    const tokens = createLogoutTokens(own);
    const { privateKey: key } = await takeSigningKey('RS256');
    return Promise.all([
      tokens.sign({}, { key }),
      tokens.sign({ aud: 'another' }),
      tokens.sign({ exp: 1, iat: 1 }),
      tokens.sign({}, { header: { typ: 'JWT' } }),
      'a.b.c',
    ]);
  }

  test('§8.1, §13.4 logout tokens that the provider did not sign keep out none of its own, at either replica', async () => {
    const own = await start(LIMITS);
    const [ada, bystander] = [await own.logIn(SESSION), await own.logIn({ sub: 'user-2' })];
    const madeUp = await makeUp(own);
    for (let turn = 0; turn < 30; turn += 1) {
      const from = `${NETWORKS[turn % 10]}${turn}`;
      const token = madeUp[turn % madeUp.length] ?? '';
      expect((await sendLogout(gatewayAt(own, turn), token, from)).status).toBe(400);
    }
    const real = await createLogoutTokens(own).sign();
    expect((await sendLogout(own.other.gateway, real, PROVIDER)).status).toBe(200);
    for (const at of [own, own.other]) {
      expect((await at.call(ada.access)).status).toBe(401);
      expect((await at.call(bystander.access)).status).toBe(200);
    }
  });

  test('§8.1, §13.4 nor do those that come from the address of the provider, or that it sent before', async () => {
    const own = await start(LIMITS);
    const tokens = createLogoutTokens(own);
    const ada = await own.logIn(SESSION);
    const [madeUp = ''] = await makeUp(own);
    const used = await tokens.sign({ sid: 'sid-2', sub: undefined });
    expect((await sendLogout(own.gateway, used, PROVIDER)).status).toBe(200);
    const statuses = [];
    for (let turn = 0; turn < 8; turn += 1) {
      const token = turn % 2 === 0 ? used : madeUp;
      statuses.push((await sendLogout(own.gateway, token, PROVIDER)).status);
    }
    expect(statuses).toEqual([400, 400, 400, 400, 429, 429, 429, 429]);
    for (let turn = 0; turn < 12; turn += 1) {
      const { status } = await sendLogout(gatewayAt(own, turn), used, `198.51.100.${turn}`);
      expect(status).toBe(400);
    }
    expect((await own.call(ada.access)).status).toBe(200);
    expect((await sendLogout(own.gateway, await tokens.sign(), PROVIDER)).status).toBe(200);
    expect((await own.call(ada.access)).status).toBe(401);
  });

  test('§8.1 the provider has a limit of its own, whatever address it comes from', async () => {
    const own = await start({ ...LIMITS, BACKCHANNEL_LOGOUT_GRANT_RATE_LIMIT_MAX: '2' });
    // So that both have the keys at hand.
    for (const at of [own, own.other]) await at.logIn();
    const tokens = createLogoutTokens(own);
    const send = async (turn: number) =>
      sendLogout(
        gatewayAt(own, turn),
        await tokens.sign({ sid: `sid-${turn}` }),
        `192.0.2.${turn}`,
      );
    expect([(await send(1)).status, (await send(2)).status]).toEqual([200, 200]);
    const { status, json } = await send(3);
    expect([status, json.error]).toEqual([429, 'temporarily_unavailable']);
    expect(json.error_description).toContain('BACKCHANNEL_LOGOUT_GRANT_RATE_LIMIT_MAX');
  });
});

describe('codes and tokens', () => {
  const redeemMadeUp = (own: OwnTokenSetup, turn: number, remoteAddress: string) =>
    gatewayAt(own, turn).request({
      method: 'POST',
      path: '/oauth/token',
      remoteAddress,
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: PLAYGROUND,
        code: `made-up-${turn}`,
        redirect_uri: REDIRECT,
        code_verifier: newPkce().verifier,
      }),
    });
  const revokeMadeUp = (own: OwnTokenSetup, turn: number, remoteAddress: string) =>
    gatewayAt(own, turn).request({
      method: 'POST',
      path: '/oauth/revoke',
      remoteAddress,
      body: new URLSearchParams({ client_id: PLAYGROUND, token: `made-up-${turn}` }),
    });

  test('§8.1 codes and revocations that are made up in the name of a public client keep out nobody', async () => {
    const own = await start({ OAUTH_TOKEN_GLOBAL_RATE_LIMIT_MAX: '3' });
    const revoked = [];
    for (let turn = 0; turn < 8; turn += 1) {
      const from = `${NETWORKS[turn]}1`;
      expect((await redeemMadeUp(own, turn, from)).json.error).toBe('invalid_grant');
      revoked.push((await revokeMadeUp(own, turn, from)).status);
    }
    // What may be revoked already is answered, for as many as the limit says.
    expect(revoked).toEqual([200, 200, 200, 429, 429, 429, 429, 429]);
    const { client, access, refresh } = await own.logIn();
    expect((await own.other.call(access)).status).toBe(200);
    const form = { token: refresh, client_id: client.id };
    expect((await own.other.steps.post('/oauth/revoke', form)).status).toBe(200);
    expect((await own.call(access)).status).toBe(401);
  });

  test('§8.1 a code that was used twice counts for all callers twice, and from then on as one of a stranger', async () => {
    const own = await start({ OAUTH_TOKEN_GLOBAL_RATE_LIMIT_MAX: '3' });
    const client = await own.steps.register();
    const back = await own.logInTo(client);
    const errors = [];
    for (let turn = 0; turn < 6; turn += 1)
      errors.push((await own.steps.redeem(client, back)).json.error);
    expect(errors).toEqual([
      undefined,
      ...Array(4).fill('invalid_grant'),
      'temporarily_unavailable',
    ]);
    expect((await own.logIn({ sub: 'user-2' })).access).toMatch(/^pst_/);
  });
});

test('§8.1 proxy: made-up tokens to revoke keep out nobody who revokes one that the gateway handed out', async () => {
  const broker = closeAfterTest(
    await startBroker({ OAUTH_MODE: 'proxy', OAUTH_TOKEN_GLOBAL_RATE_LIMIT_MAX: '2' }),
  );
  const revoke = (id: string, token: string) =>
    broker.steps.post('/oauth/revoke', { token, client_id: id });
  await rotate(broker);
  const { client, refreshToken } = await logInByCode(broker);
  const strangers = [];
  for (let turn = 0; turn < 4; turn += 1)
    strangers.push((await revoke(PLAYGROUND, `made-up-${turn}`)).status);
  expect(strangers).toEqual([200, 200, 429, 429]);
  const asked = broker.asked();
  expect((await revoke(client.id, refreshToken)).status).toBe(200);
  expect(broker.asked()).toBe(asked + 1);
});

describe('pages of users', () => {
  test.each(['account', 'connections', 'approvals'])(
    '§8.1 /%s: who comes without a session keeps out nobody who has one',
    async (name) => {
      const file = await readFile({
        mcpServers: { wiki: { url: 'https://wiki.example/mcp', auth: { type: 'oauth' } } },
        rules: [
          { who: 'everyone', may: ['wiki__*'] },
          { who: 'everyone', may: ['wiki__drop'], ask: 'page' },
        ],
      });
      const limits = { [`${name.toUpperCase()}_GLOBAL_RATE_LIMIT_MAX`]: '4' };
      const own = await start(limits, file);
      const path = `/${name}`;
      const { cookie } = await openAccount(own, {}, path);
      const statuses = [];
      for (let turn = 0; turn < 6; turn += 1) {
        const { status } = await gatewayAt(own, turn).request({
          path,
          remoteAddress: `${NETWORKS[turn]}1`,
          headers: turn % 2 === 0 ? {} : { cookie: `__Host-postern-account=${'x'.repeat(43)}` },
        });
        statuses.push(status);
      }
      // The look before the login was the first.
      expect(statuses).toEqual([303, 303, 303, 429, 429, 429]);
      expect((await own.steps.get(path, cookie)).status).toBe(200);
      expect((await own.other.steps.get(path, cookie)).status).toBe(200);
    },
  );
});

describe('one /48 of IPv6', () => {
  const ask = (
    own: OwnTokenSetup,
    turn: number,
    remoteAddress: string,
    path: string,
    body?: object,
  ) =>
    gatewayAt(own, turn).request({
      ...(body === undefined ? {} : { method: 'POST', body }),
      path,
      remoteAddress,
    });
  const metadata = { redirect_uris: [REDIRECT] };
  const authorize = `/oauth/authorize?${new URLSearchParams({
    client_id: PLAYGROUND,
    redirect_uri: 'https://gw.example/playground/callback',
    response_type: 'code',
    code_challenge: newPkce().challenge,
    code_challenge_method: 'S256',
  })}`;

  test.each([
    ['registrations', 'DCR', '/oauth/register', metadata, 201],
    ['logins', 'OAUTH_AUTHORIZE', authorize, undefined, 200],
  ] as const)(
    '§8.2 %s: it has a tenth of what all callers have, whatever its /64',
    async (...row) => {
      const [, prefix, path, body, status] = row;
      const own = await start({
        [`${prefix}_RATE_LIMIT_MAX`]: '2',
        [`${prefix}_GLOBAL_RATE_LIMIT_MAX`]: '30',
      });
      const statuses = [];
      for (let turn = 0; turn < 5; turn += 1)
        statuses.push((await ask(own, turn, `2001:db8:1:${turn}::1`, path, body)).status);
      expect(statuses).toEqual([status, status, status, 429, 429]);
      const refused = await ask(own, 0, '2001:db8:1:99::1', path, body);
      expect(refused.text).toContain(
        `the tenth of ${prefix}_GLOBAL_RATE_LIMIT_MAX that an IPv6 /48 has`,
      );
      expect((await ask(own, 1, '2001:db8:2:1::1', path, body)).status).toBe(status);
      expect((await ask(own, 1, '192.0.2.1', path, body)).status).toBe(status);
    },
  );

  test('§8.2 it never has less than one address, and calls without a token use up nothing of its users', async () => {
    const own = await start({ MCP_RATE_LIMIT_MAX: '3', MCP_GLOBAL_RATE_LIMIT_MAX: '10' });
    const { access } = await own.logIn();
    const call = (turn: number, headers: Env) =>
      gatewayAt(own, turn).request({
        method: 'POST',
        path: '/mcp',
        body: { jsonrpc: '2.0', id: 1, method: 'ping' },
        remoteAddress: `2001:db8:1:${turn}::1`,
        headers,
      });
    const strangers = [];
    for (let turn = 0; turn < 4; turn += 1) strangers.push((await call(turn, {})).status);
    expect(strangers).toEqual([401, 401, 401, 429]);
    const users = [];
    for (let turn = 0; turn < 4; turn += 1)
      users.push((await call(turn, { authorization: `Bearer ${access}` })).status === 429);
    expect(users).toEqual([false, false, false, true]);
  });
});
