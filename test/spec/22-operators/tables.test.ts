// §22.5: the lists that the operators' page draws alike.
import { expect, test } from 'vitest';
import { callTool, stateless } from '../../support/clients/stateless.ts';
import { useFresh } from '../../support/lifetimes.ts';
import { ask, logInBy, PAGE, startOperatedGateways } from '../../support/oauth/operator-logins.ts';

const ANN = { sub: 'u-1', name: 'Ann Example', email: 'ann@example.com' };

const own = useFresh(() => startOperatedGateways());

/** Members that only some rows have. */
const OPTIONAL: Readonly<Record<string, readonly string[]>> = {
  '/sessions': ['server'],
  '/calls': ['server', 'reason'],
  '/grants': ['refreshedAt', 'renewedAt', 'renewalFailsSince'],
};

const readMember = (row: object, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], row);

test('§22.5 operators: each column of a table is a member of the rows that the API answers', async () => {
  const { access } = await logInBy(own, PAGE);
  const { access: token } = await own.logIn(ANN);
  await own.gateway.request({
    method: 'POST',
    path: '/oauth/register',
    body: { client_name: 'Tea', redirect_uris: ['https://tea.example/callback'] },
  });
  await own.gateway.request({ path: '/oauth/authorize?client_id=nobody&response_type=code' });
  await own.gateway.open({ token });
  expect((await stateless(own.gateway, 'tools/list', {}, { token })).status).toBe(200);

  await callTool(own.gateway, 'service_ping', { message: 'hello' }, { token });
  own.clock.advance(1000);

  const { tables } = (await ask(own, access, '/tables')).json;
  const seen = new Map<string, unknown>();
  for (const { path, tab, rows, columns } of tables) {
    const read = async () => (await ask(own, access, path)).json[rows];
    await expect.poll(read, { message: path }).not.toEqual([]);
    const members = columns
      .map(({ member }: { member: string }) => member)
      .filter((member: string) => !OPTIONAL[path]?.includes(member));
    const [row] = await read();
    for (const member of members)
      expect([member, readMember(row, member)]).not.toContain(undefined);
    seen.set(tab, members[0]);
  }
  expect(Object.fromEntries(seen)).toEqual({
    Apps: 'name',
    Calls: 'item',
    Logins: 'user',
    'Refused logins': 'error',
    Sessions: 'user',
    Users: 'user',
  });
});
