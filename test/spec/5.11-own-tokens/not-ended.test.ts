// Where one login cannot be ended, the others are, and whoever wanted it hears of it.
import { expect, test } from 'vitest';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import {
  openAccount,
  readCookie,
  readCsrf,
  readGrants,
} from '../../support/oauth/account-steps.ts';
import {
  ask,
  listGrants,
  logInBy,
  PAGE,
  startOperatedGateways,
  tryCall,
} from '../../support/oauth/operator-logins.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

/** `stuck` are ids of grants that the store does not end. */
async function start() {
  const stuck = new Set<string>();
  const { store, remove } = await wrapStore((real) => ({
    getAndDelete: async (key) => {
      if (stuck.has(key.split(':').at(-1) ?? '')) throw new StoreUnavailable('stuck');
      return real.getAndDelete(key);
    },
  }));
  closeAfterTest({ close: remove });
  const own = closeAfterTest(await startOperatedGateways({ deps: { store } }));
  return { own, stuck };
}

test('§5.11, §21.1 account: what cannot be ended stops nothing else from ending, is said on the page, and can be tried again', async () => {
  const { own, stuck } = await start();
  const logins = [await own.logIn(), await own.logIn(), await own.logIn()];
  const { cookie } = await openAccount(own);
  const first = (await own.steps.get('/account', cookie)).text;
  const [, grant = ''] = readGrants(first);
  const led = await own.steps.post(
    '/account',
    { csrf: readCsrf(first), action: 'end_all' },
    cookie,
  );
  const asked = new URL(led.headers.location ?? '');
  const auth_time = Math.floor(own.clock.now() / 1000);
  const back = await own.steps.callback(own.provider.logIn(asked, { auth_time }), cookie);
  const fresh = `${cookie.split(';')[0]}; ${readCookie(back.headers['set-cookie'])}`;
  const { text } = await own.steps.get('/account?all=1', fresh);
  stuck.add(grant);
  // Nothing at the provider keeps anything from ending, either.
  own.provider.behave('down');
  const form = { csrf: readCsrf(text), action: 'end_all' };
  const answer = await own.steps.post('/account', form, fresh);
  expect([answer.status, readGrants(answer.text)]).toEqual([200, [grant]]);
  expect(answer.text).toContain('One app could not be logged out');
  const left = [];
  for (const tokens of logins) left.push(await tryCall(own, tokens));
  expect(left.sort()).toEqual(['let in', 'token_revoked', 'token_revoked']);
  const revoked = own.audit.lines().filter(({ event }) => event === 'revocation');
  expect(revoked.map((line) => line.outcome)).toEqual(['success', 'success']);
  expect(revoked.map((line) => line.grant)).not.toContain(grant);

  stuck.clear();
  own.provider.behave('ok');
  const now = `${cookie.split(';')[0]}; ${readCookie(answer.headers['set-cookie'])}`;
  const again = { csrf: readCsrf(answer.text), action: 'end', grant };
  await own.steps.post('/account', again, now);
  for (const tokens of logins) expect(await tryCall(own, tokens)).toBe('token_revoked');
});

test('§22.3 operators: what cannot be ended stops nothing else from ending, and is no success', async () => {
  const { own, stuck } = await start();
  const logins = [await own.logIn(), await own.logIn(), await own.logIn()];
  const operator = await logInBy(own, PAGE);
  const [, grant] = await listGrants(own, operator.access, '?user=user-1');
  stuck.add(grant?.id ?? '');
  const end = () => ask(own, operator.access, '/grants?user=user-1', 'DELETE');
  const { status, json } = await end();
  expect([status, json.error.data.reason]).toEqual([500, 'grants_not_ended']);
  expect(json.error.data.details).toMatch(
    /have ended: 2\. Still there, because the store failed: 1\./,
  );
  const left = [];
  for (const tokens of logins) left.push(await tryCall(own, tokens));
  expect(left.sort()).toEqual(['let in', 'token_revoked', 'token_revoked']);
  const lines = own.audit.lines();
  expect(lines.filter(({ action }) => action === 'end_grant')).toHaveLength(2);
  expect(lines.filter(({ action }) => action === 'end_grants')).toMatchObject([
    { outcome: 'failure', reason: 'grants_not_ended' },
  ]);
  stuck.clear();
  expect((await end()).json).toEqual({ ended: 1 });
});
