// A login whose grant the store wrote without saying so: nobody has its tokens, so it must not be there.
import { expect, test } from 'vitest';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { ask, logInBy, PAGE, startOperatedGateways } from '../../support/oauth/operator-logins.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

test.each([
  { what: 'wrote it all the same', isWritten: true },
  { what: 'has not written it', isWritten: false },
])(
  '§5.11 login: where the store fails, and $what, no login is left, here or at the provider',
  async ({ isWritten }) => {
    let fails = false;
    const { store, remove } = await wrapStore((real) => ({
      async set(key, value, ttlSeconds) {
        if (!fails || !key.startsWith('oauth:grant:')) return real.set(key, value, ttlSeconds);
        if (isWritten) await real.set(key, value, ttlSeconds);
        throw new StoreUnavailable('no answer');
      },
    }));
    closeAfterTest({ close: remove });
    const own = closeAfterTest(await startOperatedGateways({ deps: { store } }));
    const operator = await logInBy(own, PAGE);
    const client = await own.steps.register();
    const back = await own.logInTo(client);
    fails = true;
    expect((await own.steps.redeem(client, back)).status).toBe(500);
    await expect.poll(() => own.provider.revoked).toHaveLength(1);
    expect((await ask(own, operator.access, '/grants?user=user-1')).json.grants).toEqual([]);
  },
);
