// §13: what a browser approved stands for the person who logged in then, until that person or an operator logs the client out.
import { describe, expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import { openAccount, readCsrf, readGrants } from '../../support/oauth/account-steps.ts';
import { type Client, questionOf, REDIRECT, STATE } from '../../support/oauth/login-steps.ts';
import { createLogoutTokens, sendLogout } from '../../support/oauth/logout-tokens.ts';
import {
  ask,
  listGrants,
  logInBy,
  PAGE,
  startOperatedGateways,
} from '../../support/oauth/operator-logins.ts';
import { type OwnTokenGateway, type Tokens, toTokens } from '../../support/oauth/own-tokens.ts';
import type { Claims } from '../../support/providers/opaque-provider.ts';

const BOB = { sub: 'user-2', name: 'Bob', email: 'bob@example.com' };

/** A browser in which one person approved the client, and has its tokens. */
interface Visit {
  readonly client: Client;
  readonly cookie: string;
  readonly tokens: Tokens;
}

const own = useFresh(() => startOperatedGateways({ isReplicated: true }));

async function logIn(claims: Claims = {}, known?: Client): Promise<Visit> {
  const client = known ?? (await own.steps.register());
  const { cookie, asked } = await own.steps.approve(client);
  const back = await own.steps.callback(own.provider.logIn(asked, claims), cookie);
  const to = new URL(back.headers.location ?? '');
  return { client, cookie, tokens: toTokens(client, await own.steps.redeem(client, to)) };
}

/** What the browser gets who opens a link of the client. */
async function open({ client, cookie }: Visit, at: OwnTokenGateway = own.other): Promise<string> {
  const { status, headers } = await at.steps.authorize(client, {}, cookie);
  if (status === 200) return 'the page';
  return headers.location?.startsWith(own.provider.issuer.url) ? 'the provider' : `${status}`;
}

async function logOutAtAccount(grantsOf: Claims, count: number): Promise<void> {
  const { cookie } = await openAccount(own, grantsOf);
  const { text } = await own.steps.get('/account', cookie);
  expect(readGrants(text)).toHaveLength(count);
  const form = { csrf: readCsrf(text), action: 'end', grant: readGrants(text)[0] };
  expect((await own.steps.post('/account', form, cookie)).status).toBe(303);
}

async function operate(query: (operator: Tokens) => Promise<string> | string): Promise<void> {
  const operator = await logInBy(own, PAGE);
  const { status } = await ask(own, operator.access, `/grants${await query(operator)}`, 'DELETE');
  expect([200, 204]).toContain(status);
}

describe('a logout that was meant', () => {
  test.each<{ what: string; end: (visit: Visit) => Promise<void>; isOfAll?: true }>([
    { what: '“Log out” at /account', end: () => logOutAtAccount({ sub: 'ada' }, 1) },
    {
      what: 'an operator who ends the login',
      end: ({ client }) =>
        operate(async ({ access }) => {
          const grants = await listGrants(own, access, '?user=ada');
          return `/${grants.find((one) => one.client.id === client.id)?.id}`;
        }),
    },
    { what: 'an operator who ends all of the person', end: () => operate(() => '?user=ada') },
    {
      what: 'an operator who ends all of the client',
      isOfAll: true,
      end: ({ client }) => operate(() => `?client=${client.id}`),
    },
    {
      what: 'an operator who ends those of the person by the client',
      end: ({ client }) => operate(() => `?user=ada&client=${client.id}`),
    },
  ])(
    '§13 approvals: $what has the client ask again, at each replica, and nobody else',
    async ({ end, isOfAll }) => {
      const ada = await logIn({ sub: 'ada' });
      const bob = await logIn(BOB, isOfAll ? undefined : ada.client);
      expect([await open(ada), await open(bob)]).toEqual(['the provider', 'the provider']);
      await end(ada);
      for (const replica of [own, own.other]) {
        expect([await open(ada, replica), await open(bob, replica)]).toEqual([
          'the page',
          'the provider',
        ]);
      }
    },
  );

  test('§13 approvals: what is approved after it holds, and the end of everybody is one, too', async () => {
    const ada = await logIn({ sub: 'ada' });
    await operate(() => '?all=true');
    expect(await open(ada)).toBe('the page');
    const question = await own.steps.ask(ada.client, {}, ada.cookie);
    const decided = await own.other.steps.decide(question, 'approve', ada.cookie);
    const asked = new URL(decided.headers.location ?? '');
    await own.steps.callback(own.provider.logIn(asked, { sub: 'ada' }), ada.cookie);
    expect(await open(ada)).toBe('the provider');
  });

  test('§13 approvals: neither a client that logs itself out nor a logout at the provider is one', async () => {
    const ada = await logIn({ sub: 'ada', sid: 'sid-1' });
    const revoked = await own.steps.post('/oauth/revoke', {
      token: ada.tokens.refresh,
      client_id: ada.client.id,
    });
    expect(revoked.status).toBe(200);
    const token = await createLogoutTokens(own).sign({ sub: 'ada', sid: undefined });
    expect((await sendLogout(own.gateway, token)).status).toBe(200);
    expect(await open(ada)).toBe('the provider');
  });
});

describe('another person in the same browser', () => {
  test('§13 approvals: another person is asked before the client gets anything, and may refuse', async () => {
    const ada = await logIn({ sub: 'ada' });
    const led = await own.steps.authorize(ada.client, {}, ada.cookie);
    const asked = new URL(led.headers.location ?? '');
    const back = await own.other.steps.callback(own.provider.logIn(asked, BOB), ada.cookie);
    const to = new URL(back.headers.location ?? '');
    expect([back.status, to.origin + to.pathname]).toEqual([
      303,
      'https://gw.example/oauth/authorize',
    ]);
    expect(to.searchParams.get('state')).toBe(STATE);
    const page = await own.steps.get(`${to.pathname}${to.search}`, ada.cookie);
    const denied = await own.steps.decide(questionOf(page), 'deny', ada.cookie);
    expect(denied.headers.location).toContain(`${REDIRECT}?error=access_denied`);
    expect(await open(ada)).toBe('the page');
  });

  test('§13 approvals: what the next person approves counts for that person', async () => {
    const ada = await logIn({ sub: 'ada' });
    const first = await own.steps.authorize(ada.client, {}, ada.cookie);
    const asked = new URL(first.headers.location ?? '');
    const back = await own.steps.callback(own.provider.logIn(asked, BOB), ada.cookie);
    const to = new URL(back.headers.location ?? '');
    const page = await own.steps.get(`${to.pathname}${to.search}`, ada.cookie);
    const decided = await own.steps.decide(questionOf(page), 'approve', ada.cookie);
    const again = new URL(decided.headers.location ?? '');
    const done = await own.steps.callback(own.provider.logIn(again, BOB), ada.cookie);
    const redeemed = await own.steps.redeem(ada.client, new URL(done.headers.location ?? ''));
    expect(redeemed.status).toBe(200);
    expect(await open(ada)).toBe('the provider');
  });

  test('§13 approvals: a login that the provider did not let in leaves nothing approved', async () => {
    const client = await own.steps.register();
    const { cookie, asked } = await own.steps.approve(client);
    const state = asked.searchParams.get('state') ?? '';
    await own.steps.callback({ error: 'access_denied', state }, cookie);
    expect((await own.steps.authorize(client, {}, cookie)).status).toBe(200);
  });

  test('§13 approvals: a logout while the provider asks who it is counts, too', async () => {
    const ada = await logIn({ sub: 'ada' });
    const led = await own.steps.authorize(ada.client, {}, ada.cookie);
    await logOutAtAccount({ sub: 'ada' }, 1);
    const asked = new URL(led.headers.location ?? '');
    const back = await own.other.steps.callback(
      own.provider.logIn(asked, { sub: 'ada' }),
      ada.cookie,
    );
    expect(back.headers.location).toMatch(/^https:\/\/gw\.example\/oauth\/authorize\?/);
    expect(await open(ada)).toBe('the page');
  });
});
