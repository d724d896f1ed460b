// Back-channel logout: what ends where the provider says that somebody logged out there, on every replica, and what stays.
import { describe, expect, test } from 'vitest';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { openAccount } from '../../support/oauth/account-steps.ts';
import { createLogoutTokens, sendLogout } from '../../support/oauth/logout-tokens.ts';
import {
  type OwnTokenGateway,
  type OwnTokenSetup,
  startOwnTokens,
  type Tokens,
  toTokens,
} from '../../support/oauth/own-tokens.ts';
import type { Claims } from '../../support/providers/opaque-provider.ts';

const HOUR_MS = 3_600_000;
const BOB = { sub: 'user-2', name: 'Bob', email: 'bob@example.com' };

const isAlive = async (at: OwnTokenGateway, { access }: Tokens): Promise<boolean> =>
  (await at.call(access)).status === 200;

async function endAtProvider(own: OwnTokenSetup, change: Claims, at = own.gateway): Promise<void> {
  const { status, text } = await sendLogout(at, await createLogoutTokens(own).sign(change));
  expect([status, text]).toEqual([200, '']);
}

const ENDS_SESSION = [
  { what: 'sub and sid', change: {}, ended: ['ada one', 'ada one again'] },
  { what: 'sid alone', change: { sub: undefined }, ended: ['ada one', 'ada one again', 'bob one'] },
  {
    what: 'sub alone',
    change: { sid: undefined },
    ended: ['ada one', 'ada one again', 'ada two', 'ada none'],
  },
  { what: 'sub and sid that are of two people', change: { sid: 'sid-3' }, ended: [] },
  { what: 'a user that there is none of', change: { sub: 'nobody' }, ended: [] },
  { what: 'a sid that there is none of', change: { sid: 'sid-9', sub: undefined }, ended: [] },
];

const ALL_OF_ADA = ['ada one', 'ada one again', 'ada two', 'ada none'];

const ENDS_ALL = [
  { what: 'sub and sid', change: {}, ended: ALL_OF_ADA },
  { what: 'sub alone', change: { sid: undefined }, ended: ALL_OF_ADA },
  { what: 'sid alone', change: { sub: undefined, sid: 'sid-2' }, ended: ALL_OF_ADA },
  {
    what: 'a sid of another',
    change: { sub: undefined, sid: 'sid-3' },
    ended: ['bob three', 'bob one'],
  },
  { what: 'a sid that there is none of', change: { sid: 'sid-9', sub: undefined }, ended: [] },
];

/** The same text may be the sid of two people's sessions: who logs out in a browser that somebody else uses next. */
const LOGINS: Readonly<Record<string, Claims>> = {
  'ada one': { sid: 'sid-1' },
  'ada one again': { sid: 'sid-1' },
  'ada two': { sid: 'sid-2' },
  'ada none': {},
  'bob one': { ...BOB, sid: 'sid-1' },
  'bob three': { ...BOB, sid: 'sid-3' },
};

async function expectEnds(own: OwnTokenSetup, change: Claims, ended: readonly string[]) {
  const logins = new Map<string, Tokens>();
  for (const [name, claims] of Object.entries(LOGINS)) logins.set(name, await own.logIn(claims));
  for (const tokens of logins.values()) expect(await isAlive(own.other, tokens)).toBe(true);
  await endAtProvider(own, change);
  const gone: string[] = [];
  for (const [name, tokens] of logins) {
    const { status, json } = await own.other.call(tokens.access);
    if (status === 200) continue;
    expect([status, json.error.data.reason]).toEqual([401, 'token_revoked']);
    expect((await own.other.refresh(tokens)).json.error).toBe('invalid_grant');
    gone.push(name);
  }
  expect(gone.sort()).toEqual([...ended].sort());
}

describe.each([
  { store: 'the embedded store', isReplicated: false },
  { store: 'two replicas over Redis', isReplicated: true },
])('with $store', ({ isReplicated }) => {
  const own = useFresh(() => startOwnTokens({ isReplicated }));

  test.each(ENDS_SESSION)(
    '§13.4 provider logout: $what ends what it names, at the next call on every replica, and nothing else',
    ({ change, ended }) => expectEnds(own, change, ended),
  );

  test('§13.4 provider logout: a code of the session that is redeemed afterwards comes to nothing; others do', async () => {
    const client = await own.steps.register();
    const code = await own.logInTo(client, { sid: 'sid-1' });
    const other = await own.logInTo(client, { sid: 'sid-2' });
    const bobs = await own.logInTo(client, { ...BOB, sid: 'sid-1' });
    await endAtProvider(own, {});
    own.clock.advance(30_000);
    const refused = await own.other.steps.redeem(client, code);
    expect([refused.status, refused.json.error]).toEqual([400, 'invalid_grant']);
    for (const back of [other, bobs]) {
      const tokens = toTokens(client, await own.other.steps.redeem(client, back));
      expect(await isAlive(own, tokens)).toBe(true);
    }
    await expect.poll(() => own.provider.revoked.length).toBe(1);
  });

  test('§13.4 provider logout: a login under way that comes back with the session has to begin again; a new one is good', async () => {
    const client = await own.steps.register();
    const { cookie, asked } = await own.steps.approve(client);
    await endAtProvider(own, {});
    own.clock.advance(9 * 60_000);
    const back = await own.other.steps.callback(
      own.provider.logIn(asked, { sid: 'sid-1' }),
      cookie,
    );
    const { searchParams } = new URL(back.headers.location ?? '');
    expect([searchParams.get('error'), searchParams.get('code')]).toEqual(['access_denied', null]);
    // The provider has let the user in again, whatever it calls the session.
    expect(await isAlive(own.other, await own.logIn({ sid: 'sid-1' }))).toBe(true);
  });

  test('§13.4 provider logout: whatever comes first when a code is redeemed at that moment, no login is left', async () => {
    for (let round = 0; round < 12; round += 1) {
      const sid = `sid-${round}`;
      const client = await own.steps.register();
      const back = await own.logInTo(client, { sid });
      const token = await createLogoutTokens(own).sign(
        round % 2 ? { sid } : { sid, sub: undefined },
      );
      const [answer, logout] = await Promise.all([
        own.other.steps.redeem(client, back),
        sendLogout(own.gateway, token),
      ]);
      expect(logout.status).toBe(200);
      if (answer.status === 200) {
        expect(await isAlive(own, toTokens(client, answer))).toBe(false);
      } else expect(answer.json.error).toBe('invalid_grant');
    }
  });

  test('§13.4 provider logout: a browser at /account that logged in by the session is out, and stays out', async () => {
    const ended = await openAccount(own, { sid: 'sid-1' });
    const later = await openAccount(own, { sid: 'sid-1' });
    const other = await openAccount(own, { sid: 'sid-2' });
    const isOpen = async ({ cookie }: { cookie: string }) =>
      (await own.other.steps.get('/account', cookie)).status === 200;
    expect(await isOpen(ended)).toBe(true);
    await endAtProvider(own, { sub: undefined });
    expect([await isOpen(ended), await isOpen(other)]).toEqual([false, true]);
    own.clock.advance(12 * 60_000);
    expect([await isOpen(ended), await isOpen(later), await isOpen(other)]).toEqual([
      false,
      false,
      true,
    ]);
  });

  test('§13.4 provider logout: a login that became one of another session when it was renewed ends with that one', async () => {
    const moved = await own.logIn({ sid: 'sid-1' });
    own.clock.advance(1.1 * HOUR_MS);
    own.provider.idToken = { sid: 'sid-2' };
    const renewed = toTokens(moved.client, await own.refresh(moved));
    own.provider.idToken = {};
    const stayed = await own.logIn({ sid: 'sid-1' });
    await endAtProvider(own, { sub: undefined });
    expect(await isAlive(own.other, renewed)).toBe(true);
    expect(await isAlive(own.other, stayed)).toBe(false);
    await endAtProvider(own, { sub: undefined, sid: 'sid-2' });
    expect(await isAlive(own.other, renewed)).toBe(false);
  });

  test('§13.4 provider logout: a login that was refreshed for long is found by its session all the same', async () => {
    let used = await own.logIn({ sid: 'sid-1' });
    for (let day = 0; day < 40; day += 1) {
      own.clock.sleep(24 * HOUR_MS);
      used = toTokens(used.client, await own.refresh(used));
    }
    expect(await isAlive(own.other, used)).toBe(true);
    await endAtProvider(own, { sub: undefined });
    expect(await isAlive(own.other, used)).toBe(false);
  });
});

describe('with OAUTH_BACKCHANNEL_ENDS=all', () => {
  const own = useFresh(() =>
    startOwnTokens({ isReplicated: true, env: { OAUTH_BACKCHANNEL_ENDS: 'all' } }),
  );

  test.each(ENDS_ALL)(
    '§13.4 provider logout: $what ends all of the user, and nobody else’s',
    ({ change, ended }) => expectEnds(own, change, ended),
  );

  test('§13.4 provider logout: codes of the session and of the user’s other sessions are over', async () => {
    const client = await own.steps.register();
    const code = await own.logInTo(client, { sid: 'sid-1' });
    const other = await own.logInTo(client, { sid: 'sid-2' });
    await endAtProvider(own, {});
    for (const back of [code, other]) {
      expect((await own.other.steps.redeem(client, back)).json.error).toBe('invalid_grant');
    }
  });
});

test('§13.4 provider logout: another setting is refused at start', async () => {
  await expect(startOwnTokens({ env: { OAUTH_BACKCHANNEL_ENDS: 'none' } })).rejects.toThrow(
    'OAUTH_BACKCHANNEL_ENDS',
  );
});

test('§13.4 provider logout: in proxy mode there is no such address', async () => {
  const own = closeAfterTest(await startOwnTokens({ env: { OAUTH_MODE: 'proxy' } }));
  const answer = await sendLogout(own.gateway, await createLogoutTokens(own).sign());
  expect(answer.status).toBe(404);
});
