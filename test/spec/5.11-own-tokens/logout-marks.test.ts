// How long it is known that logins were ended, and what becomes of others where the store has lost a part of that.
import { expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { ask, logInBy, PAGE, startOperatedGateways } from '../../support/oauth/operator-logins.ts';
import { CLIENT_ID } from '../../support/providers/opaque-provider.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

const HOUR_MS = 3_600_000;

async function start() {
  const clock = manualClock(1_800_000_000_000);
  const { store, remove } = await wrapStore(() => ({}), clock);
  closeAfterTest({ close: remove });
  const own = closeAfterTest(await startOperatedGateways({ deps: { store, clock } }));
  const passHours = (hours: number) => {
    for (const one of [clock, own.clock]) one.advance(hours * HOUR_MS);
  };
  return { own, store, passHours };
}

test("§5.11 migration: a login from before own tokens ends with its user's others, however late its client comes", async () => {
  const { own, passHours } = await start();
  const before = await own.open({
    OAUTH_TOKENS: 'provider',
    OAUTH_ACCESS_TOKEN: 'id_token',
    OIDC_AUDIENCE: CLIENT_ID,
  });
  const [ended, others] = [await before.logIn(), await before.logIn({ sub: 'user-2' })];
  const operator = await logInBy(own, PAGE);
  const answer = await ask(own, operator.access, '/grants?user=user-1', 'DELETE');
  expect(answer.status).toBe(200);
  passHours(24 * 7);
  const refused = await own.refresh(ended);
  expect([refused.status, refused.json.error]).toEqual([400, 'invalid_grant']);
  expect((await own.refresh(others)).status).toBe(200);
});

test('§5.11 under way: where the store has lost how many ends there were, the next login is good all the same', async () => {
  const { own, store } = await start();
  const operator = await logInBy(own, PAGE);
  expect((await ask(own, operator.access, '/grants?all=true', 'DELETE')).status).toBe(200);
  await store.delete('oauth:logouts');
  // Nobody knows any more that this one began afterwards.
  const client = await own.steps.register();
  expect((await own.logInTo(client)).searchParams.get('error')).toBe('access_denied');
  const { access } = await own.logIn();
  expect((await own.call(access)).status).toBe(200);
});
