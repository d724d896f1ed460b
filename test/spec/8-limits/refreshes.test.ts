// Many clients stand behind one address: a storm of one is not the others' affair.
import { describe, expect, test } from 'vitest';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type Broker, startBroker } from '../../support/oauth/broker.ts';
import { type Client, REDIRECT } from '../../support/oauth/login-steps.ts';
import { createTripCounter } from '../4.7-token/count-trips.ts';

const LIMITS = {
  OAUTH_TOKEN_RATE_LIMIT_MAX: '3',
  OAUTH_REFRESH_RATE_LIMIT_MAX: '2',
  OAUTH_REFRESH_GRANT_RATE_LIMIT_MAX: '1',
};

type Env = Readonly<Record<string, string>>;

const start = async (mode: string, env: Env = {}) =>
  closeAfterTest(await startBroker({ OAUTH_MODE: mode, ...LIMITS, ...env }));

/** What the provider answers in proxy mode, where its tokens are those of clients. */
const answerTokens = async ({ sign, answer }: Broker, refreshToken: string): Promise<void> =>
  answer(200, {
    access_token: await sign(),
    token_type: 'Bearer',
    expires_in: 300,
    refresh_token: refreshToken,
  });

/** In proxy mode a login's refresh token is `refreshToken`. */
async function logInAs(mode: string, broker: Broker, refreshToken: string) {
  const { steps } = broker;
  const client = await steps.register();
  if (mode === 'proxy') await answerTokens(broker, refreshToken);
  const back =
    mode === 'proxy' ? new URL(`${REDIRECT}?code=provider-code`) : await steps.logIn(client);
  const reply = await steps.redeem(client, back);
  return { client, reply, token: reply.json.refresh_token as string };
}

describe.each(['broker', 'proxy'])('in %s mode', (mode) => {
  /** In proxy mode the answer to a code is not given again: the first refresh reaches the provider. */
  const FORWARDED = mode === 'proxy' ? 1 : 0;

  const logIn = (broker: Broker, refreshToken: string) => logInAs(mode, broker, refreshToken);
  const answerWith = async (broker: Broker, refreshToken: string): Promise<void> => {
    if (mode === 'proxy') await answerTokens(broker, refreshToken);
  };
  const refuse = (broker: Broker): void => {
    if (mode === 'proxy') broker.answer(400, { error: 'invalid_grant' });
  };

  test('§8 refresh: a storm of one client fails no other client behind its address', async () => {
    const broker = await start(mode);
    const { client, token } = await logIn(broker, 'r-1');
    const other = await logIn(broker, 'r-2');
    await answerWith(broker, 'r-1');
    const statuses: number[] = [];
    for (let n = 0; n < FORWARDED + 102; n += 1) {
      statuses.push((await broker.steps.refresh(client, token)).status);
    }
    expect(statuses).toEqual([...Array(FORWARDED + 100).fill(200), 429, 429]);
    await answerWith(broker, 'r-2');
    expect((await broker.steps.refresh(other.client, other.token)).status).toBe(200);
    expect((await logIn(broker, 'r-3')).reply.status).toBe(200);
    expect(
      await seriesOf(broker.gateway, 'rate_limit_hits_total', {
        endpoint: 'refresh',
        scope: 'grant',
      }),
    ).toBe(2);
  });

  test('§8 refresh: an address that is refused costs no look at the store', async () => {
    const trips = createTripCounter();
    const broker = closeAfterTest(
      await startBroker({ OAUTH_MODE: mode, ...LIMITS }, {}, trips.count),
    );
    const { client, token } = await logIn(broker, 'r-known');
    refuse(broker);
    for (let n = 0; n < 40; n += 1) await broker.steps.refresh(client, `made-up-${n}`);
    trips.take();
    for (let n = 0; n < 20; n += 1) {
      expect((await broker.steps.refresh(client, `made-up-too-${n}`)).status).toBe(429);
    }
    expect(trips.take()).toHaveLength(0);
    // Others behind the address are served: the one that is known here, and codes.
    await answerWith(broker, 'r-known');
    expect((await broker.steps.refresh(client, token)).status).toBe(200);
    expect((await logIn(broker, 'r-next')).reply.status).toBe(200);
    broker.clock.advance(61_000);
    expect((await broker.steps.refresh(client, 'made-up')).status).toBe(
      mode === 'proxy' ? 200 : 400,
    );
  });

  test('§8 refresh: a login that is refused costs no look at the store either', async () => {
    const trips = createTripCounter();
    const broker = closeAfterTest(
      await startBroker({ OAUTH_MODE: mode, ...LIMITS }, {}, trips.count),
    );
    const { client, token } = await logIn(broker, 'r-1');
    const other = await logIn(broker, 'r-2');
    await answerWith(broker, 'r-1');
    const refresh = async () => (await broker.steps.refresh(client, token)).status;
    for (let n = 0; n < 140; n += 1) await refresh();
    trips.take();
    for (let n = 0; n < 20; n += 1) expect(await refresh()).toBe(429);
    expect(trips.take()).toHaveLength(0);
    await answerWith(broker, 'r-2');
    expect((await broker.steps.refresh(other.client, other.token)).status).toBe(200);
    broker.clock.advance(61_000);
    await answerWith(broker, 'r-1');
    expect(await refresh()).toBe(200);
  });

  test('§8 refresh: tokens that are not known are counted by address, and use up nobody’s room', async () => {
    const broker = await start(mode);
    const { client, token } = await logIn(broker, 'r-known');
    refuse(broker);
    const statuses: number[] = [];
    for (let n = 0; n < 4; n += 1) {
      statuses.push((await broker.steps.refresh(client, `made-up-${n}`)).status);
    }
    expect(statuses).toEqual([400, 400, 429, 429]);
    await answerWith(broker, 'r-known');
    expect((await broker.steps.refresh(client, token)).status).toBe(200);
    expect((await logIn(broker, 'r-next')).reply.status).toBe(200);
  });

  test('§8 refresh: a login is known after a holiday, whatever strangers did at its address', async () => {
    const broker = await start(mode);
    const { client, token } = await logIn(broker, 'kept');
    broker.clock.sleep(10 * 86_400_000);
    refuse(broker);
    const strangers: number[] = [];
    for (let n = 0; n < 4; n += 1) {
      strangers.push((await broker.steps.refresh(client, `made-up-${n}`)).status);
    }
    expect(strangers.at(-1)).toBe(429);
    await answerWith(broker, 'kept');
    expect((await broker.steps.refresh(client, token)).status).toBe(200);
  });

  test('§7.3 token: what a limit refuses is an OAuth error', async () => {
    const broker = await start(mode);
    const { client, token } = await logIn(broker, 'r-1');
    const refusals = [];
    for (let n = 0; n < FORWARDED + 101; n += 1)
      refusals.push(await broker.steps.refresh(client, token));
    expect(refusals.at(-1)).toMatchObject({
      status: 429,
      json: {
        error: 'temporarily_unavailable',
        error_description:
          'At most 100 requests per 60 s are allowed (OAUTH_REFRESH_GRANT_RATE_LIMIT_MAX). Try again in 60 s.',
      },
      headers: { 'retry-after': '60', 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '0' },
    });
    for (let n = 0; n < 3; n += 1) refusals.push((await logIn(broker, `r-c${n}`)).reply);
    expect(refusals.at(-1)).toMatchObject({
      status: 429,
      json: { error: 'temporarily_unavailable' },
      headers: { 'retry-after': '60' },
    });
    const form = { token, client_id: client.id };
    expect(await broker.steps.post('/oauth/revoke', form)).toMatchObject({
      status: 429,
      json: { error: 'temporarily_unavailable', error_description: expect.any(String) },
    });
  });
});

describe('in proxy mode', () => {
  const logIn = (broker: Broker, refreshToken: string) => logInAs('proxy', broker, refreshToken);

  /** Every one reaches the provider: another scope each time wants an answer of its own. */
  async function renewOften(
    { steps, sign, answer }: Broker,
    client: Client,
    name: string,
    times: number,
  ) {
    const statuses: number[] = [];
    for (let n = 1; n <= times; n += 1) {
      answer(200, {
        access_token: await sign(),
        expires_in: 300,
        refresh_token: `${name}-${n}`,
      });
      const scope = `openid s${n}`;
      statuses.push((await steps.refresh(client, `${name}-${n - 1}`, { scope })).status);
    }
    return statuses;
  }

  test('§8 refresh: a login is counted on when its refresh token is replaced', async () => {
    const broker = await start('proxy', {
      OAUTH_REFRESH_GRANT_RATE_LIMIT_MAX: '4',
      OAUTH_REFRESH_RATE_LIMIT_MAX: '10',
    });
    const { client } = await logIn(broker, 'r-0');
    expect(await renewOften(broker, client, 'r', 5)).toEqual([200, 200, 200, 200, 429]);
  });

  test('§8 refresh: what reaches the provider counts for all logins behind an address, too', async () => {
    const broker = await start('proxy', { OAUTH_REFRESH_GRANT_RATE_LIMIT_MAX: '2' });
    const one = await logIn(broker, 'one-0');
    const other = await logIn(broker, 'other-0');
    expect(await renewOften(broker, one.client, 'one', 3)).toEqual([200, 200, 429]);
    expect(await renewOften(broker, other.client, 'other', 1)).toEqual([429]);
    // What the provider is not asked for is not the address's affair.
    const { status } = await broker.steps.refresh(one.client, 'one-2', { scope: 'openid s2' });
    expect(status).toBe(200);
  });

  test('§8 refresh: answers that are given again take nothing of what all callers have', async () => {
    const broker = await start('proxy', { OAUTH_REFRESH_GLOBAL_RATE_LIMIT_MAX: '2' });
    const one = await logIn(broker, 'one-0');
    const other = await logIn(broker, 'other-0');
    expect(await renewOften(broker, one.client, 'one', 1)).toEqual([200]);
    for (let n = 0; n < 50; n += 1) {
      const { status } = await broker.steps.refresh(one.client, 'one-1', { scope: 'openid s1' });
      expect(status).toBe(200);
    }
    expect(await renewOften(broker, other.client, 'other', 1)).toEqual([200]);
  });

  test('§8 refresh: whoever has a token that was replaced uses up nothing of its login', async () => {
    const broker = await start('proxy', { OAUTH_REFRESH_RATE_LIMIT_MAX: '5' });
    const { client } = await logIn(broker, 'old-0');
    expect(await renewOften(broker, client, 'old', 1)).toEqual([200]);
    broker.clock.advance(61_000);
    broker.answer(400, { error: 'invalid_grant' });
    for (let n = 0; n < 3; n += 1) await broker.steps.refresh(client, 'old-0');
    broker.answer(200, { access_token: await broker.sign(), expires_in: 300 });
    expect((await broker.steps.refresh(client, 'old-1')).status).toBe(200);
  });

  test('§7.3 token: so is what the limit of all callers refuses', async () => {
    const broker = await start('proxy', { OAUTH_REFRESH_GLOBAL_RATE_LIMIT_MAX: '1' });
    const { client } = await logIn(broker, 'one-0');
    const { client: other } = await logIn(broker, 'r-2');
    expect(await renewOften(broker, client, 'one', 1)).toEqual([200]);
    const { status, json } = await broker.steps.refresh(other, 'r-2', { scope: 'openid' });
    expect([status, json.error]).toEqual([429, 'temporarily_unavailable']);
  });

  test('§7.2 register: what a limit refuses stays a JSON-RPC error', async () => {
    const broker = await start('proxy', { DCR_RATE_LIMIT_MAX: '1' });
    await broker.steps.register();
    const body = { redirect_uris: [REDIRECT] };
    const { status, json } = await broker.gateway.request({
      method: 'POST',
      path: '/oauth/register',
      body,
    });
    expect([status, json.error.data.reason]).toEqual([429, 'rate_limit_exceeded']);
  });
});
