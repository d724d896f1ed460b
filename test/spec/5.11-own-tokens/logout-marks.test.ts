// What becomes of logins where the store has lost a part of what it knew of those that were ended.
import { expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { ask, logInBy, PAGE, startOperatedGateways } from '../../support/oauth/operator-logins.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

test('§5.11 under way: where the store has lost how many ends there were, the next login is good all the same', async () => {
  const clock = manualClock(1_800_000_000_000);
  const { store, remove } = await wrapStore(() => ({}), clock);
  closeAfterTest({ close: remove });
  const own = closeAfterTest(await startOperatedGateways({ deps: { store, clock } }));
  const operator = await logInBy(own, PAGE);
  expect((await ask(own, operator.access, '/grants?all=true', 'DELETE')).status).toBe(200);
  await store.delete('oauth:logouts');
  // Nobody knows any more that this one began afterwards.
  const client = await own.steps.register();
  expect((await own.logInTo(client)).searchParams.get('error')).toBe('access_denied');
  const { access } = await own.logIn();
  expect((await own.call(access)).status).toBe(200);
});
