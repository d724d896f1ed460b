// CONNECTIONS_END_WITH_LOGOUT: who is logged out of everything has no connection to a server afterwards; nobody else loses one.
import { expect, test } from 'vitest';
import { connect } from '../../support/connections/connect-steps.ts';
import {
  type ConnectingGateway,
  startConnectingGateway,
} from '../../support/connections/connecting-gateway.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { SECRET, withSecret } from '../../support/oauth/machine-clients.ts';

async function start(env: Readonly<Record<string, string>>) {
  const server = closeAfterTest(await startProtectedServer());
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { it: server.configure() },
      file: { clients: [withSecret('ops', { groups: ['operators'] })] },
      env: { ADMIN_GROUPS: 'operators', ADMIN_CLIENTS: 'ops', ...env },
    }),
  );
  const connectAs = async (person: string) => {
    const browser = gateway.createBrowser({ person, account: `${person}@work` });
    await connect(gateway, browser, 'it');
    return gateway.logIn(person);
  };
  return { server, gateway, connectAs };
}

const WITH_LOGOUT = { CONNECTIONS_END_WITH_LOGOUT: 'true' };

test.for([
  [WITH_LOGOUT, ['ada it logout']],
  [{}, []],
] as const)(
  '§24.6 logout: an operator ends all logins of a person, with %o: what ends of connections is theirs alone',
  async ([env, ended]) => {
    const { server, gateway, connectAs } = await start(env);
    await connectAs('ada');
    const bob = await connectAs('bob');
    const { status } = await endLogins(gateway, '?user=ada');
    expect(status).toBe(200);
    await expect.poll(() => server.countActiveLogins()).toBe(2 - ended.length);
    await expect.poll(() => listEnds(gateway)).toEqual(ended);
    expect((await bob.call('it__whoami')).text).toBe('bob@work');
  },
);

test('§24.6 logout: where one client of a person is logged out, or the person by one client, no connection ends', async () => {
  const { server, gateway, connectAs } = await start(WITH_LOGOUT);
  await connectAs('ada');
  const grants = await askAdmin(gateway, '/grants?user=ada');
  const {
    grants: [{ client, id }],
  } = (await grants.json()) as GrantList;
  expect((await endLogins(gateway, `?user=ada&client=${client.id}`)).status).toBe(200);
  expect((await endLogins(gateway, `/${id}`)).status).toBe(404);
  expect((await endLogins(gateway, `?client=${client.id}`)).status).toBe(200);
  const again = await gateway.logIn('ada');
  expect((await again.call('it__whoami')).text).toBe('ada@work');
  expect([server.countActiveLogins(), listEnds(gateway)]).toEqual([1, []]);
});

test('§24.6 logout: a server that cannot be told holds nothing up; the connection is gone here, and the log says so', async () => {
  const { server, gateway, connectAs } = await start(WITH_LOGOUT);
  await connectAs('ada');
  server.behave('down');
  expect((await endLogins(gateway, '?user=ada')).status).toBe(200);
  await expect.poll(() => listEnds(gateway)).toEqual(['ada it logout']);
  await expect
    .poll(() =>
      gateway.log.filter(({ msg }) => String(msg).includes('not every server could be reached')),
    )
    .toMatchObject([{ level: 'warn', user: 'ada', failed: 1 }]);
});

test('§24.6 logout: who logs out everywhere at /account has no connection afterwards', async () => {
  const { server, gateway, connectAs } = await start(WITH_LOGOUT);
  await connectAs('ada');
  await connectAs('bob');
  // All at once is offered where there are several.
  await gateway.logIn('ada');
  const browser = gateway.createBrowser({ person: 'ada' });
  const account = await browser.open(`${gateway.baseUrl}/account`);
  const asked = await browser.press(account, /^Log out everywhere$/);
  await browser.press(asked, /^Log out everywhere now$/);
  await expect.poll(() => listEnds(gateway)).toEqual(['ada it logout']);
  expect(server.countActiveLogins()).toBe(1);
});

interface GrantList {
  readonly grants: readonly [{ readonly id: string; readonly client: { readonly id: string } }];
}

const listEnds = (gateway: ConnectingGateway): readonly string[] =>
  gateway
    .auditLines()
    .filter(({ event, action }) => event === 'connection' && action === 'ended')
    .map(({ user, server, by }) => `${user} ${server} ${by}`);

const endLogins = (gateway: ConnectingGateway, path: string) =>
  askAdmin(gateway, `/grants${path}`, 'DELETE');

/** By a client of the configuration file that acts as an operator. */
async function askAdmin({ baseUrl }: ConnectingGateway, path: string, method = 'GET') {
  const answer = await fetch(`${baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`ops:${SECRET}`).toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      resource: `${baseUrl}/admin`,
    }),
  });
  const { access_token: token } = (await answer.json()) as { readonly access_token: string };
  return fetch(`${baseUrl}/admin/api${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
  });
}
