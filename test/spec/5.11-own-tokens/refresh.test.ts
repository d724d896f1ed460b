// RFC 6749 §6 where the gateway issues tokens of its own: rotation, lost answers, theft, and what the provider is asked.
import { expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import { startOwnTokens, type Tokens, toTokens } from '../../support/oauth/own-tokens.ts';

const MINUTE_MS = 60_000;

const own = useFresh(() => startOwnTokens());

async function refresh(tokens: Tokens, change?: Record<string, string>): Promise<Tokens> {
  return toTokens(tokens.client, await own.refresh(tokens, change));
}

test('§5.11 refresh: while over half of the access token is left, the same pair comes again with the life that remains', async () => {
  const first = await own.logIn();
  own.clock.advance(29 * MINUTE_MS);
  const again = await refresh(first);
  expect(again).toEqual({ ...first, expiresIn: 31 * 60 });
});

test('§5.11 refresh: later both tokens are new, and the provider is not asked before its hour', async () => {
  const first = await own.logIn();
  own.clock.advance(31 * MINUTE_MS);
  const second = await refresh(first);
  expect(second.access).not.toBe(first.access);
  expect(second.refresh).not.toBe(first.refresh);
  expect(second.expiresIn).toBe(3600);
  expect((await own.call(second.access)).status).toBe(200);
  expect(own.provider.asked.refresh).toBe(0);
});

test('§5.11 refresh: an access token of the pair before stays good until it expires', async () => {
  const first = await own.logIn();
  own.clock.advance(31 * MINUTE_MS);
  await refresh(first);
  expect((await own.call(first.access)).status).toBe(200);
  own.clock.advance(29 * MINUTE_MS);
  const { status, json } = await own.call(first.access);
  expect([status, json.error.data.reason]).toEqual([401, 'expired_token']);
});

test('§5.11 refresh: who lost the answer gets it again, hours later too, as long as nobody has used it', async () => {
  const first = await own.logIn();
  own.clock.advance(31 * MINUTE_MS);
  const lost = await refresh(first);
  expect(await refresh(first)).toEqual(lost);
  own.clock.advance(5 * 60 * MINUTE_MS);
  const later = await refresh(first);
  expect(later.access).not.toBe(lost.access);
  expect((await own.call(later.access)).status).toBe(200);
});

test('§5.11 refresh: for a minute the replaced token is answered although its successor is in use, since requests cross', async () => {
  const first = await own.logIn();
  own.clock.advance(31 * MINUTE_MS);
  const second = await refresh(first);
  await own.call(second.access);
  own.clock.advance(59_000);
  expect((await refresh(first)).refresh).toBe(second.refresh);
});

test.each([
  { what: 'its access token', use: (tokens: Tokens) => own.call(tokens.access) },
  { what: 'its refresh token', use: (tokens: Tokens) => own.refresh(tokens) },
])(
  'RFC 9700 §4.14.2, §5.11 refresh: a replaced token after $what was used ends the login, for whoever has it',
  async ({ use }) => {
    const first = await own.logIn();
    const bystander = await own.logIn({ sub: 'user-2' });
    own.clock.advance(31 * MINUTE_MS);
    const second = await refresh(first);
    await use(second);
    own.clock.advance(61_000);
    await expect.poll(async () => (await own.refresh(first)).json.error).toBe('invalid_grant');
    const { status, json } = await own.call(second.access);
    expect([status, json.error.data.reason]).toEqual([401, 'token_revoked']);
    expect((await own.refresh(second)).status).toBe(400);
    expect(own.gateway.log.filter(({ msg }) => /may have been stolen/.test(msg))).toHaveLength(1);
    expect(own.provider.revoked).toHaveLength(1);
    expect((await own.call(bystander.access)).status).toBe(200);
  },
);

test('RFC 9700 §4.14.2, §5.11 refresh: one use is enough, also where the process knows the pair before', async () => {
  const first = await own.logIn();
  await own.call(first.access);
  own.clock.advance(31 * MINUTE_MS);
  const second = await refresh(first);
  await own.call(second.access);
  own.clock.advance(61_000);
  await expect.poll(async () => (await own.refresh(first)).json.error).toBe('invalid_grant');
  expect((await own.call(second.access)).status).toBe(401);
});

test('§5.11 refresh: after an hour the provider is asked, and its claims are taken over', async () => {
  const first = await own.logIn();
  own.provider.idToken = { name: 'Ada Lovelace', groups: ['staff'] };
  own.clock.advance(61 * MINUTE_MS);
  const second = await refresh(first);
  expect(own.provider.asked.refresh).toBe(1);
  expect((await own.call(second.access)).status).toBe(200);
});

test('§5.11 refresh: a user who was disabled at the provider is out at the next renewal, and nobody else is', async () => {
  const first = await own.logIn();
  const bystander = await own.logIn({ sub: 'user-2' });
  own.provider.disable('user-1');
  own.clock.advance(61 * MINUTE_MS);
  const { status, json } = await own.refresh(first);
  expect([status, json.error]).toEqual([400, 'invalid_grant']);
  expect((await own.refresh(bystander)).status).toBe(200);
});

test.each(['down', 'error', 'busy', 'refuse'] as const)(
  '§5.11 refresh: while the provider is %s refreshes go on for an hour, then wait with 503, and nobody is logged out',
  async (behaviour) => {
    let tokens = await own.logIn();
    own.provider.behave(behaviour);
    own.clock.advance(61 * MINUTE_MS);
    tokens = await refresh(tokens);
    expect((await own.call(tokens.access)).status).toBe(200);
    own.clock.advance(31 * MINUTE_MS);
    tokens = await refresh(tokens);
    own.clock.advance(31 * MINUTE_MS);
    const refused = await own.refresh(tokens);
    expect([refused.status, refused.json.error]).toEqual([503, 'temporarily_unavailable']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    own.provider.behave('ok');
    own.clock.advance(2 * MINUTE_MS);
    tokens = await refresh(tokens);
    expect((await own.call(tokens.access)).status).toBe(200);
  },
);

test('§5.11 refresh: without a refresh token of the provider a login ends after OAUTH_GRANT_UNRENEWED_SECONDS', async () => {
  own.provider.hasRefreshTokens = false;
  let tokens = await own.logIn();
  for (let hour = 0; hour < 7; hour += 1) {
    own.clock.advance(59 * MINUTE_MS);
    tokens = await refresh(tokens);
  }
  own.clock.advance(90 * MINUTE_MS);
  expect((await own.refresh(tokens)).json.error).toBe('invalid_grant');
});

test('§5.11 refresh: scopes may be narrowed and never widened', async () => {
  const first = await own.logIn();
  const narrow = await refresh(first, { scope: 'openid' });
  expect(narrow.scope).toBe('openid');
  const wide = await own.refresh(narrow, { scope: 'openid everything' });
  expect([wide.status, wide.json.error]).toEqual([400, 'invalid_scope']);
  expect((await refresh(narrow)).scope).toBe(first.scope);
});

test('§5.11 refresh: a token of another client is refused, and goes on working for its own', async () => {
  const first = await own.logIn();
  const stranger = await own.steps.register();
  const { status, json } = await own.steps.refresh(stranger, first.refresh);
  expect([status, json.error]).toEqual([400, 'invalid_grant']);
  expect((await own.refresh(first)).status).toBe(200);
});
