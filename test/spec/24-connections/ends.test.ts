// How connections end without their user's own word, and the one that belongs to everybody.
import { expect, test } from 'vitest';
import { connect, GO_ON } from '../../support/connections/connect-steps.ts';
import {
  type ConnectingGateway,
  startConnectingGateway,
} from '../../support/connections/connecting-gateway.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

async function start({
  auth = {},
  env = {},
}: {
  auth?: Readonly<Record<string, unknown>>;
  env?: Readonly<Record<string, string>>;
} = {}) {
  const clock = manualClock(1_800_000_000_000);
  const server = closeAfterTest(await startProtectedServer({ clock }));
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      servers: { it: server.configure(auth) },
      env: { ADMIN_GROUPS: 'operators', ...env },
    }),
  );
  const connectAs = async (person: string) => {
    const browser = gateway.createBrowser({ person, account: `${person}@work` });
    await connect(gateway, browser, 'it');
    return gateway.logIn(person);
  };
  return { clock, server, gateway, connectAs };
}

const operatorOf = (gateway: ConnectingGateway) =>
  gateway.createBrowser({ person: 'olga', groups: 'operators', account: 'robot@work' });

test.for([
  [{ CONNECTIONS_END_WITH_LOGOUT: 'true' }, 1],
  [{}, 0],
] as const)(
  '§24.4 the provider logs a person out, with %o: their connection is revoked at the server just then, and nobody else’s ever',
  async ([env, revoked]) => {
    const { server, gateway, connectAs } = await start({ env });
    await connectAs('ada');
    const bob = await connectAs('bob');
    gateway.provider.logoutUrl = `${gateway.baseUrl}/oauth/backchannel-logout`;
    const sent = await gateway.provider.logOutUser({ sub: 'ada' });
    expect(sent.every(({ status }) => status === 200)).toBe(true);
    await expect.poll(() => server.countActiveLogins()).toBe(2 - revoked);
    expect((await bob.call('it__whoami')).text).toBe('bob@work');
    const again = await gateway.logIn('ada');
    expect((await again.call('it__whoami')).isError).toBe(revoked === 1);
  },
);

test('§24.4 a shared connection is made by operators alone, is everybody’s then, and no user can end it', async () => {
  const { server, gateway } = await start({ auth: { owner: 'shared' } });
  const ada = await gateway.logIn('ada');
  expect((await ada.call('it__whoami')).isError).toBe(true);

  const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
  const page = await browser.open(`${gateway.baseUrl}/connections/it`);
  expect(page.status).toBe(403);
  const list = await browser.open(`${gateway.baseUrl}/connections`);
  expect(list.html).not.toMatch(/name="action"/);
  expect(server.seen('authorize')).toEqual([]);

  await connect(gateway, operatorOf(gateway), 'it');
  const bob = await gateway.logIn('bob');
  for (const user of [ada, bob]) {
    expect(await user.call('it__whoami')).toEqual({ isError: false, text: 'robot@work' });
  }
  // The token of the same session, on a page that has one.
  const account = await browser.open(`${gateway.baseUrl}/account`);
  const refused = await browser.submitTo(`${gateway.baseUrl}/connections`, account, {
    action: 'disconnect',
    server: 'it',
  });
  expect(refused.status).toBe(403);
  expect((await ada.call('it__whoami')).isError).toBe(false);
});

test('§24.3 who is no operator cannot finish the shared connection that an operator began', async () => {
  const { server, gateway } = await start({ auth: { owner: 'shared' } });
  const olga = operatorOf(gateway);
  const callback = await olga.pressAsFar(
    await olga.open(`${gateway.baseUrl}/connections/it`),
    GO_ON,
    `${gateway.baseUrl}/connections/callback`,
  );
  const ada = gateway.createBrowser({ person: 'ada' });
  ada.cookies.takeFrom(olga.cookies, callback);
  ada.cookies.drop(/session|account/);
  await ada.open(`${gateway.baseUrl}/connections`);
  const page = await ada.open(callback);
  expect(page.status).toBeGreaterThanOrEqual(400);
  expect(server.seen('token')).toEqual([]);
});

test('§24.3 a call at a shared server that nobody has connected is told where an operator does, and gets no link of its own', async () => {
  const { gateway } = await start({ auth: { owner: 'shared' } });
  const page = `${gateway.baseUrl}/connections/it`;
  for (const person of ['ada', 'bob']) {
    const { text, isError } = await (await gateway.logIn(person)).call('it__whoami');
    expect([isError, text]).toEqual([
      true,
      `it is not connected yet. All users share one connection, which an operator of this service has to make at ${page}. Nothing was done. Tell the user, and call again once it is connected.`,
    ]);
  }
});

test('§24.2, §24.3 a shared server has forgotten the gateway’s registration: each caller is told where an operator connects it again', async () => {
  const { clock, server, gateway } = await start({ auth: { owner: 'shared' } });
  const olga = operatorOf(gateway);
  await connect(gateway, olga, 'it');
  server.forgetClients();
  clock.advance(2 * 3_600_000);
  const users = [await gateway.logIn('ada'), await gateway.logIn('bob')];
  for (const user of users) {
    const { text, isError } = await user.call('it__whoami');
    expect([isError, text]).toEqual([
      true,
      expect.stringContaining(
        `An operator of this service has to connect it again at ${gateway.baseUrl}/connections/it if this continues`,
      ),
    ]);
  }
  await connect(gateway, olga, 'it');
  for (const user of users) expect((await user.call('it__whoami')).text).toBe('robot@work');
});

test('§24.6 the audit log says who made, who needs, and who ended a connection, each once, with user and server', async () => {
  const { clock, server, gateway, connectAs } = await start();
  const ada = await connectAs('ada');
  await ada.call('it__whoami');
  server.endLoginsOf('ada@work');
  clock.advance(2 * 3_600_000);
  const later = await gateway.logIn('ada');
  await later.call('it__whoami');
  await later.call('it__whoami');
  const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
  await browser.press(await browser.open(`${gateway.baseUrl}/connections`), /^Disconnect it$/);
  const lines = gateway.auditLines().filter(({ event }) => String(event).includes('connection'));
  expect(lines.length).toBe(3);
  for (const line of lines) {
    const text = JSON.stringify(line);
    expect([text.includes('ada'), text.includes('"it"')]).toEqual([true, true]);
  }
});
