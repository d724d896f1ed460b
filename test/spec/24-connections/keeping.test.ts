// How connections are kept: what renews them, what ends them, what only delays a call, and that one person's trouble is nobody
// else's.
import { expect, test } from 'vitest';
import { asTimePasses } from '../../support/connections/as-time-passes.ts';
import type { TokenBehaviour } from '../../support/connections/authorization-server.ts';
import { connect, connectBy, readLink } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP, ROTATING, type ServerHabits } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

async function start({
  habits = KEEPS_TO_MCP,
  replicas = 1,
}: {
  habits?: ServerHabits;
  replicas?: number;
} = {}) {
  const clock = manualClock(1_800_000_000_000);
  const server = closeAfterTest(await startProtectedServer({ habits, clock }));
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      servers: { it: server.configure() },
      replicas,
      env: { OAUTH_ACCESS_TTL_SECONDS: '86400' },
    }),
  );
  const connectAs = async (person: string) => {
    const browser = gateway.createBrowser({ person, account: `${person}@work` });
    await connect(gateway, browser, 'it');
    return { browser, user: await gateway.logIn(person) };
  };
  return { clock, server, gateway, connectAs };
}

test('§24.4 a token with under a minute left is renewed before the call; with more it is used', async () => {
  const { clock, server, connectAs } = await start();
  const { user } = await connectAs('ada');
  clock.advance(HOUR_MS - 90_000);
  await user.call('it__whoami');
  expect(server.seen('token')).toHaveLength(1);
  clock.advance(35_000);
  expect((await user.call('it__whoami')).text).toBe('ada@work');
  const [, refresh] = server.seen('token');
  expect(Object.fromEntries(refresh?.form ?? [])).toMatchObject({
    grant_type: 'refresh_token',
    resource: server.url,
  });
});

test('§24.4 a token that the server refuses is renewed once, and the call is sent again', async () => {
  const { server, connectAs } = await start();
  const { user } = await connectAs('ada');
  await user.call('it__whoami');
  server.spoilAccessTokens();
  expect(await user.call('it__whoami')).toEqual({ isError: false, text: 'ada@work' });
  expect(server.seen('token')).toHaveLength(2);
});

test('§24.4 a server that refuses a fresh token, too: one renewal, then this person needs a login and nobody else does', async () => {
  const { server, gateway, connectAs } = await start();
  const { user: ada, browser } = await connectAs('ada');
  const { user: bob } = await connectAs('bob');
  await ada.call('it__whoami');
  server.refuseAccount('ada@work');
  const refused = await ada.call('it__whoami');
  expect(refused.isError).toBe(true);
  expect(refused.text).toContain(`${gateway.baseUrl}/connections/it`);
  const asked = server.seen('token').length;
  expect(asked).toBe(3);
  await ada.call('it__whoami');
  await ada.call('it__whoami');
  expect(server.seen('token')).toHaveLength(asked);
  expect((await browser.open(`${gateway.baseUrl}/connections`)).text).toContain('Login needed');
  expect((await bob.call('it__whoami')).text).toBe('bob@work');
});

test('§24.4 a refresh token that is no longer good: this person needs a login, the others do not', async () => {
  const { clock, server, gateway, connectAs } = await start();
  const { user: ada } = await connectAs('ada');
  const { user: bob } = await connectAs('bob');
  server.endLoginsOf('ada@work');
  clock.advance(2 * HOUR_MS);
  const refused = await ada.call('it__whoami');
  expect(refused.text).toContain(`${gateway.baseUrl}/connections/it`);
  expect((await bob.call('it__whoami')).text).toBe('bob@work');
});

const OUTAGES: readonly TokenBehaviour[] = [
  'error',
  'page',
  'busy',
  'hangs',
  'down',
  'refuses the client',
];

test.for(OUTAGES)(
  '§24.4 a token endpoint that is “%s” for an hour: calls say so and are not sent, nothing is deleted, and all goes on afterwards',
  { timeout: 120_000 },
  async (behaviour) => {
    const { clock, server, gateway, connectAs } = await start();
    const { user: ada, browser } = await connectAs('ada');
    const { user: bob } = await connectAs('bob');
    // Bob's token is renewed just before.
    clock.advance(HOUR_MS - 30_000);
    expect((await bob.call('it__whoami')).text).toBe('bob@work');
    clock.advance(MINUTE_MS);
    server.behave(behaviour);
    const calls = server.calls().length;
    // One that hangs is waited for by the system's clock.
    const pauseMinutes = behaviour === 'hangs' ? 30 : 5;
    for (let minute = 0; minute < 55; minute += pauseMinutes) {
      const refused = await asTimePasses(clock, ada.call('it__whoami'));
      expect(refused.isError).toBe(true);
      // It is the person's matter only if the registration is gone: then a new login is the way back.
      expect(refused.text.includes('/connections/')).toBe(behaviour === 'refuses the client');
      expect(server.calls()).toHaveLength(calls);
      clock.advance(pauseMinutes * MINUTE_MS);
    }
    expect((await browser.open(`${gateway.baseUrl}/connections`)).text).not.toContain(
      'Login needed',
    );
    server.behave('ok');
    clock.advance(MINUTE_MS);
    expect((await ada.call('it__whoami')).text).toBe('ada@work');
    expect((await bob.call('it__whoami')).text).toBe('bob@work');
  },
);

test('§24.4 during an outage, one whose token is good is served as ever', async () => {
  const { clock, server, connectAs } = await start();
  const { user: ada } = await connectAs('ada');
  clock.advance(30 * MINUTE_MS);
  const { user: bob } = await connectAs('bob');
  clock.advance(31 * MINUTE_MS);
  server.behave('hangs');
  const waiting = ada.call('it__whoami');
  expect((await bob.call('it__whoami')).text).toBe('bob@work');
  expect((await asTimePasses(clock, waiting)).isError).toBe(true);
});

test('§24.2 a server that has forgotten the gateway’s registration: a refresh finds out, and whoever connects next is known by another', async () => {
  const { clock, server, gateway, connectAs } = await start();
  const { user, browser } = await connectAs('ada');
  server.forgetClients();
  clock.advance(2 * HOUR_MS);
  const { isError, text } = await user.call('it__whoami');
  expect([isError, text]).toEqual([
    true,
    expect.stringContaining(
      `the registration is gone; the gateway has registered again. Log in to it again at ${gateway.baseUrl}/connections/it if this continues`,
    ),
  ]);
  const { user: bob } = await connectAs('bob');
  expect((await bob.call('it__whoami')).text).toBe('bob@work');
  expect(server.seen('register')).toHaveLength(2);
  await connectBy(browser, readLink(text));
  expect((await user.call('it__whoami')).text).toBe('ada@work');
  expect(server.seen('register')).toHaveLength(2);
});

test('§24.4 a tool that wants a wider scope: the link asks for it beside what was granted, and the call goes through then', async () => {
  const { server, connectAs } = await start();
  const { user, browser } = await connectAs('ada');
  const refused = await user.call('it__write');
  expect(refused.isError).toBe(true);
  expect(refused.text).toContain('mcp:write');
  // What needs no more goes on.
  expect((await user.call('it__whoami')).text).toBe('ada@work');
  await connectBy(browser, readLink(refused.text));
  const asked = server.seen('authorize').at(-1)?.query.get('scope');
  expect(asked?.split(' ').sort()).toEqual(['mcp:read', 'mcp:write']);
  expect((await user.call('it__write')).text).toBe('written by ada@work');
});

test('§24.4 an answer that is lost, of a server whose old refresh token still works: it is asked again', async () => {
  const { clock, server, connectAs } = await start({
    habits: { ...KEEPS_TO_MCP, usedRefreshToken: 'is kept' },
  });
  const { user } = await connectAs('ada');
  // The gateway learns by the first renewal that the token stays.
  clock.advance(2 * HOUR_MS);
  expect((await user.call('it__whoami')).text).toBe('ada@work');
  clock.advance(2 * HOUR_MS);
  server.behave('lost');
  expect((await asTimePasses(clock, user.call('it__whoami'))).isError).toBe(true);
  server.behave('ok');
  clock.advance(MINUTE_MS);
  expect((await user.call('it__whoami')).text).toBe('ada@work');
});

test('§24.4 an answer that is lost, of a server where refresh tokens are good once: the person needs a login, and is told so', async () => {
  const { clock, server, gateway, connectAs } = await start({ habits: ROTATING });
  const { user, browser } = await connectAs('ada');
  clock.advance(2 * HOUR_MS);
  server.behave('lost');
  expect((await asTimePasses(clock, user.call('it__whoami'))).isError).toBe(true);
  server.behave('ok');
  clock.advance(MINUTE_MS);
  const refused = await user.call('it__whoami');
  expect(refused.text).toContain(`${gateway.baseUrl}/connections/it`);
  await connect(gateway, browser, 'it');
  expect((await user.call('it__whoami')).text).toBe('ada@work');
});

test('§24.4 many calls at once by a token that has expired: one refresh, at two replicas', async () => {
  const { clock, server, gateway, connectAs } = await start({ habits: ROTATING, replicas: 2 });
  await connectAs('ada');
  const users = [await gateway.logIn('ada', 0), await gateway.logIn('ada', 1)];
  clock.advance(2 * HOUR_MS);
  const calls = Array.from({ length: 20 }, (_, index) => users[index % 2]?.call('it__whoami'));
  const answers = await asTimePasses(clock, Promise.all(calls));
  expect(new Set(answers.map((answer) => answer?.text))).toEqual(new Set(['ada@work']));
  expect(server.seen('token')).toHaveLength(2);
});

test('§24.4 another account is another session at the server, and nothing of the one before', async () => {
  const { server, gateway, connectAs } = await start();
  const { user, browser } = await connectAs('ada');
  await user.call('it__whoami');
  await browser.press(await browser.open(`${gateway.baseUrl}/connections`), /^Disconnect it$/);
  const other = gateway.createBrowser({ person: 'ada', account: 'ada@home' });
  await connect(gateway, other, 'it');
  expect((await user.call('it__whoami')).text).toBe('ada@home');
  const accounts = new Map<string, Set<string | undefined>>();
  for (const { headers, account } of server.seen('mcp')) {
    const session = String(headers['mcp-session-id'] ?? '');
    if (session === '' || account === undefined) continue;
    accounts.set(session, (accounts.get(session) ?? new Set()).add(account));
  }
  for (const whose of accounts.values()) expect(whose.size).toBe(1);
});

test('§24.4 two people never share a session at the server, nor does anybody without a token', async () => {
  const { server, connectAs } = await start();
  const people = [await connectAs('ada'), await connectAs('bob'), await connectAs('eve')];
  await Promise.all(
    people.flatMap(({ user }) => [user.call('it__whoami'), user.call('it__whoami')]),
  );
  const accounts = new Map<string, Set<string | undefined>>();
  for (const { headers, account } of server.seen('mcp')) {
    const session = headers['mcp-session-id'];
    if (typeof session === 'string')
      accounts.set(session, (accounts.get(session) ?? new Set()).add(account));
  }
  for (const whose of accounts.values()) expect(whose.size).toBe(1);
  expect(new Set(server.calls())).toEqual(new Set(['ada@work', 'bob@work', 'eve@work']));
});
