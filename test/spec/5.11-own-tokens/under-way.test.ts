// "Log out everywhere", and an operator's end of logins, reach what is under way: codes, logins, and browsers at /account.
import { describe, expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import {
  type AccountVisit,
  logOutEverywhere,
  openAccount,
  readCookie,
  readCsrf,
  readGrants,
} from '../../support/oauth/account-steps.ts';
import {
  ask,
  logInBy,
  type OperatorSetup,
  PAGE,
  startOperatedGateways,
} from '../../support/oauth/operator-logins.ts';
import { type OwnTokenGateway, toTokens } from '../../support/oauth/own-tokens.ts';

const BOB = { sub: 'user-2', name: 'Bob', email: 'bob@example.com' };

const isLoggedIn = async ({ steps }: OwnTokenGateway, { cookie }: Pick<AccountVisit, 'cookie'>) =>
  (await steps.get('/account', cookie)).status === 200;

async function beginLogin(own: OperatorSetup, clientId?: string) {
  const client = await own.steps.register();
  const used = clientId === undefined ? client : { ...client, id: clientId };
  return { client: used, ...(await own.steps.approve(used)) };
}

describe.each([
  { store: 'the embedded store', isReplicated: false },
  { store: 'two replicas over Redis', isReplicated: true },
])('with $store', ({ isReplicated }) => {
  const own = useFresh(() => startOperatedGateways({ isReplicated }));

  test('§5.11 under way: "Log out everywhere" ends codes of the user that nobody has redeemed, and those of nobody else', async () => {
    const client = await own.steps.register();
    const [code, bobs] = [await own.logInTo(client), await own.logInTo(client, BOB)];
    // Somebody has to have a login, or the page has nothing to end.
    await own.logIn();
    await logOutEverywhere(own);
    const refused = await own.other.steps.redeem(client, code);
    expect([refused.status, refused.json.error]).toEqual([400, 'invalid_grant']);
    const bob = toTokens(client, await own.other.steps.redeem(client, bobs));
    expect((await own.call(bob.access)).status).toBe(200);
    const later = toTokens(client, await own.other.steps.redeem(client, await own.logInTo(client)));
    expect((await own.call(later.access)).status).toBe(200);
  });

  test('§5.11 under way: it ends other browsers of the user at /account, and not the one that was used for it', async () => {
    const other = await openAccount(own);
    const bobs = await openAccount(own, BOB);
    const cookie = await logOutEverywhere(own);
    expect(await isLoggedIn(own.other, other)).toBe(false);
    expect(await isLoggedIn(own.other, bobs)).toBe(true);
    expect(await isLoggedIn(own.other, { cookie })).toBe(true);
    expect(await isLoggedIn(own.other, await openAccount(own))).toBe(true);
  });

  test('§5.11 under way: a form of a browser that was logged out so ends nothing', async () => {
    const other = await openAccount(own);
    const csrf = readCsrf((await own.steps.get('/account', other.cookie)).text);
    await logOutEverywhere(own);
    const { access } = await own.logIn();
    const { text } = await own.steps.get('/account', (await openAccount(own)).cookie);
    const [grant] = readGrants(text);
    expect(grant).toBeDefined();
    await own.steps.post('/account', { csrf, action: 'end', grant }, other.cookie);
    expect((await own.call(access)).status).toBe(200);
  });

  test('§5.11 under way: a login that had begun, and comes back afterwards, has to begin again', async () => {
    const { client, cookie, asked } = await beginLogin(own);
    const visit = await own.steps.get('/account');
    await logOutEverywhere(own);
    const back = await own.other.steps.callback(own.provider.logIn(asked), cookie);
    const { searchParams } = new URL(back.headers.location ?? '');
    expect([searchParams.get('error'), searchParams.get('code')]).toEqual(['access_denied', null]);
    await expect.poll(() => own.provider.revoked.length).toBeGreaterThan(0);
    const page = await own.other.steps.callback(
      own.provider.logIn(new URL(visit.headers.location ?? '')),
      readCookie(visit.headers['set-cookie']),
    );
    expect(page.headers['set-cookie']).toBeUndefined();
    const later = toTokens(client, await own.steps.redeem(client, await own.logInTo(client)));
    expect((await own.call(later.access)).status).toBe(200);
  });

  test('§5.11 under way: whatever comes first when a code is redeemed at the moment of the end, no login is left', async () => {
    const operator = await logInBy(own, PAGE);
    for (let round = 0; round < 8; round += 1) {
      const client = await own.steps.register();
      const back = await own.logInTo(client);
      const [answer] = await Promise.all([
        own.other.steps.redeem(client, back),
        ask(own, operator.access, '/grants?user=user-1', 'DELETE'),
      ]);
      if (answer.status === 200) {
        expect((await own.call(toTokens(client, answer).access)).status).toBe(401);
      } else expect(answer.json.error).toBe('invalid_grant');
    }
  });

  test.each([
    { query: 'user=user-1', codes: [false, false, true], browsers: [false, true] },
    { query: 'client=ONE', codes: [false, true, false], browsers: [true, true] },
    { query: 'user=user-1&client=ONE', codes: [false, true, true], browsers: [true, true] },
    { query: 'all=true', codes: [false, false, false], browsers: [false, false] },
  ])(
    '§22.3, §5.11 under way: an operator who ends $query ends these codes and browsers',
    async ({ query, codes, browsers }) => {
      const [one, other] = [await own.steps.register(), await own.steps.register()];
      const under = [
        { client: one, back: await own.logInTo(one) },
        { client: other, back: await own.logInTo(other) },
        { client: one, back: await own.logInTo(one, BOB) },
      ];
      const visits = [await openAccount(own), await openAccount(own, BOB)];
      const operator = await logInBy(own, PAGE);
      const path = `/grants?${query.replace('ONE', one.id)}`;
      expect((await ask(own, operator.access, path, 'DELETE')).status).toBe(200);
      const statuses = [];
      for (const { client, back } of under) {
        statuses.push((await own.other.steps.redeem(client, back)).status === 200);
      }
      expect(statuses).toEqual(codes);
      const open = [];
      for (const visit of visits) open.push(await isLoggedIn(own.other, visit));
      expect(open).toEqual(browsers);
    },
  );
});
