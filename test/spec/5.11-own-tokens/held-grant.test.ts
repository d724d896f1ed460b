// What happens between the moment at which a code is used up and that at which its grant stands in the store.
import { EventEmitter, once } from 'node:events';
import { expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { ask, logInBy, PAGE, startOperatedGateways } from '../../support/oauth/operator-logins.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

/** `held`: a grant is about to be written; it is once the test says `go`. */
async function start() {
  const events = new EventEmitter();
  let isHeld = false;
  const { store, remove } = await wrapStore((real) => ({
    async set(key, value, ttlSeconds) {
      if (isHeld && key.startsWith('oauth:grant:')) {
        const go = once(events, 'go');
        events.emit('held');
        await go;
      }
      return real.set(key, value, ttlSeconds);
    },
  }));
  closeAfterTest({ close: remove });
  const own = closeAfterTest(await startOperatedGateways({ deps: { store } }));
  const client = await own.steps.register();
  const back = await own.logInTo(client);
  const operator = await logInBy(own, PAGE);
  isHeld = true;
  const held = once(events, 'held');
  const first = own.steps.redeem(client, back);
  await held;
  return { own, client, back, operator, first, go: () => events.emit('go') };
}

test('§5.11 code: one that is used again before its grant stands comes to no grant', async () => {
  const { own, client, back, operator, first, go } = await start();
  expect((await own.steps.redeem(client, back)).json.error).toBe('invalid_grant');
  go();
  const { status, json } = await first;
  expect([status, json.error]).toEqual([400, 'invalid_grant']);
  expect((await ask(own, operator.access, '/grants?user=user-1')).json.grants).toEqual([]);
  await expect.poll(() => own.provider.revoked).toHaveLength(1);
});

test('§5.11 under way: nor does one whose user is logged out everywhere before it stands', async () => {
  const { own, operator, first, go } = await start();
  const path = '/grants?user=user-1';
  expect((await ask(own, operator.access, path, 'DELETE')).json).toEqual({ ended: 0 });
  go();
  const { status, json } = await first;
  expect([status, json.error]).toEqual([400, 'invalid_grant']);
  expect((await ask(own, operator.access, path)).json.grants).toEqual([]);
  await expect.poll(() => own.provider.revoked).toHaveLength(1);
});
