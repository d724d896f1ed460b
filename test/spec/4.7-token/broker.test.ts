import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { useShared } from '../../support/lifetimes.ts';
import { BASE, type Broker, startBroker } from '../../support/oauth/broker.ts';
import { type Client, newPkce, REDIRECT } from '../../support/oauth/login-steps.ts';

const broker = useShared(() =>
  startBroker({
    OAUTH_ALLOWED_SCOPES: 'openid,profile,email,files',
    OAUTH_REFRESH_TTL_SECONDS: '7200',
    OAUTH_REFRESH_GRANT_RATE_LIMIT_MAX: '1000',
    DCR_CLIENT_TTL: '7200',
  }),
);
let gateway: Broker['gateway'];
let upstream: Broker['upstream'];
let clock: Broker['clock'];
let steps: Broker['steps'];
let client: Client;
/** One that the gateway would take. */
let access: string;
beforeAll(async () => {
  ({ gateway, upstream, clock, steps } = broker);
  access = await broker.sign();
});
beforeEach(async () => {
  client = await steps.register();
  answer(200, { access_token: access, token_type: 'Bearer', expires_in: 300 });
});

const answer = (status: number, body: object) => broker.answer(status, body);
const asked = () => broker.asked();
const last = () => broker.last();
const refreshTokenOf = (owner: Client, token: string) => broker.refreshTokenOf(owner, token);

describe('authorization codes', () => {
  test('§4.7 broker: the provider gets its own code, our verifier, callback and credentials', async () => {
    const { status, headers, json } = await steps.redeem(client, await steps.logIn(client));
    expect(status).toBe(200);
    expect(headers['cache-control']).toBe('no-store');
    expect(json).toEqual({ access_token: access, token_type: 'Bearer', expires_in: 300 });
    expect(last()).toEqual({
      grant_type: 'authorization_code',
      resource: `${BASE}/mcp`,
      code: 'provider-code',
      redirect_uri: `${BASE}/oauth/callback`,
      code_verifier: expect.stringMatching(/^[\w-]{43}$/),
      client_id: 'provider-client',
      client_secret: 'provider-secret',
    });
    expect(last().code_verifier).not.toBe(client.verifier);
  });

  test('§4.7 broker: the provider’s ID token is not handed out', async () => {
    const back = await steps.logIn(client, { scope: 'files' });
    answer(200, { access_token: access, token_type: 'Bearer', id_token: 'a.b.c' });
    const { json } = await steps.redeem(client, back);
    expect(json).toEqual({ access_token: access, token_type: 'Bearer' });
  });

  test('§4.7 broker: an ID token of another login (nonce): 400 invalid_grant', async () => {
    const claims = Buffer.from(JSON.stringify({ nonce: 'another' })).toString('base64url');
    const back = await steps.logIn(client);
    answer(200, { access_token: access, id_token: `e30.${claims}.x` });
    const { status, json } = await steps.redeem(client, back);
    expect([status, json.error]).toEqual([400, 'invalid_grant']);
  });

  test('§4.7 broker: a code is good once, also for two at the same moment', async () => {
    const back = await steps.logIn(client);
    const before = asked();
    const answers = await Promise.all([steps.redeem(client, back), steps.redeem(client, back)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
    const again = await steps.redeem(client, back);
    expect([again.status, again.json.error]).toEqual([400, 'invalid_grant']);
    expect(asked()).toBe(before + 1);
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
  ])('§4.7 broker: $what: 400 invalid_grant, nothing goes upstream', async ({ change }) => {
    const back = await steps.logIn(client);
    const before = asked();
    const sent = typeof change === 'string' ? { code_verifier: client.challenge } : change;
    const { status, json } = await steps.redeem(client, back, sent);
    expect([status, json.error]).toEqual([400, 'invalid_grant']);
    expect(asked()).toBe(before);
  });

  test('§4.7 broker: the code of one client redeemed by another: 400 invalid_grant', async () => {
    const thief = { ...(await steps.register()), verifier: client.verifier };
    const before = asked();
    const { status, json } = await steps.redeem(thief, await steps.logIn(client));
    expect([status, json.error]).toEqual([400, 'invalid_grant']);
    expect(asked()).toBe(before);
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
    const other = await steps.redeem(client, back, { grant_type: 'client_credentials' });
    expect([other.status, other.json.error]).toEqual([400, 'unsupported_grant_type']);
  });

  test('§7.3 broker: the provider’s refusal comes back, its silence is 502', async () => {
    const refused = await steps.logIn(client);
    answer(400, { error: 'invalid_grant', error_description: 'used' });
    expect((await steps.redeem(client, refused)).json.error).toBe('invalid_grant');
    const silent = await steps.logIn(client);
    upstream.answer((res) => void res.destroy());
    const { status, json } = await steps.redeem(client, silent);
    expect([status, json.error]).toEqual([502, 'server_error']);
    for (const body of ['[]', '{}', 'x']) {
      const back = await steps.logIn(client);
      upstream.answer((res) => void res.end(body));
      expect((await steps.redeem(client, back)).status).toBe(502);
    }
  });
});

describe('refresh tokens', () => {
  /** Whoever waits for the other looks again as time goes on. */
  async function twoAtOnce(token: string) {
    const pending = Promise.all([steps.refresh(client, token), steps.refresh(client, token)]);
    let done = false;
    void pending.finally(() => {
      done = true;
    });
    await expect
      .poll(() => {
        clock.advance(50);
        return done;
      })
      .toBe(true);
    return pending;
  }

  test('§4.7 broker: when the provider is silent, those who waited do not ask at once again', async () => {
    const token = await refreshTokenOf(client, 'r-silent');
    const before = asked();
    upstream.answer((res) => void res.destroy());
    const answers = await twoAtOnce(token);
    expect(answers.map(({ status }) => status)).toEqual([502, 502]);
    expect(asked()).toBe(before + 1);
    clock.advance(2000);
    answer(200, { access_token: access });
    expect((await steps.refresh(client, token)).status).toBe(200);
  });

  test('§4.7 broker: refreshed with our credentials, the new one is bound as well', async () => {
    const token = await refreshTokenOf(client, 'r-first');
    answer(200, { access_token: access, token_type: 'Bearer', refresh_token: 'r-second' });
    const { status, json } = await steps.refresh(client, token);
    expect([status, json.refresh_token]).toEqual([200, 'r-second']);
    expect(last()).toEqual({
      grant_type: 'refresh_token',
      refresh_token: 'r-first',
      resource: `${BASE}/mcp`,
      client_id: 'provider-client',
      client_secret: 'provider-secret',
    });
    const thief = await steps.register();
    for (const stolen of ['r-first', 'r-second']) {
      const refused = await steps.refresh(thief, stolen);
      expect([refused.status, refused.json.error]).toEqual([400, 'invalid_grant']);
    }
    expect((await steps.refresh(client, 'r-second')).status).toBe(200);
  });

  test('§4.7 broker: two at the same moment, and a third soon after, get the same answer', async () => {
    const token = await refreshTokenOf(client, 'r-parallel');
    const before = asked();
    let serial = 0;
    upstream.answer((res) => {
      serial += 1;
      res.end(JSON.stringify({ access_token: access, refresh_token: `rp${serial}` }));
    });
    const answers = [...(await twoAtOnce(token)), await steps.refresh(client, token)];
    expect(answers.map(({ json }) => json.refresh_token)).toEqual(['rp1', 'rp1', 'rp1']);
    expect(asked()).toBe(before + 1);
    clock.advance(10_000);
    expect((await steps.refresh(client, token)).json.refresh_token).toBe('rp2');
  });

  test('§4.7 broker: two that ask for different things are one use of the token, too', async () => {
    const token = await refreshTokenOf(client, 'r-different');
    const before = asked();
    answer(200, { access_token: access, refresh_token: 'r-different-2' });
    expect((await steps.refresh(client, token, { scope: 'openid' })).status).toBe(200);
    const other = await steps.refresh(client, token, { resource: `${BASE}/mcp` });
    expect(other.json.refresh_token).toBe('r-different-2');
    expect(asked()).toBe(before + 1);
  });

  test.each([503, 429])('§4.7 broker: a passing %d of the provider is not kept', async (status) => {
    const token = await refreshTokenOf(client, `r-passing-${status}`);
    answer(status, { error: 'temporarily_unavailable' });
    expect((await steps.refresh(client, token)).status).toBe(status);
    answer(200, { access_token: access });
    expect((await steps.refresh(client, token)).status).toBe(200);
  });

  test('§4.7 broker: a refresh cannot ask for scopes that are not allowed', async () => {
    const token = await refreshTokenOf(client, 'r-scopes');
    await steps.refresh(client, token, { scope: 'files https://graph.example/Mail' });
    expect(last().scope).toBe('files');
  });

  test('§4.7 broker: one that the gateway never saw is adopted if the provider takes it', async () => {
    answer(200, { access_token: access, refresh_token: 'r-adopted-2' });
    expect((await steps.refresh(client, 'r-adopted')).status).toBe(200);
    const thief = await steps.register();
    expect((await steps.refresh(thief, 'r-adopted')).json.error).toBe('invalid_grant');
    answer(400, { error: 'invalid_grant' });
    expect((await steps.refresh(client, 'r-refused')).json.error).toBe('invalid_grant');
    answer(200, { access_token: access });
    clock.advance(10_000);
    expect((await steps.refresh(thief, 'r-refused')).status).toBe(200);
  });

  test('§4.7 broker: use renews the binding and the registration', async () => {
    const token = await refreshTokenOf(client, 'r-long');
    for (let turn = 0; turn < 4; turn += 1) {
      clock.advance(3_600_000);
      expect((await steps.refresh(client, token)).status).toBe(200);
    }
    clock.advance(7_200_000);
    expect((await steps.refresh(client, token)).status).toBe(401);
  });

  test('§4.7 broker: a token that was replaced is not renewed; the next one is its client’s', async () => {
    const token = await refreshTokenOf(client, 'r-first');
    clock.advance(3_600_000);
    answer(200, { access_token: access, refresh_token: 'r-second' });
    expect((await steps.refresh(client, token)).status).toBe(200);
    clock.advance(3_700_000);
    const thief = await steps.register();
    answer(400, { error: 'invalid_grant' });
    const before = asked();
    // Its two hours are over: the provider judges it, and it has used it up.
    expect((await steps.refresh(thief, token)).json.error).toBe('invalid_grant');
    expect(asked()).toBe(before + 1);
    expect((await steps.refresh(thief, 'r-second')).json.error).toBe('invalid_grant');
    expect(asked()).toBe(before + 1);
  });

  test('§4.7 broker: however many wait for a silent provider, the store is left alone', async () => {
    const token = await refreshTokenOf(client, 'r-crowd');
    let answerLate = () => {};
    upstream.answer((res) => {
      answerLate = () => void res.end(JSON.stringify({ access_token: access }));
    });
    const before = asked();
    const adds = () => seriesOf(gateway, 'redis_operations_total', { operation: 'add' });
    const earlier = Number(await adds());
    const waiting = Array.from({ length: 50 }, () => steps.refresh(client, token));
    await expect.poll(asked).toBe(before + 1);
    for (let turn = 0; turn < 20; turn += 1) clock.advance(50);
    answerLate();
    for (const { status } of await Promise.all(waiting)) expect(status).toBe(200);
    expect(asked()).toBe(before + 1);
    expect(Number(await adds()) - earlier).toBe(1);
  });

  test('§4.7 broker: neither codes, verifiers nor tokens lie in the log', async () => {
    const token = await refreshTokenOf(client, 'r-never-in-the-log');
    await steps.refresh(client, token);
    await steps.refresh(await steps.register(), token);
    const log = JSON.stringify(gateway.log);
    for (const secret of [token, client.verifier, 'provider-code', 'provider-secret']) {
      expect(log).not.toContain(secret);
    }
  });
});

describe('revocation', () => {
  const revoke = (owner: Client, token: string) =>
    steps.post('/oauth/revoke', { token, client_id: owner.id, token_type_hint: 'refresh_token' });

  test('§4.1 broker: forwarded, and nobody’s from then on', async () => {
    const token = await refreshTokenOf(client, 'r-revoked');
    const thief = await steps.register();
    const before = asked();
    expect((await revoke(thief, token)).json.error).toBe('invalid_grant');
    expect(asked()).toBe(before);
    upstream.answer((res) => void res.writeHead(200).end());
    expect((await revoke(client, token)).status).toBe(200);
    expect(last()).toEqual({
      token,
      token_type_hint: 'refresh_token',
      client_id: 'provider-client',
      client_secret: 'provider-secret',
    });
    answer(200, { access_token: access });
    for (const user of [thief, client]) {
      const { status, json } = await steps.refresh(user, token);
      expect([status, json.error]).toEqual([400, 'invalid_grant']);
    }
    expect((await revoke(client, token)).status).toBe(200);
    expect(asked()).toBe(before + 1);
  });

  test('§4.1 broker: one that the gateway never saw cannot be adopted afterwards, for an hour', async () => {
    upstream.answer((res) => void res.writeHead(200).end());
    expect((await revoke(client, 'r-never-seen')).status).toBe(200);
    answer(200, { access_token: access });
    clock.advance(3_590_000);
    const thief = await steps.register();
    expect((await steps.refresh(thief, 'r-never-seen')).json.error).toBe('invalid_grant');
    // Made-up tokens must not stay in the store for as long as real ones.
    clock.advance(20_000);
    expect((await steps.refresh(thief, 'r-never-seen')).status).toBe(200);
  });

  test('§4.1 broker: one that it knew is nobody’s for as long as it could have lived', async () => {
    const token = await refreshTokenOf(client, 'r-known');
    upstream.answer((res) => void res.writeHead(200).end());
    expect((await revoke(client, token)).status).toBe(200);
    answer(200, { access_token: access });
    clock.advance(7_100_000);
    const thief = await steps.register();
    expect((await steps.refresh(thief, token)).json.error).toBe('invalid_grant');
  });

  test('§4.1 broker: a refresh under way does not undo a revocation', async () => {
    const token = await refreshTokenOf(client, 'r-raced');
    let answerLate = () => {};
    upstream.answer((res) => {
      answerLate = () => void res.end(JSON.stringify({ access_token: access }));
    });
    const before = asked();
    const refreshing = steps.refresh(client, token);
    await expect.poll(asked).toBe(before + 1);
    upstream.answer((res) => void res.writeHead(200).end());
    expect((await revoke(client, token)).status).toBe(200);
    answerLate();
    expect((await refreshing).json.error).toBe('invalid_grant');
    expect((await steps.refresh(client, token)).json.error).toBe('invalid_grant');
  });

  test('§4.1 broker: nor is the next token of such a refresh anybody’s', async () => {
    const token = await refreshTokenOf(client, 'r-raced-1');
    let answerLate = () => {};
    upstream.answer((res) => {
      answerLate = () =>
        void res.end(JSON.stringify({ access_token: access, refresh_token: 'r-raced-2' }));
    });
    const before = asked();
    const refreshing = steps.refresh(client, token);
    await expect.poll(asked).toBe(before + 1);
    upstream.answer((res) => void res.writeHead(200).end());
    expect((await revoke(client, token)).status).toBe(200);
    answerLate();
    expect((await refreshing).json.error).toBe('invalid_grant');
    answer(200, { access_token: access });
    expect((await steps.refresh(client, 'r-raced-2')).json.error).toBe('invalid_grant');
  });

  test('§4.1 broker: any success of the provider is one (204)', async () => {
    upstream.answer((res) => void res.writeHead(204).end());
    expect((await revoke(client, 'r-no-content')).status).toBe(204);
    answer(200, { access_token: access });
    const thief = await steps.register();
    expect((await steps.refresh(thief, 'r-no-content')).json.error).toBe('invalid_grant');
  });

  test('§4.1 broker: what the provider did not revoke is still its client’s', async () => {
    const token = await refreshTokenOf(client, 'r-kept');
    answer(503, { error: 'temporarily_unavailable' });
    expect((await revoke(client, token)).status).toBe(503);
    answer(200, { access_token: access });
    expect((await steps.refresh(client, token)).status).toBe(200);
  });

  test('§4.1 broker: an unknown client: 401 invalid_client', async () => {
    const { status, json } = await revoke({ ...client, id: 'svc-AAAAAAAAAAAA' }, 'x');
    expect([status, json.error]).toEqual([401, 'invalid_client']);
  });
});
