// Reconnecting: what the former account's login was good for ends at its server, or the page says that it cannot be ended.
import { expect, test } from 'vitest';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { connect } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP, type ServerHabits } from '../../support/connections/habits.ts';
import {
  ADA,
  BOB,
  beginLogin,
  connectOwner,
  finishLogin,
  openKeeper,
  toConnectionServer,
} from '../../support/connections/keeper.ts';
import { openKeeperStore } from '../../support/connections/keeper-store.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const HOUR_MS = 3_600_000;

const writeIdToken = (sub: string): string =>
  ['{"alg":"none"}', JSON.stringify({ sub, email: `${sub}@example.com` }), '']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.');

/** Two people, two replicas, and a server that says whose its tokens are, unless it is told not to. */
async function start({
  owner = 'user',
  saysWhose = true,
  ...habits
}: { owner?: 'shared' | 'user'; saysWhose?: boolean } & Partial<ServerHabits> = {}) {
  const clock = manualClock(1_800_000_000_000);
  let account = '';
  const server = closeAfterTest(
    await startProtectedServer({
      clock,
      habits: {
        ...KEEPS_TO_MCP,
        renderTokens: (answer) =>
          saysWhose ? { ...answer, id_token: writeIdToken(account) } : answer,
        ...habits,
      },
    }),
  );
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      servers: { it: server.configure({ owner }) },
      replicas: 2,
      env: { ADMIN_GROUPS: 'operators', OAUTH_ACCESS_TTL_SECONDS: '86400' },
    }),
  );
  const connectAs = async (person: string, at: string, replica = 0) => {
    account = at;
    const browser = gateway.createBrowser({ person, groups: 'operators', account: at, replica });
    return connect(gateway, browser, 'it');
  };
  const callAs = async (person: string) => {
    const texts = [];
    for (const replica of [0, 1]) {
      const user = await gateway.logIn(person, replica);
      texts.push((await user.call('it__whoami')).text);
    }
    return texts;
  };
  const listRevoked = () => server.seen('revoke').map(({ form }) => form.get('token'));
  return { clock, server, gateway, connectAs, callAs, listRevoked };
}

test('§24.4 reconnecting another account revokes the login of the former one, and nobody else’s', async () => {
  const { server, connectAs, callAs, listRevoked } = await start();
  await connectAs('ada', 'work');
  await connectAs('bob', 'bobs');
  expect(await callAs('ada')).toEqual(['work', 'work']);
  const page = await connectAs('ada', 'home', 1);
  expect(page.text).not.toContain('The login before this one');
  expect(listRevoked()).toHaveLength(1);
  expect(server.countActiveLogins()).toBe(2);
  expect(await callAs('ada')).toEqual(['home', 'home']);
  expect(await callAs('bob')).toEqual(['bobs', 'bobs']);
});

test('§24.4 reconnecting another account of the shared connection revokes the former one’s login, and all act as the new one', async () => {
  const { server, connectAs, callAs } = await start({ owner: 'shared' });
  await connectAs('olga', 'robot');
  expect(await callAs('ada')).toEqual(['robot', 'robot']);
  await connectAs('olga', 'other-robot', 1);
  expect(server.countActiveLogins()).toBe(1);
  for (const person of ['ada', 'bob'])
    expect(await callAs(person)).toEqual(['other-robot', 'other-robot']);
});

test('§24.4 reconnecting the same account revokes nothing: many servers would end the new login with the old one', async () => {
  const { connectAs, callAs, listRevoked } = await start();
  await connectAs('ada', 'work');
  const page = await connectAs('ada', 'work', 1);
  expect(page.text).not.toContain('The login before this one');
  expect(listRevoked()).toEqual([]);
  expect(await callAs('ada')).toEqual(['work', 'work']);
});

test('§24.4 a renewal of the former account that comes back after another one was connected is revoked, too', async () => {
  const { clock, server, gateway, connectAs, callAs, listRevoked } = await start();
  await connectAs('ada', 'work');
  const user = await gateway.logIn('ada', 0);
  clock.advance(2 * HOUR_MS);
  server.onRefresh = async () => void (await connectAs('ada', 'home', 1));
  await user.call('it__whoami');
  await expect.poll(listRevoked).toHaveLength(2);
  const refreshes = server.issued.filter((issued) => issued.startsWith('refresh-'));
  // The first, the renewed one, and that of the new account.
  expect(refreshes).toHaveLength(3);
  expect(listRevoked()).not.toContain(refreshes[2]);
  expect(new Set(listRevoked()).size).toBe(2);
  expect(await callAs('ada')).toEqual(['home', 'home']);
});

test.for([
  ['revokes no tokens', { document: { revocation_endpoint: undefined } }],
  ['does not say whose it was', { saysWhose: false }],
] as const)(
  '§24.4 reconnecting at a server that %s: the page says that the former login is still good there, to its user alone',
  async ([says, habits]) => {
    const { server, gateway, connectAs, callAs, listRevoked } = await start(habits);
    await connectAs('bob', 'bobs');
    await connectAs('ada', 'work');
    const page = await connectAs('ada', 'home', 1);
    expect(page.text).toContain('The login before this one was replaced, but');
    expect(page.text).toContain(says);
    expect(page.text).toContain(`end it at ${server.issuer}, too`);
    expect(listRevoked()).toEqual([]);
    expect(await callAs('ada')).toEqual(['home', 'home']);
    const open = async (person: string) =>
      gateway.createBrowser({ person }).open(`${gateway.baseUrl}/connections`);
    expect((await open('ada')).text).toContain('The login before this one');
    expect((await open('bob')).text).not.toContain('The login before this one');
  },
);

test('§24.4 two first logins of one user that come back at once, at two replicas: the one that stands replaced the other, and says so', async () => {
  const server = closeAfterTest(await startProtectedServer());
  const { store } = closeAfterTest(await openKeeperStore());
  const wiki = toConnectionServer(server);
  const waiting: ((isLoggedIn: boolean) => void)[] = [];
  const finishing = ['work', 'home'].map(async (account) => {
    const keeper = closeAfterTest(openKeeper(store, { servers: [wiki] }));
    const query = await beginLogin(keeper, wiki, { owner: ADA, account });
    return finishLogin(keeper, query, {
      owner: ADA,
      isStillLoggedIn: () =>
        new Promise((resolve) => {
          waiting.push(resolve);
          if (waiting.length >= 2) for (const goOn of waiting) goOn(true);
        }),
    });
  });
  const problems = (await Promise.all(finishing)).map(({ info }) => info.problem !== undefined);
  expect(problems.sort()).toEqual([false, true]);
});

test.for([1, 2])(
  '§24.3 a store that cannot say whether somebody is still logged in, at look %i: the tokens that have just come are revoked',
  async (failsAt) => {
    const server = closeAfterTest(await startProtectedServer());
    const { store } = closeAfterTest(await openKeeperStore());
    const wiki = toConnectionServer(server);
    const keeper = closeAfterTest(openKeeper(store, { servers: [wiki] }));
    await connectOwner(keeper, wiki, { owner: BOB, account: 'bobs' });
    const query = await beginLogin(keeper, wiki, { owner: ADA, account: 'home' });
    let looks = 0;
    const finishing = finishLogin(keeper, query, {
      owner: ADA,
      async isStillLoggedIn() {
        looks += 1;
        if (looks === failsAt) throw new StoreUnavailable('Redis does not answer');
        return true;
      },
    });
    await expect(finishing).rejects.toThrow(StoreUnavailable);
    expect(server.countActiveLogins()).toBe(1);
    expect(await keeper.connections.getAccess(ADA, wiki)).toMatchObject({ kind: 'missing' });
  },
);

test('§24.4 who is logged out while another account takes the place of the former one has neither, here and at the server', async () => {
  const server = closeAfterTest(await startProtectedServer());
  const { store } = closeAfterTest(await openKeeperStore());
  const wiki = toConnectionServer(server);
  const keeper = closeAfterTest(openKeeper(store, { servers: [wiki] }));
  await connectOwner(keeper, wiki, { owner: BOB, account: 'bobs' });
  await connectOwner(keeper, wiki, { owner: ADA, account: 'work' });
  const query = await beginLogin(keeper, wiki, { owner: ADA, account: 'home' });
  const looks = [true, false];
  const finishing = finishLogin(keeper, query, {
    owner: ADA,
    isStillLoggedIn: async () => looks.shift() === true,
  });
  await expect(finishing).rejects.toThrow('You were logged out');
  expect(server.countActiveLogins()).toBe(1);
  expect(await keeper.connections.getAccess(ADA, wiki)).toMatchObject({ kind: 'missing' });
  expect(await keeper.connections.getAccess(BOB, wiki)).toMatchObject({ kind: 'active' });
});
