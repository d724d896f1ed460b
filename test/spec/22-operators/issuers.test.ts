// Two issuers may call their users the same: lists, filters, what ends, audit log and log tell them apart.
import { expect, test } from 'vitest';
import { stateless } from '../../support/clients/stateless.ts';
import { useFresh } from '../../support/lifetimes.ts';
import {
  logOutEverywhere,
  openAccount,
  readCsrf,
  readGrants,
} from '../../support/oauth/account-steps.ts';
import { assertUser, bringAssertion, ID_JAG_ENV } from '../../support/oauth/id-jag.ts';
import { startIssuer } from '../../support/oauth/issuer.ts';
import { fileOf, withSecret } from '../../support/oauth/machine-clients.ts';
import { ask, logInBy, PAGE, startOperatedGateways } from '../../support/oauth/operator-logins.ts';

const RULES = [
  { who: 'everyone', may: ['*'] },
  { who: 'everyone', may: ['service_ping'], ask: 'operator' },
];

const own = useFresh(async () => {
  const partner = await startIssuer();
  const setup = await startOperatedGateways({
    isReplicated: true,
    env: { ...ID_JAG_ENV, ID_JAG_ISSUERS: partner.url },
    deps: { file: await fileOf([withSecret('agent')], { rules: RULES }) },
  });
  return {
    ...setup,
    partner,
    async close() {
      await setup.close();
      await partner.close();
    },
  };
});

/** One at the gateway's own provider, the other at the partner's. */
async function logInBoth(sub = 'ada') {
  const { access: here } = await own.logIn({ sub, email: 'ada@example.com' });
  const claims = { sub, email: 'ada@example.com' };
  const assertion = await assertUser(own.partner, own.clock.now(), { claims });
  const there: string = (await bringAssertion(own.gateway, assertion)).json.access_token;
  for (const access of [here, there]) expect((await own.other.call(access)).status).toBe(200);
  const { access: operator } = await logInBy(own, PAGE);
  const show = async (path: string, at = own.other) => (await ask(at, operator, path)).json;
  const remove = (path: string) => ask(own, operator, path, 'DELETE');
  return { here, there, show, remove };
}

const isIn = async (access: string) => [
  (await own.call(access)).status === 200,
  (await own.other.call(access)).status === 200,
];

interface Shown {
  readonly user: string;
  readonly issuer?: string;
}
const whose = (shown: readonly Shown[]) =>
  shown
    .filter(({ user }) => user === 'ada')
    .map(({ issuer }) => issuer ?? 'here')
    .sort();

test('§22.2 operators: lists say whose users they are, and find one issuer’s alone', async () => {
  const { show, there } = await logInBoth();
  const { url } = own.partner;
  await stateless(own.gateway, 'tools/list', {}, { token: there });
  const both = [url, 'here'].sort();
  expect(whose((await show('/grants')).grants)).toEqual(both);
  expect(whose((await show('/sessions')).sessions)).toEqual(both);
  await expect.poll(async () => whose((await show('/callers')).callers)).toEqual(both);
  const of = `?user=ada&issuer=${encodeURIComponent(url)}`;
  for (const [query, found] of [
    ['?user=ada', ['here']],
    [of, [url]],
    ['?person=ada', both],
    ['?person=ada%40example.com', both],
    [`?user=ada&issuer=${encodeURIComponent('https://nobody.example')}`, []],
  ] as const) {
    expect(whose((await show(`/grants${query}`)).grants)).toEqual(found);
    expect(whose((await show(`/sessions${query}`)).sessions)).toEqual(found);
  }
  expect(whose((await show('/connections?person=ada')).people)).toEqual(both);
  expect((await show(`/grants?issuer=${encodeURIComponent(url)}`)).error.message).toBe(
    'Bad Request',
  );
});

test.each([
  { what: 'of the other issuer', isThere: true },
  { what: 'of the provider', isThere: false },
])(
  '§22.3 operators: all logins $what end, on each replica, and not those of the same user ID',
  async ({ isThere }) => {
    const { here, there, remove } = await logInBoth();
    const issuer = isThere ? own.partner.url : own.provider.issuer.url;
    const query = new URLSearchParams({ user: 'ada', issuer });
    expect((await remove(`/grants?${query}`)).json).toEqual({ ended: 1 });
    expect([await isIn(here), await isIn(there)]).toEqual(
      isThere
        ? [
            [true, true],
            [false, false],
          ]
        : [
            [false, false],
            [true, true],
          ],
    );
    const ended = own.audit.lines().find(({ action }) => action === 'end_grants');
    expect(ended).toMatchObject({ target: `user ada, issuer ${issuer}` });
  },
);

test('§22.3 operators: an issuer without a user ends nothing', async () => {
  const { here, there, remove } = await logInBoth();
  const alone = new URLSearchParams({ issuer: own.partner.url });
  expect((await remove(`/grants?${alone}`)).status).toBe(400);
  expect((await remove(`/grants?client=agent&${alone}`)).status).toBe(400);
  expect((await remove(`/connections?${alone}`)).status).toBe(400);
  expect([await isIn(here), await isIn(there)]).toEqual([
    [true, true],
    [true, true],
  ]);
});

test('§27.5, §21.1 calls that wait for operators say whose user it is, and so do their lines of the audit log', async () => {
  const { here, there, show } = await logInBoth();
  const { url } = own.partner;
  const both = [url, 'here'].sort();
  const calls = [here, there].map((token) =>
    stateless(own.gateway, 'tools/call', { name: 'service_ping' }, { token }),
  );
  const listWaiting = async () => (await show('/approvals')).approvals;
  await expect.poll(listWaiting).toHaveLength(calls.length);
  expect(whose(await listWaiting())).toEqual(both);
  const lines = own.audit.lines().filter(({ event }) => event === 'approval');
  expect(lines.map(({ issuer = 'here' }) => issuer).sort()).toEqual(both);
  own.clock.advance(600_000);
  await Promise.all(calls);
});

test('§21.1 audit: lines and the log say of which issuer a user is, where it is not the provider', async () => {
  const { here, there, remove } = await logInBoth();
  for (const token of [here, there])
    await stateless(own.gateway, 'tools/call', { name: 'missing', arguments: {} }, { token });
  await remove(`/grants?${new URLSearchParams({ user: 'ada', issuer: own.partner.url })}`);
  const { url } = own.partner;
  const lines = own.audit.lines().filter(({ user }) => user === 'ada');
  for (const event of ['login', 'tool_call']) {
    const issuers = lines.filter((line) => line.event === event).map(({ issuer }) => issuer);
    expect(issuers).toEqual([undefined, url]);
  }
  const said = own.gateway.log.filter(({ user, msg }) => user === 'ada' && msg === 'Logged out.');
  expect(said).toMatchObject([{ issuer: url }]);
});

test('§5.11 /account: nobody sees or ends what is of the same user ID at another issuer, one by one or all at once', async () => {
  const { here, there, show } = await logInBoth('user-1');
  const of = new URLSearchParams({ user: 'user-1', issuer: own.partner.url });
  const [other] = (await show(`/grants?${of}`)).grants;
  const { cookie } = await openAccount(own);
  const { text } = await own.steps.get('/account', cookie);
  expect(readGrants(text)).toHaveLength(1);
  expect(readGrants(text)).not.toContain(other.id);
  const form = { csrf: readCsrf(text), action: 'end', grant: other.id };
  expect((await own.steps.post('/account', form, cookie)).status).toBe(303);
  expect([await isIn(here), await isIn(there)]).toEqual([
    [true, true],
    [true, true],
  ]);
  await logOutEverywhere(own);
  expect([await isIn(here), await isIn(there)]).toEqual([
    [false, false],
    [true, true],
  ]);
});
