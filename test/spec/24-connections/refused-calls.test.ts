// A 401 to one call, as a server passes on that of something behind it: it is that caller's, and nobody else's connection ends by
// it. What ends one is that the server itself refuses the token.
import { expect, test } from 'vitest';
import type { TokenBehaviour } from '../../support/connections/authorization-server.ts';
import { connect } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { GITHUB, KEEPS_TO_MCP, type ServerHabits } from '../../support/connections/habits.ts';
import type { Era } from '../../support/connections/mcp-endpoint.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const MINUTE_MS = 60_000;
/** Tokens here live for an hour: what is renewed is so by a 401 alone. */
const LONG_AGO_MS = 10 * MINUTE_MS;
const ERAS: readonly Era[] = ['session', 'stateless'];

/** Two people at two replicas, each by the shared connection, or by one of their own. */
async function start({
  owner = 'shared',
  habits = KEEPS_TO_MCP,
  era = 'session',
}: {
  owner?: 'shared' | 'user';
  habits?: ServerHabits;
  era?: Era;
}) {
  const clock = manualClock(1_800_000_000_000);
  const server = closeAfterTest(await startProtectedServer({ habits, era, clock }));
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      servers: { it: { ...server.configure({ owner }), ...(era === 'sse' && { type: 'sse' }) } },
      replicas: 2,
      env: { ADMIN_GROUPS: 'operators', OAUTH_ACCESS_TTL_SECONDS: '86400' },
    }),
  );
  const accounts = owner === 'shared' ? ['robot'] : ['ada', 'bob'];
  for (const account of accounts) {
    const person = owner === 'shared' ? 'olga' : account;
    const browser = gateway.createBrowser({ person, groups: 'operators', account });
    await connect(gateway, browser, 'it');
  }
  const ada = [await gateway.logIn('ada', 0), await gateway.logIn('ada', 1)] as const;
  const bob = [await gateway.logIn('bob', 0), await gateway.logIn('bob', 1)] as const;
  for (const user of [...ada, ...bob]) await user.call('it__whoami');
  clock.advance(LONG_AGO_MS);
  const countRenewals = () =>
    server.seen('token').filter(({ form }) => form.get('grant_type') === 'refresh_token').length;
  const listChanges = () =>
    gateway
      .auditLines()
      .filter(({ event }) => event === 'connection')
      .map(({ action }) => action);
  return { clock, server, gateway, ada, bob, countRenewals, listChanges };
}

test.for(ERAS.flatMap((era) => [['shared', era] as const, ['user', era] as const]))(
  '§24.4 401 of what is behind a server, owner %s, era %s: that call fails, whoever calls and wherever, and the connection stands; one renewal a minute',
  async ([owner, era]) => {
    const { clock, server, gateway, ada, bob, countRenewals, listChanges } = await start({
      owner,
      era,
    });
    const [adas, bobs] = owner === 'shared' ? ['robot', 'robot'] : ['ada', 'bob'];
    server.refuse('slow', 401);
    for (let minute = 1; minute <= 3; minute += 1) {
      for (const replica of [0, 1, 0, 1] as const) {
        const refused = await ada[replica].call('it__slow');
        expect(refused).toEqual({ isError: true, text: expect.stringContaining('(401)') });
        expect(refused.text).not.toContain(`${gateway.baseUrl}/connections`);
        expect(await bob[replica].call('it__whoami')).toEqual({ isError: false, text: bobs });
        expect(await ada[replica].call('it__whoami')).toEqual({ isError: false, text: adas });
      }
      expect(countRenewals()).toBe(minute);
      clock.advance(MINUTE_MS);
    }
    expect(listChanges()).not.toContain('login_needed');
  },
);

test('§24.4 401 of what is behind a server, to many at once at both replicas: one renewal, and the server itself is asked once', async () => {
  const { server, ada, bob, countRenewals, listChanges } = await start({ era: 'stateless' });
  server.refuse('slow', 401);
  const asked = server.seen('mcp').length;
  const calls = [...ada, ...bob, ...ada, ...bob].map((user) => user.call('it__slow'));
  for (const { isError } of await Promise.all(calls)) expect(isError).toBe(true);
  expect(countRenewals()).toBe(1);
  const questions = server
    .seen('mcp')
    .slice(asked)
    .filter(({ rpcMethod }) => rpcMethod === 'server/discover');
  expect(questions).toHaveLength(1);
  expect(listChanges()).not.toContain('login_needed');
});

test.for(ERAS)(
  '§24.4 a server that refuses the fresh token itself, era %s: the shared connection needs a login, and everybody is told so',
  async (era) => {
    const { server, gateway, ada, bob, countRenewals, listChanges } = await start({ era });
    server.refuseAccount('robot');
    for (const user of [...ada, ...bob]) {
      const { isError, text } = await user.call('it__whoami');
      expect([isError, text]).toEqual([true, expect.stringContaining('has to be connected again')]);
    }
    expect(countRenewals()).toBe(1);
    await expect.poll(listChanges).toContain('login_needed');
    const sent = server.seen('mcp').length;
    await bob[0].call('it__whoami');
    expect(server.seen('mcp')).toHaveLength(sent);
    const operator = gateway.createBrowser({
      person: 'olga',
      groups: 'operators',
      account: 'other-robot',
    });
    await connect(gateway, operator, 'it');
    expect((await ada[1].call('it__whoami')).text).toBe('other-robot');
  },
);

test('§24.4 a server that lets anybody begin a session, and refuses the fresh token in it: a login is needed', async () => {
  const habits = { ...KEEPS_TO_MCP, listsToAnybody: 'but ping' } as const;
  const { server, ada, listChanges } = await start({ owner: 'user', habits });
  server.refuseAccount('ada');
  expect((await ada[0].call('it__whoami')).text).toContain('log in to it again');
  await expect.poll(listChanges).toContain('login_needed');
});

test('§24.4 HTTP+SSE: a 401 to a call says nothing of others; one to the stream, which the next call opens, has the token renewed, or a login needed', async () => {
  const { server, ada, bob, countRenewals, listChanges } = await start({
    owner: 'user',
    era: 'sse',
  });
  server.refuse('slow', 401);
  for (const replica of [0, 1] as const) {
    const refused = await ada[replica].call('it__slow');
    expect(refused).toEqual({ isError: true, text: expect.stringContaining('(401)') });
    expect((await ada[replica].call('it__whoami')).text).toBe('ada');
  }
  expect([countRenewals(), listChanges().includes('login_needed')]).toEqual([0, false]);
  server.spoilAccessTokens();
  expect((await ada[0].call('it__whoami')).isError).toBe(true);
  expect((await ada[0].call('it__whoami')).text).toBe('ada');
  expect(countRenewals()).toBe(1);
  server.refuseAccount('ada');
  expect((await ada[0].call('it__whoami')).isError).toBe(true);
  expect((await ada[0].call('it__whoami')).text).toContain('log in to it again');
  await expect.poll(listChanges).toContain('login_needed');
  expect((await bob[1].call('it__whoami')).isError).toBe(true);
  expect((await bob[1].call('it__whoami')).text).toBe('bob');
});

test('§24.4 a token that nothing renews: a 401 of what is behind the server ends nothing; one of the server itself does', async () => {
  const { server, ada, bob, countRenewals, listChanges } = await start({
    owner: 'user',
    habits: GITHUB,
  });
  server.refuse('slow', 401);
  for (const replica of [0, 1, 0] as const) {
    expect((await ada[replica].call('it__slow')).text).toContain('(401)');
    expect((await ada[replica].call('it__whoami')).text).toBe('ada');
  }
  expect([countRenewals(), listChanges().includes('login_needed')]).toEqual([0, false]);
  server.refuseAccount('bob');
  expect((await bob[0].call('it__whoami')).text).toContain('gave none to renew it');
  await expect.poll(listChanges).toContain('login_needed');
  expect((await ada[1].call('it__whoami')).text).toBe('ada');
});

const PASSING: readonly TokenBehaviour[] = ['error', 'busy', 'down', 'refuses the client'];

test.for(PASSING)(
  '§24.4 401 of what is behind a server while the token endpoint is “%s”: others are served by the token that there is, and the endpoint is asked once a minute',
  async (behaviour) => {
    const { clock, server, ada, bob, countRenewals } = await start({});
    server.refuse('slow', 401);
    server.behave(behaviour);
    for (let minute = 1; minute <= 2; minute += 1) {
      for (const replica of [0, 1, 0] as const) {
        expect((await ada[replica].call('it__slow')).isError).toBe(true);
        expect((await bob[replica].call('it__whoami')).text).toBe('robot');
      }
      expect(countRenewals()).toBe(minute);
      clock.advance(MINUTE_MS);
    }
  },
);

test.for(PASSING)(
  '§24.4 a server that refuses the token itself while the token endpoint is “%s”: the connection is kept, and goes on by the next token',
  async (behaviour) => {
    const { clock, server, ada, bob, listChanges } = await start({});
    server.spoilAccessTokens();
    server.behave(behaviour);
    for (const user of [...ada, ...bob]) expect((await user.call('it__whoami')).isError).toBe(true);
    expect(listChanges()).not.toContain('login_needed');
    server.behave('ok');
    clock.advance(MINUTE_MS);
    for (const user of [...ada, ...bob]) expect((await user.call('it__whoami')).text).toBe('robot');
  },
);

test.for([
  ['stateless', 'server/discover'],
  ['session', 'initialize'],
] as const)(
  '§24.4 a server that does not answer whether it refuses the token, era %s: the connection is kept',
  async ([era, question]) => {
    const { server, ada, bob, listChanges } = await start({ era });
    server.refuse('slow', 401);
    server.refuse(question, 500);
    expect((await ada[0].call('it__slow')).isError).toBe(true);
    expect((await bob[1].call('it__whoami')).text).toBe('robot');
    expect(listChanges()).not.toContain('login_needed');
  },
);

test('§24.4 HTTP+SSE: a 401 to one message ends no other call in the same stream', async () => {
  const { server, ada } = await start({ era: 'sse' });
  server.refuse('whoami', 401);
  const under = ada[0].call('it__slow');
  await expect.poll(() => server.gate.count()).toBe(1);
  expect((await ada[0].call('it__whoami')).isError).toBe(true);
  server.gate.open();
  expect((await under).isError).toBe(false);
});
