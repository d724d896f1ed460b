// RFC 6749 §4.1.2: an authorization code that is used a second time, by whom it was made for and by somebody else.
import { describe, expect, test } from 'vitest';
import { createAuditLog } from '../../support/gateway/audit-log.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { newPkce } from '../../support/oauth/login-steps.ts';
import { startOwnTokens, toTokens } from '../../support/oauth/own-tokens.ts';

describe.each([
  { store: 'the embedded store', isReplicated: false },
  { store: 'two replicas over Redis', isReplicated: true },
])('with $store', ({ isReplicated }) => {
  const own = useFresh(() => startOwnTokens({ isReplicated }));

  test('RFC 6749 §4.1.2, §5.11 code: the second use is refused, and what the first one got ends, here and at the provider', async () => {
    const client = await own.steps.register();
    const bystander = await own.logIn();
    const back = await own.logInTo(client);
    const tokens = toTokens(client, await own.steps.redeem(client, back));
    expect((await own.other.call(tokens.access)).status).toBe(200);
    const again = await own.other.steps.redeem(client, back);
    expect([again.status, again.json.error]).toEqual([400, 'invalid_grant']);
    expect((await own.call(tokens.access)).json.error.data.reason).toBe('token_revoked');
    expect((await own.refresh(tokens)).json.error).toBe('invalid_grant');
    await expect.poll(() => own.provider.revoked).toHaveLength(1);
    expect((await own.call(bystander.access)).status).toBe(200);
  });

  test('§5.11 code: that is so after minutes, too', async () => {
    const client = await own.steps.register();
    const back = await own.logInTo(client);
    const tokens = toTokens(client, await own.steps.redeem(client, back));
    own.clock.advance(5 * 60_000);
    expect((await own.other.steps.redeem(client, back)).status).toBe(400);
    expect((await own.call(tokens.access)).status).toBe(401);
  });

  test('§5.11 code: of many uses at once one at most is answered with tokens, and those are worth nothing', async () => {
    for (let round = 0; round < 5; round += 1) {
      const client = await own.steps.register();
      const back = await own.logInTo(client);
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, at) =>
          (at % 2 === 0 ? own : own.other).steps.redeem(client, back),
        ),
      );
      const given = answers.filter(({ status }) => status === 200);
      expect(given.length).toBeLessThanOrEqual(1);
      for (const answer of given) {
        const { access } = toTokens(client, answer);
        expect((await own.other.call(access)).status).toBe(401);
      }
      for (const { status, json } of answers) {
        if (status !== 200) expect([status, json.error]).toEqual([400, 'invalid_grant']);
      }
    }
  });

  test.each([
    { who: 'without its verifier', change: { code_verifier: newPkce().verifier } },
    { who: 'for another redirect URI', change: { redirect_uri: 'https://evil.example/' } },
    { who: 'as another client', change: {}, isOther: true },
  ])(
    '§5.11 code: whoever brings it $who is refused, and signs nobody out',
    async ({ change, isOther }) => {
      const client = await own.steps.register();
      const back = await own.logInTo(client);
      const tokens = toTokens(client, await own.steps.redeem(client, back));
      const thief = isOther ? { ...client, id: (await own.steps.register()).id } : client;
      for (const replica of [own, own.other]) {
        const { status, json } = await replica.steps.redeem(thief, back, change);
        expect([status, json.error]).toEqual([400, 'invalid_grant']);
      }
      expect((await own.other.call(tokens.access)).status).toBe(200);
      expect(own.provider.revoked).toEqual([]);
    },
  );

  test('§5.11 code: brought first by somebody without its verifier it is used up, and the tokens that it stood for end at the provider', async () => {
    const client = await own.steps.register();
    const back = await own.logInTo(client);
    const { verifier } = newPkce();
    expect((await own.steps.redeem(client, back, { code_verifier: verifier })).status).toBe(400);
    await expect.poll(() => own.provider.revoked).toHaveLength(1);
    expect((await own.other.steps.redeem(client, back)).json.error).toBe('invalid_grant');
    expect((await own.call((await own.logIn()).access)).status).toBe(200);
  });
});

test('§21.1, §5.11 code: log and audit log name the login that ended by it', async () => {
  const audit = await createAuditLog();
  const own = closeAfterTest(await startOwnTokens({ env: audit.env }));
  const client = await own.steps.register();
  const back = await own.logInTo(client);
  await own.steps.redeem(client, back);
  await own.steps.redeem(client, back);
  const [first, second] = audit.lines().filter(({ event }) => event === 'login');
  expect(first).toMatchObject({ outcome: 'success', grant: expect.any(String) });
  expect(second).toMatchObject({
    outcome: 'failure',
    reason: 'authorization_code_reused',
    user: 'user-1',
    client: client.id,
    grant: first?.grant,
  });
  const warned = own.gateway.log.filter((line) =>
    /code was redeemed twice/.test(JSON.stringify(line)),
  );
  expect(warned).toMatchObject([{ grant: first?.grant, client: client.id }]);
});
