// §24.6: operators see how many users are connected to each server, and to which a person is; and end that. Never a token.
import { expect, test } from 'vitest';
import { connect } from '../../support/connections/connect-steps.ts';
import {
  type ConnectingGateway,
  startConnectingGateway,
} from '../../support/connections/connecting-gateway.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { SECRET, withSecret } from '../../support/oauth/machine-clients.ts';

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
  readonly text: string;
}

async function start(servers: readonly string[] = ['it', 'other']) {
  const server = closeAfterTest(await startProtectedServer());
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: Object.fromEntries(servers.map((name) => [name, server.configure()])),
      file: { clients: [withSecret('ops', { groups: ['operators'] })] },
      env: { ADMIN_GROUPS: 'operators', ADMIN_CLIENTS: 'ops' },
    }),
  );
  const connectAs = (person: string, to = 'it') =>
    connect(gateway, gateway.createBrowser({ person, account: `${person}@work` }), to);
  const token = await getOperatorToken(gateway);
  const ask = (query: string, method = 'GET') =>
    request(gateway, `/admin/api/connections${query}`, { method, token });
  const listEnds = () =>
    gateway
      .auditLines()
      .filter(({ event, action }) => event === 'connection' && action === 'ended')
      .map(({ user, server: at, by }) => `${user} ${at} ${by}`)
      .sort();
  return { server, gateway, connectAs, ask, listEnds };
}

async function getOperatorToken({ baseUrl }: ConnectingGateway): Promise<string> {
  const answer = await fetch(`${baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`ops:${SECRET}`).toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      resource: `${baseUrl}/admin`,
    }),
  });
  return ((await answer.json()) as { access_token: string }).access_token;
}

async function request(
  { baseUrl }: ConnectingGateway,
  path: string,
  { method, token }: { readonly method: string; readonly token: string },
): Promise<Answer> {
  const answer = await fetch(baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${token}` },
  });
  const text = await answer.text();
  return { status: answer.status, json: text === '' ? undefined : JSON.parse(text), text };
}

test('§24.6, §22.4 operators: how many are connected to each server, in the order of the file', async () => {
  const { server, gateway, connectAs, ask } = await start(['zeta', 'it']);
  await connectAs('ada');
  await connectAs('bob');
  await connectAs('bob', 'zeta');
  expect((await ask('')).json).toEqual({
    servers: [
      { server: 'zeta', owner: 'user', active: 1, loginNeeded: 0 },
      { server: 'it', owner: 'user', active: 2, loginNeeded: 0 },
    ],
  });
  server.endLoginsOf('ada@work');
  server.spoilAccessTokens();
  await (await gateway.logIn('ada')).call('it__whoami');
  const { json, text } = await ask('');
  expect(json.servers[1]).toEqual({ server: 'it', owner: 'user', active: 1, loginNeeded: 1 });
  for (const secret of server.issued) expect(text).not.toContain(secret);
});

test('§24.6, §22.4 operators: to which servers a person is connected, by user ID or e-mail, and never a token', async () => {
  const { server, gateway, connectAs, ask } = await start();
  await connectAs('ada');
  await connectAs('bob');
  const connected = {
    server: 'it',
    state: 'active',
    since: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
  };
  const byId = await ask('?person=ada');
  expect(byId.json.people).toMatchObject([{ user: 'ada', connections: [connected] }]);
  // Who is logged in by a client is found by other marks, too.
  await gateway.logIn('ada');
  const { email } = (await ask('?person=ada')).json.people[0];
  const byEmail = await ask(`?person=${encodeURIComponent(email)}`);
  expect(byEmail.json.people).toMatchObject([{ user: 'ada', connections: [connected] }]);
  expect((await ask('?person=nobody')).json.people).toEqual([]);
  for (const secret of server.issued) expect(byId.text + byEmail.text).not.toContain(secret);
  expect(gateway.auditLines().filter(({ event }) => event === 'admin')).toContainEqual(
    expect.objectContaining({ action: 'show', target: 'connections of ada' }),
  );
});

test('§24.6, §22.3 operators: all connections of a person end, at the server too, and nobody else’s', async () => {
  const { server, gateway, connectAs, ask, listEnds } = await start();
  for (const to of ['it', 'other']) await connectAs('ada', to);
  await connectAs('bob');
  const active = server.countActiveLogins();
  expect((await ask('?user=ada', 'DELETE')).json).toEqual({ ended: 2, failed: 0 });
  expect(server.countActiveLogins()).toBe(active - 2);
  expect(listEnds()).toEqual(['ada it operator', 'ada other operator']);
  expect((await (await gateway.logIn('bob')).call('it__whoami')).isError).toBe(false);
  expect((await (await gateway.logIn('ada')).call('it__whoami')).isError).toBe(true);
  expect((await ask('?user=ada', 'DELETE')).json).toEqual({ ended: 0, failed: 0 });
  expect(gateway.auditLines()).toContainEqual(
    expect.objectContaining({
      event: 'admin',
      action: 'end_connections',
      target: 'user ada',
      client: 'ops',
      outcome: 'success',
    }),
  );
});

test('§24.6, §22.3 operators: all connections at a server end, whosever, and none elsewhere', async () => {
  const { connectAs, ask, listEnds } = await start();
  for (const person of ['ada', 'bob']) await connectAs(person);
  await connectAs('bob', 'other');
  expect((await ask('?server=it', 'DELETE')).json).toEqual({ ended: 2, failed: 0 });
  expect(listEnds()).toEqual(['ada it operator', 'bob it operator']);
  expect((await ask('')).json.servers).toMatchObject([{ active: 0 }, { active: 1 }]);
});

test('§24.6, §22.3 operators: one connection of a person ends, by user and server', async () => {
  const { connectAs, ask, listEnds } = await start();
  for (const to of ['it', 'other']) await connectAs('ada', to);
  expect((await ask('?user=ada&server=other', 'DELETE')).json).toEqual({ ended: 1, failed: 0 });
  expect(listEnds()).toEqual(['ada other operator']);
});

test('§24.6, §22.3 operators: where the server cannot be told, the connection is gone here, and the answer says so', async () => {
  const { server, connectAs, ask } = await start();
  await connectAs('ada');
  server.behave('down');
  expect((await ask('?user=ada', 'DELETE')).json).toEqual({ ended: 1, failed: 1 });
  expect((await ask('')).json.servers[0]).toMatchObject({ active: 0, loginNeeded: 0 });
});

test('§24.6, §22.3 operators: at a server that is not in the file any more, connections end, too', async () => {
  const { server, gateway, connectAs, ask } = await start();
  await connectAs('ada');
  await gateway.restart({ other: server.configure() });
  expect((await ask('?server=it', 'DELETE')).json).toMatchObject({ ended: 1 });
  expect((await ask('?server=it', 'DELETE')).json).toMatchObject({ ended: 0 });
});

test.each(['', '?all=true', '?user=', '?server=it&server=other', '?user=ada&client=x'])(
  '§24.6, §22.3 operators: DELETE /admin/api/connections%s is refused, says what is allowed, and ends nothing',
  async (query) => {
    const { connectAs, ask, listEnds } = await start(['it']);
    await connectAs('ada');
    const { status, json } = await ask(query, 'DELETE');
    expect(status).toBe(400);
    expect(json.error.data.details).toContain('server=NAME, user=SUB, or both');
    expect(listEnds()).toEqual([]);
  },
);

test('§24.6, §22.1 operators: nobody else sees or ends anything, a user’s own token included', async () => {
  const { gateway, connectAs } = await start();
  await connectAs('ada');
  const { accessToken: token } = await gateway.logIn('ada');
  for (const [method, query] of [
    ['GET', ''],
    ['GET', '?person=ada'],
    ['DELETE', '?user=ada'],
  ] as const) {
    const { status } = await request(gateway, `/admin/api/connections${query}`, { method, token });
    expect([401, 403]).toContain(status);
  }
  expect((await (await gateway.logIn('ada')).call('it__whoami')).isError).toBe(false);
});
