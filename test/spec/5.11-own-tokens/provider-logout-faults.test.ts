// Back-channel logout where something fails, or somebody sends what is none: the provider can try again, and nobody else
// gains by it.
import { describe, expect, test } from 'vitest';
import { type Store, StoreUnavailable } from '../../../src/store/store.ts';
import { openEvents } from '../../support/clients/event-stream.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import {
  createLogoutTokens,
  sendLogout,
  sendLogoutAsTimePasses,
} from '../../support/oauth/logout-tokens.ts';
import { startOperatedGateways } from '../../support/oauth/operator-logins.ts';
import { startOwnTokens, toTokens } from '../../support/oauth/own-tokens.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

const SESSION = { sid: 'sid-1' };

/** The steps of a logout, each of which may be the one that fails. */
type Step = 'note' | 'list' | 'end' | 'second end' | 'finish' | 'give back' | 'unlist';

async function startFailing(env: Readonly<Record<string, string>> = {}) {
  const failing = new Set<Step>();
  let ends = 0;
  function failAt(step: Step): void {
    if (failing.has(step)) throw new StoreUnavailable('no answer');
  }
  const clock = manualClock(1_800_000_000_000);
  const steps = (real: Store): Partial<Store> => ({
    async compareAndSet(key, expected, value, ttlSeconds) {
      if (key.startsWith('oauth:logout:')) failAt('note');
      if (key.startsWith('oauth:logout-token:')) failAt('finish');
      return real.compareAndSet(key, expected, value, ttlSeconds);
    },
    async compareAndDelete(key, expected) {
      failAt('give back');
      return real.compareAndDelete(key, expected);
    },
    async deleteListed(list, key) {
      if (list.startsWith('oauth:sid-grants:')) failAt('unlist');
      return real.deleteListed(list, key);
    },
    async readListed(list, request) {
      if (list.startsWith('oauth:sid-grants:')) failAt('list');
      return real.readListed(list, request);
    },
    async getAndDelete(key) {
      if (key.startsWith('oauth:grant:')) {
        ends += 1;
        failAt('end');
        if (ends > 1) failAt('second end');
      }
      return real.getAndDelete(key);
    },
  });
  const { store, remove } = await wrapStore(steps, clock);
  closeAfterTest({ close: remove });
  const own = closeAfterTest(await startOwnTokens({ env, deps: { store, clock } }));
  const pass = (ms: number) => {
    for (const one of [clock, own.clock]) one.advance(ms);
  };
  return { own, failing, pass };
}

test.each<Step>(['note', 'list', 'end', 'second end', 'finish'])(
  '§13.4 provider logout: where the store fails at the step "%s", the provider hears so, and the same token is good later',
  async (step) => {
    const { own, failing } = await startFailing();
    const logins = [await own.logIn(SESSION), await own.logIn(SESSION), await own.logIn(SESSION)];
    const other = await own.logIn({ sid: 'sid-2' });
    const token = await createLogoutTokens(own).sign();
    failing.add(step);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const { status, headers, json } = await sendLogout(own.gateway, token);
      expect(status).toBeGreaterThanOrEqual(500);
      expect(headers['cache-control']).toBe('no-store');
      expect(['server_error', 'temporarily_unavailable']).toContain(json.error);
    }
    failing.clear();
    expect((await sendLogout(own.gateway, token)).status).toBe(200);
    for (const { access } of logins) expect((await own.call(access)).status).toBe(401);
    expect((await own.call(other.access)).status).toBe(200);
    expect((await sendLogout(own.gateway, token)).status).toBe(400);
  },
);

test('§13.4 provider logout: where the token cannot even be given back, it is good again half a minute later', async () => {
  const { own, failing, pass } = await startFailing();
  const { access } = await own.logIn(SESSION);
  const token = await createLogoutTokens(own).sign();
  failing.add('end').add('give back');
  expect((await sendLogout(own.gateway, token)).status).toBe(503);
  failing.clear();
  const early = await sendLogout(own.gateway, token);
  expect([early.status, early.headers['retry-after']]).toEqual([503, '5']);
  expect((await own.call(access)).status).toBe(200);
  pass(31_000);
  expect((await sendLogout(own.gateway, token)).status).toBe(200);
  expect((await own.call(access)).status).toBe(401);
});

test('§13.4 provider logout: a token whose logout took long is used up all the same', async () => {
  const clock = manualClock(1_800_000_000_000);
  let isSlow = true;
  const steps = (real: Store): Partial<Store> => ({
    async readListed(list, request) {
      if (isSlow && list.startsWith('oauth:sid-grants:')) clock.advance(31_000);
      isSlow &&= !list.startsWith('oauth:sid-grants:');
      return real.readListed(list, request);
    },
  });
  const { store, remove } = await wrapStore(steps, clock);
  closeAfterTest({ close: remove });
  const own = closeAfterTest(await startOwnTokens({ deps: { store, clock } }));
  await own.logIn(SESSION);
  const token = await createLogoutTokens(own).sign();
  expect((await sendLogout(own.gateway, token)).status).toBe(200);
  const { access } = await own.logIn(SESSION);
  expect((await sendLogout(own.gateway, token)).status).toBe(400);
  expect((await own.call(access)).status).toBe(200);
});

test.each(['session', 'all'])(
  '§13.4 provider logout: a login that stays in the list of a session that it left does not end with it, nor its user’s others (%s)',
  async (ends) => {
    const { own, failing, pass } = await startFailing({ OAUTH_BACKCHANNEL_ENDS: ends });
    const moved = await own.logIn(SESSION);
    const other = await own.logIn({ sid: 'sid-3' });
    pass(1.1 * 3_600_000);
    own.provider.idToken = { sid: 'sid-2' };
    failing.add('unlist');
    const renewed = toTokens(moved.client, await own.refresh(moved));
    failing.clear();
    const token = await createLogoutTokens(own).sign({ sub: undefined });
    expect((await sendLogout(own.gateway, token)).status).toBe(200);
    expect((await own.call(renewed.access)).status).toBe(200);
    expect((await own.refresh(other)).status).toBe(200);
  },
);

test('§13.4 provider logout: while the keys of the provider cannot be had, it is told to come again', async () => {
  const own = closeAfterTest(await startOwnTokens());
  const { access } = await own.logIn(SESSION);
  await own.provider.issuer.rotate();
  own.provider.issuer.behave('down');
  const token = await createLogoutTokens(own).sign();
  const { status, json } = await sendLogoutAsTimePasses(own, token);
  expect([status, json.error]).toEqual([503, 'temporarily_unavailable']);
  expect((await own.call(access)).status).toBe(200);
  own.provider.issuer.behave('ok');
  own.clock.advance(2000);
  expect((await sendLogoutAsTimePasses(own, token)).status).toBe(200);
  expect((await own.call(access)).status).toBe(401);
});

describe('abuse', () => {
  const own = useFresh(() => startOwnTokens());
  const junk = () =>
    createLogoutTokens(own).sign({}, { kid: `none-${Math.random()}`, header: { typ: undefined } });

  test('§13.4 provider logout: however much junk comes, the key set is asked for once in two seconds', async () => {
    await own.logIn();
    const before = own.provider.issuer.fetches.keys;
    const tokens = await Promise.all(Array.from({ length: 60 }, junk));
    let answered = 0;
    const answers = tokens.map((token) =>
      sendLogout(own.gateway, token).then((answer) => {
        answered += 1;
        return answer.status;
      }),
    );
    while (answered < tokens.length) {
      await new Promise(setImmediate);
      own.clock.advance(10);
    }
    expect(new Set(await Promise.all(answers))).toEqual(new Set([400]));
    const seconds = own.clock.monotonic() / 1000;
    expect(own.provider.issuer.fetches.keys - before).toBeLessThanOrEqual(1 + seconds / 2);
  });

  test('§8.1, §13.4 provider logout: an address that sends too many of others is refused, also where a key would be asked for, and nobody else', async () => {
    const limited = closeAfterTest(
      await startOwnTokens({ env: { BACKCHANNEL_LOGOUT_RATE_LIMIT_MAX: '3' } }),
    );
    await limited.logIn();
    await limited.provider.issuer.rotate();
    const send = (remoteAddress: string, token: string) =>
      sendLogoutAsTimePasses(limited, token, remoteAddress);
    const ofNewKey = (sid: string) => createLogoutTokens(limited).sign({ sid });
    const unknown = () => createLogoutTokens(limited).sign({}, { kid: 'none' });
    const statuses = [];
    for (let time = 0; time < 5; time += 1)
      statuses.push((await send('192.0.2.1', await unknown())).status);
    expect(statuses).toEqual([400, 400, 400, 429, 429]);
    // Keys would be asked for anew by now.
    limited.clock.advance(5_000);
    const fetches = limited.provider.issuer.fetches.keys;
    expect((await send('192.0.2.1', await unknown())).status).toBe(429);
    expect(limited.provider.issuer.fetches.keys).toBe(fetches);
    expect((await send('192.0.2.2', await ofNewKey('sid-2'))).status).toBe(200);
    const { access } = await limited.logIn();
    expect((await limited.call(access)).status).toBe(200);
  });

  test('§12, §13.4 provider logout: a form of more than 20 KiB is not read', async () => {
    const { status, json } = await sendLogout(own.gateway, 'x'.repeat(20_600));
    expect([status, json.error]).toEqual([413, 'invalid_request']);
  });
});

test('§13.4 provider logout: streams that the login has open elsewhere end within a second', async () => {
  const own = closeAfterTest(
    await startOwnTokens({ isReplicated: true, env: { MCP_STREAMS: 'true' } }),
  );
  const open = async (claims: Readonly<Record<string, string>>) => {
    const { access } = await own.logIn(claims);
    const session = String((await own.other.call(access)).headers['mcp-session-id']);
    return openEvents({
      port: await own.other.gateway.listen(),
      method: 'GET',
      body: undefined,
      headers: {
        host: new URL(own.other.gateway.baseUrl).host,
        accept: 'text/event-stream',
        authorization: `Bearer ${access}`,
        'mcp-session-id': session,
      },
    });
  };
  const ended = await open(SESSION);
  const other = await open({ sid: 'sid-2' });
  let isOtherOver = false;
  const otherEnd = other.rest().then(() => {
    isOtherOver = true;
  });
  const begun = performance.now();
  expect((await sendLogout(own.gateway, await createLogoutTokens(own).sign())).status).toBe(200);
  expect(await ended.rest()).toEqual([]);
  expect(performance.now() - begun).toBeLessThan(1000);
  expect(isOtherOver).toBe(false);
  await sendLogout(own.gateway, await createLogoutTokens(own).sign({ sid: 'sid-2' }));
  await otherEnd;
});

describe('what is told', () => {
  const own = useFresh(() => startOperatedGateways({ env: { METRICS_ENABLED: 'true' } }));

  test('§13.4, §21.1, §4.11 each login that ends is a line of log and audit log, and each token is counted', async () => {
    const one = await own.logIn(SESSION);
    await own.logIn(SESSION);
    const tokens = createLogoutTokens(own);
    const right = await tokens.sign();
    await sendLogout(own.gateway, right);
    await sendLogout(own.gateway, right);
    await sendLogout(own.gateway, await tokens.sign({ aud: 'another' }));
    const lines = own.gateway.log.filter(({ msg }) => msg === 'Logged out.');
    expect(lines).toHaveLength(2);
    expect(lines.every(({ by, user }) => by === 'provider' && user === 'user-1')).toBe(true);
    const audited = own.audit.lines().filter(({ event }) => event === 'revocation');
    expect(audited).toHaveLength(2);
    expect(audited.some(({ client }) => client === one.client.id)).toBe(true);
    for (const line of audited) {
      expect(line).toMatchObject({ user: 'user-1', action: 'provider', outcome: 'success' });
      expect(line.grant).toMatch(/^[\w-]{22}$/);
    }
    const { text } = await own.gateway.request({ path: '/metrics' });
    expect(text).toContain('oauth_logout_tokens_total{status="accepted"} 1');
    expect(text).toContain('oauth_logout_tokens_total{status="refused"} 2');
    await expect.poll(() => own.provider.revoked.length).toBe(2);
  });
});
