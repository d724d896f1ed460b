// What a client got while OAUTH_TOKENS was `provider`: its refresh token becomes a login of the gateway's own, once.
import { describe, expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import { startOwnTokens, type Tokens, toTokens } from '../../support/oauth/own-tokens.ts';
import { CLIENT_ID, type Claims } from '../../support/providers/opaque-provider.ts';

const MINUTE_MS = 60_000;

const own = useFresh(() => startOwnTokens({ isReplicated: true }));

/** A gateway as it was before: its clients get tokens that the provider made. */
const openBefore = () =>
  own.open({
    OAUTH_TOKENS: 'provider',
    OAUTH_ACCESS_TOKEN: 'id_token',
    OIDC_AUDIENCE: CLIENT_ID,
  });

async function logInBefore(claims?: Claims, change?: Record<string, string>): Promise<Tokens> {
  return (await openBefore()).logIn(claims, change);
}

/** Those who wait for another's answer look again after a while. */
async function whileTimePasses<Result>(work: () => Promise<Result>): Promise<Result> {
  const passing = setInterval(() => own.clock.advance(5), 5);
  return work().finally(() => clearInterval(passing));
}

/** What failed is not tried again at once, by Redis' own clock. */
async function refreshWhenPossible(before: Tokens): Promise<Tokens> {
  await expect
    .poll(async () => (await own.refresh(before)).status, { timeout: 8000, interval: 1000 })
    .toBe(200);
  return toTokens(before.client, await own.refresh(before));
}

const reasonOf = ({ status, json }: { status: number; json: { error: unknown } }) => [
  status,
  json.error,
];

test('§5.11 migration: a refresh token of the provider from before becomes a login of its own', async () => {
  const before = await logInBefore({ name: 'Ada' });
  expect(before.refresh).toMatch(/^refresh-/);
  const tokens = toTokens(before.client, await own.refresh(before));
  expect(tokens.access).toMatch(/^pst_/);
  expect(tokens.refresh).toMatch(/^psr_/);
  expect((await own.other.call(tokens.access)).status).toBe(200);
  expect(own.provider.asked.refresh).toBe(1);
});

test('§5.11 migration: the login goes on: it is renewed with what the provider gave, and ends when it is revoked', async () => {
  const before = await logInBefore();
  const first = toTokens(before.client, await own.refresh(before));
  own.clock.advance(61 * MINUTE_MS);
  const second = toTokens(before.client, await own.refresh(first));
  expect(own.provider.asked.refresh).toBe(2);
  const form = { token: second.refresh, client_id: before.client.id };
  expect((await own.steps.post('/oauth/revoke', form)).status).toBe(200);
  expect((await own.other.call(second.access)).status).toBe(401);
  expect(reasonOf(await own.other.refresh(before))).toEqual([400, 'invalid_grant']);
});

test('§5.11 migration: two requests that cross, at two replicas, get the same tokens, and the provider is asked once', async () => {
  const before = await logInBefore();
  const answers = await whileTimePasses(() =>
    Promise.all([own.refresh(before), own.other.refresh(before), own.refresh(before)]),
  );
  const pairs = answers.map((answer) => toTokens(before.client, answer));
  expect(new Set(pairs.map(({ refresh }) => refresh)).size).toBe(1);
  expect(own.provider.asked.refresh).toBe(1);
});

test('§5.11 migration: who lost the answer gets the same pair again, though the answer is in use', async () => {
  const before = await logInBefore();
  const first = toTokens(before.client, await own.refresh(before));
  await own.call(first.access);
  own.clock.advance(50_000);
  const again = toTokens(before.client, await own.other.refresh(before));
  expect([again.access, again.refresh]).toEqual([first.access, first.refresh]);
  expect(own.provider.asked.refresh).toBe(1);
});

test('RFC 9700 §4.14.2, §5.11 migration: brought again after its successor was in use it ends the login', async () => {
  const before = await logInBefore();
  const first = toTokens(before.client, await own.refresh(before));
  await own.refresh(first);
  own.clock.advance(61_000);
  expect(reasonOf(await own.other.refresh(before))).toEqual([400, 'invalid_grant']);
  expect((await own.call(first.access)).status).toBe(401);
  expect(own.provider.asked.refresh).toBe(1);
});

test('§5.11 migration: what the gateway has no record of is refused, and the provider not asked', async () => {
  const { client } = await logInBefore();
  for (const refreshToken of ['made-up', 'psr_made-up', 'pst_made-up']) {
    const refused = await own.steps.refresh(client, refreshToken);
    expect(reasonOf(refused)).toEqual([400, 'invalid_grant']);
  }
  expect(own.provider.asked.refresh).toBe(0);
});

test('§5.11 migration: the token of another client is refused, before and after its own client brought it', async () => {
  const before = await logInBefore();
  const stranger = await own.steps.register();
  const steal = () => own.steps.refresh(stranger, before.refresh);
  expect(reasonOf(await steal())).toEqual([400, 'invalid_grant']);
  expect(own.provider.asked.refresh).toBe(0);
  const tokens = toTokens(before.client, await own.refresh(before));
  expect(reasonOf(await steal())).toEqual([400, 'invalid_grant']);
  expect((await own.call(tokens.access)).status).toBe(200);
});

test('§5.11 migration: what was revoked stays so, whichever gateway revoked it', async () => {
  const gateway = await openBefore();
  const [atOld, atNew] = [await gateway.logIn(), await gateway.logIn()];
  const revoke = (steps: typeof own.steps, { refresh, client }: Tokens) =>
    steps.post('/oauth/revoke', { token: refresh, client_id: client.id });
  expect((await revoke(gateway.steps, atOld)).status).toBe(200);
  expect((await revoke(own.steps, atNew)).status).toBe(200);
  expect(own.provider.revoked).toEqual([atOld.refresh, atNew.refresh]);
  for (const tokens of [atOld, atNew]) {
    expect(reasonOf(await own.refresh(tokens))).toEqual([400, 'invalid_grant']);
  }
  expect(own.provider.asked.refresh).toBe(0);
});

test('RFC 7009 §2.1, §5.11 migration: another client revokes nothing; its own ends the login by the token from before', async () => {
  const before = await logInBefore();
  const stranger = await own.steps.register();
  const revoke = (clientId: string) =>
    own.steps.post('/oauth/revoke', { token: before.refresh, client_id: clientId });
  expect((await revoke(stranger.id)).status).toBe(400);
  const tokens = toTokens(before.client, await own.refresh(before));
  expect((await revoke(stranger.id)).status).toBe(400);
  expect((await own.call(tokens.access)).status).toBe(200);
  expect((await revoke(before.client.id)).status).toBe(200);
  expect((await own.other.call(tokens.access)).status).toBe(401);
});

test('§5.11 migration: a user who may not any more is out, and the client told that its login is over', async () => {
  const before = await logInBefore();
  own.provider.disable('user-1');
  expect(reasonOf(await own.refresh(before))).toEqual([400, 'invalid_grant']);
});

test('§5.11 migration: whom LOGIN_ALLOWED_EMAILS leaves out does not come in by an old login', async () => {
  const before = await logInBefore({ email: 'eve@elsewhere.example', email_verified: true });
  const strict = await own.open({ LOGIN_ALLOWED_EMAILS: '*@example.com' });
  expect(reasonOf(await strict.refresh(before))).toEqual([400, 'invalid_grant']);
  expect(own.provider.revoked).toHaveLength(1);
  expect(reasonOf(await strict.refresh(before))).toEqual([400, 'invalid_grant']);
  expect(own.provider.asked.refresh).toBe(1);
});

test('§5.11 migration: a provider that is down costs nobody the login', async () => {
  const before = await logInBefore();
  own.provider.behave('down');
  expect((await own.refresh(before)).status).toBe(502);
  own.provider.behave('ok');
  const tokens = await refreshWhenPossible(before);
  expect((await own.call(tokens.access)).status).toBe(200);
});

test('§5.11 migration: where a refresh brings no ID token, the userinfo endpoint says who it is', async () => {
  const before = await logInBefore();
  own.provider.renewsIdToken = false;
  own.provider.userinfo = { name: 'Ada of userinfo' };
  const { access } = toTokens(before.client, await own.refresh(before));
  const session = String((await own.call(access)).headers['mcp-session-id']);
  const { json } = await own.gateway.rpc(
    { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'user://profile' } },
    { token: access, session },
  );
  expect(JSON.parse(json.result.contents[0].text)).toMatchObject({
    sub: 'user-1',
    name: 'Ada of userinfo',
  });
});

test.each([
  { what: 'no sub', userinfo: { sub: undefined } },
  { what: 'an empty sub', userinfo: { sub: '' } },
  { what: 'the sub of a machine', userinfo: { sub: 'client:ci' } },
  { what: 'a sub that is no text', userinfo: { sub: 7 } },
])(
  '§5.11 migration: userinfo with $what says nobody, and nobody is let in',
  async ({ userinfo }) => {
    const before = await logInBefore();
    own.provider.renewsIdToken = false;
    own.provider.userinfo = userinfo;
    const refused = await own.refresh(before);
    expect(refused.status).toBe(502);
    expect(refused.text).not.toContain('pst_');
  },
);

test('§5.11 migration: a userinfo endpoint that fails once costs nobody the login, though the provider has rotated', async () => {
  const before = await logInBefore();
  own.provider.renewsIdToken = false;
  own.provider.userinfo = { sub: undefined };
  expect((await own.refresh(before)).status).toBe(502);
  own.provider.userinfo = {};
  const tokens = await refreshWhenPossible(before);
  expect((await own.call(tokens.access)).status).toBe(200);
});

describe('a roll of OAUTH_STATE_SECRET', () => {
  const [OLD, NEW] = ['the-secret-of-all-replicas-before', 'the-secret-of-all-replicas-after'];

  test.each([
    { what: 'the same pair again', minutes: 1 },
    { what: 'another pair', minutes: 31 },
    { what: 'a renewal at the provider', minutes: 61 },
  ])(
    '§5.11 migration: after a refresh that gave $what the old secret may go, and nobody is logged out',
    async ({ minutes }) => {
      const before = await own.open({ OAUTH_STATE_SECRET: OLD });
      const first = await before.logIn();
      const both = await own.open({ OAUTH_STATE_SECRET: `${NEW},${OLD}` });
      expect((await both.call(first.access)).status).toBe(200);
      own.clock.advance(minutes * MINUTE_MS);
      const second = toTokens(first.client, await both.refresh(first));
      const after = await own.open({ OAUTH_STATE_SECRET: NEW });
      expect((await after.call(second.access)).status).toBe(200);
      own.clock.advance(61 * MINUTE_MS);
      const third = toTokens(first.client, await after.refresh(second));
      expect((await after.call(third.access)).status).toBe(200);
    },
  );
});
