// Proxy mode: every refresh is the provider's to answer, but for a client that repeats one within ten seconds of the answer.
import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { startTwoReplicas } from '../../support/gateway/two-replicas.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import { documentAnswer, startDocumentHost } from '../../support/oauth/document-host.ts';
import {
  type Client,
  createLoginSteps,
  newPkce,
  REDIRECT,
} from '../../support/oauth/login-steps.ts';
import { startUpstream } from '../../support/oauth/upstream.ts';
import { logInByCode, rotate } from './rotating-provider.ts';

const broker = useShared(() =>
  startBroker({ OAUTH_MODE: 'proxy', OAUTH_REFRESH_GRANT_RATE_LIMIT_MAX: '1000' }),
);
beforeEach(() => rotate(broker));

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

/** Its answer, and how often the provider was asked for it. */
async function refresh(client: Client, token: string, change = {}) {
  const before = broker.asked();
  const { status, json, headers } = await broker.steps.refresh(client, token, change);
  return { status, json, headers, asked: broker.asked() - before };
}

/** A client that has just refreshed for the first time. */
async function logInAndRefresh() {
  const { client, refreshToken: first } = await logInByCode(broker);
  const { json } = await refresh(client, first);
  return { client, first, tokens: json as Tokens, next: json.refresh_token as string };
}

const callWith = (token: string) =>
  broker.gateway.request({
    method: 'POST',
    path: '/mcp',
    body: INITIALIZE_REQUEST,
    headers: { authorization: `Bearer ${token}` },
  });

async function expectForwarded(client: Client, ...tokens: readonly string[]): Promise<void> {
  for (const token of tokens) expect((await refresh(client, token)).asked).toBe(1);
}

/** Not even what the provider answers from now on is given again. */
async function expectEnded(client: Client, token: string): Promise<void> {
  await rotate(broker);
  for (let n = 0; n < 3; n += 1) await expectForwarded(client, token);
}

describe('a refresh that repeats one', () => {
  test('§4.7 token: the answer to a code is never given for a refresh', async () => {
    const { client, refreshToken } = await logInByCode(broker);
    const { json, asked } = await refresh(client, refreshToken);
    expect([json.expires_in, asked]).toEqual([300, 1]);
    expect(json.refresh_token).not.toBe(refreshToken);
  });

  test('§4.7 token: within ten seconds it gets the answer again, with either refresh token and the life that is left', async () => {
    const { client, first, next, tokens } = await logInAndRefresh();
    broker.clock.advance(4000);
    for (const [token, left] of [
      [first, 296],
      [next, 296],
      [first, 296],
    ] as const) {
      const { status, json, headers, asked } = await refresh(client, token);
      expect([status, json, asked]).toEqual([200, { ...tokens, expires_in: left }, 0]);
      expect(headers['cache-control']).toBe('no-store');
    }
    broker.clock.advance(5500);
    expect(await refresh(client, next)).toMatchObject({ json: { expires_in: 290 }, asked: 0 });
  });

  test('§4.7 token: the ten seconds begin with the answer of the provider, not with a repetition', async () => {
    const { client, next, tokens } = await logInAndRefresh();
    broker.clock.advance(9000);
    expect((await refresh(client, next)).asked).toBe(0);
    broker.clock.advance(2000);
    const { json, asked } = await refresh(client, next);
    expect([asked, json.expires_in]).toEqual([1, 300]);
    expect(json.access_token).not.toBe(tokens.access_token);
  });

  test('§4.7 token: the token that was replaced is the provider’s to judge after ten seconds', async () => {
    const { client, first } = await logInAndRefresh();
    broker.clock.advance(11_000);
    broker.answer(400, { error: 'invalid_grant' });
    expect(await refresh(client, first)).toMatchObject({ status: 400, asked: 1 });
  });

  test.each([
    ['the newest token that it has', (newest: string) => newest],
    ['the same token each time, which the provider leaves', () => 'r-stays'],
  ])(
    '§4.7 token: of 299 refreshes in 17 s with %s, 2 reach the provider',
    async (_what, select) => {
      const { client, refreshToken } = await logInByCode(broker);
      if (select('') !== '') await rotate(broker, { refresh_token: undefined });
      const before = broker.asked();
      let newest = refreshToken;
      for (let n = 0; n < 299; n += 1) {
        const { status, json } = await refresh(client, select(newest));
        expect(status).toBe(200);
        newest = json.refresh_token ?? newest;
        broker.clock.advance(57);
      }
      expect(broker.asked() - before).toBe(2);
    },
  );

  test('§4.7 token: an answer that lives for less than that is given again as long as it lives', async () => {
    await rotate(broker, { expires_in: 5 });
    const { client, next } = await logInAndRefresh();
    broker.clock.advance(3500);
    expect(await refresh(client, next)).toMatchObject({ json: { expires_in: 1 }, asked: 0 });
    broker.clock.advance(1000);
    await expectForwarded(client, next);
  });

  test('§4.7 token: an answer that brings no refresh token brings none when it is given again', async () => {
    const { client, refreshToken } = await logInByCode(broker);
    await rotate(broker, { refresh_token: undefined, scope: 'openid', extra: { a: [1] } });
    const { json } = await refresh(client, refreshToken);
    expect(json).not.toHaveProperty('refresh_token');
    expect(await refresh(client, refreshToken)).toMatchObject({ json, asked: 0 });
  });

  test('§4.7 token: refreshes at the same moment all go to the provider', async () => {
    const { client, refreshToken } = await logInByCode(broker);
    const before = broker.asked();
    await Promise.all(Array.from({ length: 4 }, () => refresh(client, refreshToken)));
    expect(broker.asked() - before).toBe(4);
    expect((await refresh(client, refreshToken)).asked).toBe(0);
  });

  test('§4.7 token: nothing that the store has shows a token', async () => {
    const { next, tokens } = await logInAndRefresh();
    const hash = createHash('sha256').update(next).digest('base64url');
    const stored = await broker.store.get(`oauth:recent-answer:${hash}`);
    expect(stored).toBeDefined();
    for (const secret of [next, tokens.access_token, 'access_token']) {
      expect(stored).not.toContain(secret);
    }
  });
});

describe('a refresh that repeats none', () => {
  test.each([
    ['another scope', { scope: 'openid' }],
    ['another resource', { resource: 'https://gw.example/mcp' }],
    ['an extension of the provider’s', { organization: 'acme' }],
  ])('§4.7 token: one for %s goes to the provider', async (_what, change) => {
    const { client, next } = await logInAndRefresh();
    expect((await refresh(client, next, change)).asked).toBe(1);
  });

  test('§4.7 token: scope= asks for nothing else', async () => {
    const { client, next } = await logInAndRefresh();
    expect((await refresh(client, next, { scope: '', resource: '' })).asked).toBe(0);
  });

  test('§4.7 token: an answer whose refresh token was used since is not given again', async () => {
    const { client, first, next } = await logInAndRefresh();
    await refresh(client, next, { scope: 'openid' });
    await expectForwarded(client, first);
  });

  test.each([
    ['does not say how long it is good', { expires_in: undefined }],
    ['has no JWT', { access_token: 'opaque' }],
  ])('§4.7 token: an answer that %s is not given again', async (_what, change) => {
    await rotate(broker, change);
    const { client, next } = await logInAndRefresh();
    await expectForwarded(client, next);
  });

  test('§4.7 token: an access token that /mcp would refuse is not given again', async () => {
    await rotate(broker, { access_token: await broker.sign({ aud: 'https://other.example' }) });
    const elsewhere = await logInAndRefresh();
    await expectForwarded(elsewhere.client, elsewhere.next);

    const expiring = await broker.sign({ exp: broker.clock.now() / 1000 + 1 });
    await rotate(broker, { access_token: expiring });
    const { client, next } = await logInAndRefresh();
    expect((await refresh(client, next)).asked).toBe(0);
    broker.clock.advance(7000);
    await expectForwarded(client, next);
  });

  test('§4.7 token: another client never gets what a client was given, nor does it take it away', async () => {
    const { client, next } = await logInAndRefresh();
    const thief = await broker.steps.register();
    broker.answer(503, { error: 'temporarily_unavailable' });
    expect(await refresh(thief, next)).toMatchObject({ status: 503, asked: 1 });
    expect(await refresh(client, next)).toMatchObject({ status: 200, asked: 0 });
  });

  test.each([
    ['a client of the provider', 'my-app'],
    ['the playground', 'postern-playground'],
  ])('§4.7 token: each refresh of %s goes to the provider', async (_what, id) => {
    const client = { id, ...newPkce() };
    const { json } = await refresh(client, 'r-own');
    await expectForwarded(client, 'r-own', json.refresh_token);
  });
});

describe('a grant of which a token was revoked or refused', () => {
  test.each([
    ['refresh token', ({ next }: { next: string }) => next],
    ['refresh token before', ({ first }: { first: string }) => first],
    ['access token', ({ tokens }: { tokens: Tokens }) => tokens.access_token],
  ])('§4.7 revoke: once its %s was revoked, nothing is given again', async (_what, select) => {
    const login = await logInAndRefresh();
    broker.respond((res) => void res.writeHead(200).end());
    const revoked = { token: select(login), client_id: login.client.id };
    expect((await broker.steps.post('/oauth/revoke', revoked)).status).toBe(200);
    broker.answer(400, { error: 'invalid_grant' });
    expect(await refresh(login.client, login.next)).toMatchObject({ status: 400, asked: 1 });
    expect(await refresh(login.client, login.first)).toMatchObject({ status: 400, asked: 1 });
    await expectEnded(login.client, login.next);
  });

  test('§4.7 revoke: a refusal by /mcp after that brings nothing back', async () => {
    const exp = broker.clock.now() / 1000 + 60;
    await rotate(broker, { access_token: await broker.sign({ exp }) });
    const { client, next, tokens } = await logInAndRefresh();
    broker.respond((res) => void res.writeHead(200).end());
    await broker.steps.post('/oauth/revoke', { token: next, client_id: client.id });
    broker.clock.advance(70_000);
    expect((await callWith(tokens.access_token)).status).toBe(401);
    await expectEnded(client, next);
  });

  test('§4.7 revoke: nor where nobody knows whether the provider revoked it', async () => {
    const { client, next } = await logInAndRefresh();
    broker.respond((res) => void res.destroy());
    const revoked = { token: next, client_id: client.id };
    expect((await broker.steps.post('/oauth/revoke', revoked)).status).toBe(502);
    await expectEnded(client, next);
  });

  test('§4.7 revoke: while the provider is asked for it nothing is given again, and what it answers meanwhile is not either', async () => {
    const { client, next, tokens } = await logInAndRefresh();
    let answerRevocation = (): void => {};
    const isAsked = new Promise<void>((resolve) => {
      broker.respond((res) => {
        answerRevocation = () => void res.writeHead(200).end();
        resolve();
      });
    });
    const form = { token: tokens.access_token, client_id: client.id };
    const revoking = broker.steps.post('/oauth/revoke', form);
    await isAsked;
    await rotate(broker);
    const { json, asked } = await refresh(client, next);
    expect(asked).toBe(1);
    answerRevocation();
    expect((await revoking).status).toBe(200);
    await expectForwarded(client, json.refresh_token);
  });

  test('§4.7 revoke: an answer that was under way meanwhile is not given again either', async () => {
    const { client, next, tokens } = await logInAndRefresh();
    broker.clock.advance(11_000);
    const late = await broker.sign({ jti: 'late' });
    let answerLate = (): void => {};
    const isAsked = new Promise<void>((resolve) => {
      broker.respond((res) => {
        answerLate = () =>
          void res.end(
            JSON.stringify({ access_token: late, expires_in: 300, refresh_token: 'r-late' }),
          );
        resolve();
      });
    });
    const refreshing = refresh(client, next);
    await isAsked;
    broker.respond((res) => void res.writeHead(200).end());
    const revoked = { token: tokens.access_token, client_id: client.id };
    expect((await broker.steps.post('/oauth/revoke', revoked)).status).toBe(200);
    answerLate();
    expect((await refreshing).json.access_token).toBe(late);
    await rotate(broker);
    await expectForwarded(client, next, 'r-late');
  });

  test.each([
    ['400', 400, { error: 'invalid_grant' }],
    ['401', 401, { error: 'invalid_token' }],
    ['200 with an error', 200, { error: 'bad_refresh_token' }],
  ])(
    '§4.7 token: once the provider refused a token with %s, nothing is given again',
    async (_what, status, body) => {
      const { client, first, next } = await logInAndRefresh();
      broker.answer(status, body);
      await refresh(client, first, { scope: 'openid' });
      await expectEnded(client, next);
    },
  );

  test('§4.7 token: a refusal ends what was answered while the provider was asked, also of a login that nobody knew before', async () => {
    const client = await broker.steps.register();
    let refuse = (): void => {};
    const isAsked = new Promise<void>((resolve) => {
      broker.respond((res) => {
        refuse = () => void res.writeHead(400).end(JSON.stringify({ error: 'invalid_grant' }));
        resolve();
      });
    });
    const second = refresh(client, 'r-from-elsewhere');
    await isAsked;
    await rotate(broker);
    const { json } = await refresh(client, 'r-from-elsewhere');
    refuse();
    expect((await second).status).toBe(400);
    await expectForwarded(client, json.refresh_token, 'r-from-elsewhere');
  });

  test.each([503, 429])(
    '§4.7 token: a provider that answers %i refused nothing',
    async (status) => {
      const { client, next } = await logInAndRefresh();
      broker.answer(status, { error: 'temporarily_unavailable' });
      expect((await refresh(client, next, { scope: 'openid' })).asked).toBe(1);
      expect(await refresh(client, next)).toMatchObject({ status: 200, asked: 0 });
    },
  );

  test('§4.7 token: once /mcp refused a token of the grant, the provider is asked, and its answer then given again', async () => {
    const exp = broker.clock.now() / 1000 + 60;
    await rotate(broker, { access_token: await broker.sign({ exp, jti: 'earlier' }) });
    const { client, tokens: earlier, next: used } = await logInAndRefresh();
    broker.clock.advance(70_000);
    await rotate(broker);
    const { json } = await refresh(client, used);
    expect((await refresh(client, used)).asked).toBe(0);
    expect((await callWith(earlier.access_token)).status).toBe(401);
    const { json: latest, asked } = await refresh(client, json.refresh_token);
    expect(asked).toBe(1);
    expect(await refresh(client, latest.refresh_token)).toMatchObject({
      json: { access_token: latest.access_token },
      asked: 0,
    });
  });

  test('§4.7 token: tokens of others that /mcp refuses change nothing', async () => {
    const { client, next, tokens } = await logInAndRefresh();
    const expired = await broker.sign({ exp: broker.clock.now() / 1000 - 60 });
    await rotate(broker, { access_token: expired });
    const other = await logInAndRefresh();
    for (const token of [expired, `${tokens.access_token}x`, 'made-up', 'a.b.c']) {
      expect((await callWith(token)).status).toBe(401);
    }
    expect((await refresh(client, next)).asked).toBe(0);
    expect((await refresh(other.client, other.next)).asked).toBe(1);
  });

  test('§4.7 token: after the provider replaced its keys, a token by the former one does not come back', async () => {
    // Between two looks at the key set some seconds pass, and an unknown key makes the gateway look.
    broker.clock.advance(60_000);
    const { client, next } = await logInAndRefresh();
    expect((await refresh(client, next)).asked).toBe(0);
    const { issuer } = broker.gateway;
    await issuer.rotate();
    const fetches = issuer.fetches.keys;
    const calling = callWith(await broker.sign());
    await expect
      .poll(() => {
        broker.clock.advance(1);
        return issuer.fetches.keys;
      })
      .toBe(fetches + 1);
    expect((await calling).status).toBe(200);
    const { json, asked } = await refresh(client, next);
    expect(asked).toBe(1);
    expect((await callWith(json.access_token)).status).toBe(200);
  });
});

test('§4.7 token: a client that a document describes gets the answer again, too', async () => {
  const host = closeAfterTest(await startDocumentHost({ names: ['client.example'] }));
  const id = 'https://client.example/client.json';
  const described = closeAfterTest(
    await startBroker(
      { OAUTH_MODE: 'proxy', CIMD_ALLOWED_HOSTS: 'client.example' },
      { network: host.network },
    ),
  );
  host.answer(documentAnswer({ client_id: id, redirect_uris: [REDIRECT] }));
  await rotate(described);
  const client = { id, ...newPkce() };
  const { json } = await described.steps.refresh(client, 'r');
  const again = await described.steps.refresh(client, json.refresh_token);
  expect([again.json.access_token, described.asked()]).toEqual([json.access_token, 1]);
});

describe('on two replicas', () => {
  const upstream = useShared(startUpstream);
  const replicas = useShared(() =>
    startTwoReplicas({
      env: {
        OAUTH_TOKEN_URL: `${upstream.url}/token`,
        OAUTH_REVOCATION_URL: `${upstream.url}/revoke`,
        OAUTH_CLIENT_ID: 'provider-client',
      },
    }),
  );

  /** A login whose answer the other replica can give again; its access token from before has expired. */
  async function logIn() {
    const { one, other } = replicas;
    const sign = (exp: number) => one.issuer.sign({ exp, jti: `${Math.random()}` });
    const now = Math.floor(Date.now() / 1000);
    const answer = (access_token: string) =>
      upstream.answer(
        (res) =>
          void res.end(JSON.stringify({ access_token, expires_in: 300, refresh_token: 'r' })),
      );
    const client = await createLoginSteps(one).register();
    const expired = await sign(now - 60);
    answer(expired);
    await createLoginSteps(one).redeem(client, new URL(`${REDIRECT}?code=provider-code`));
    answer(await sign(now + 300));
    const { json } = await createLoginSteps(one).refresh(client, 'r');
    const asked = upstream.received.length;
    const ask = async () => {
      const { json: again } = await createLoginSteps(other).refresh(client, 'r');
      return { again, asked: upstream.received.length - asked };
    };
    return { client, expired, json, ask };
  }

  test('§4.7 token: the other one gives the answer again', async () => {
    const { json, ask } = await logIn();
    const { again, asked } = await ask();
    expect(again).toEqual({ ...json, expires_in: expect.toSatisfy((left) => left > 290) });
    expect(asked).toBe(0);
  });

  test('§4.7 token: a refusal by /mcp on one ends it on the other', async () => {
    const { expired, ask } = await logIn();
    const { status } = await replicas.one.request({
      method: 'POST',
      path: '/mcp',
      body: INITIALIZE_REQUEST,
      headers: { authorization: `Bearer ${expired}` },
    });
    expect(status).toBe(401);
    expect((await ask()).asked).toBe(1);
  });

  test('§4.7 token: a revocation on one ends it on the other', async () => {
    const { client, json, ask } = await logIn();
    const form = { token: json.access_token, client_id: client.id };
    await createLoginSteps(replicas.one).post('/oauth/revoke', form);
    // One of the two is the revocation.
    expect((await ask()).asked).toBe(2);
  });
});
