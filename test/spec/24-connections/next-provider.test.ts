// After a change of OIDC_ISSUER: a connection stays its user's, and is not that of whoever has the same `sub` at the next provider.
import { expect, test } from 'vitest';
import { connect } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startEmulator } from '../../support/providers/emulator.ts';
import { OPENID_HABITS } from '../../support/providers/openid-habits.ts';

async function start(owner: 'user' | 'shared' = 'user') {
  const server = closeAfterTest(await startProtectedServer());
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { it: server.configure({ owner }) },
      replicas: 2,
      env: { ADMIN_GROUPS: 'operators' },
    }),
  );
  const next = closeAfterTest(await startEmulator(OPENID_HABITS, { asksWho: true }));
  const connectAs = (person: string, account: string) =>
    connect(gateway, gateway.createBrowser({ person, account, groups: 'operators' }), 'it');
  const callAs = async (person: string) => {
    const texts = [];
    for (const replica of [0, 1]) {
      const user = await gateway.logIn(person, replica);
      texts.push((await user.call('it__whoami')).text);
    }
    return texts;
  };
  return { gateway, next, connectAs, callAs };
}

test('§24.1 after a change of OIDC_ISSUER nobody has the connection of the user of the same sub at the former provider', async () => {
  const { gateway, next, connectAs, callAs } = await start();
  await connectAs('ada', 'ada@work');
  await connectAs('bob', 'bob@work');
  await gateway.restart();
  expect(await callAs('ada')).toEqual(['ada@work', 'ada@work']);

  await gateway.restart(undefined, next.env);
  for (const text of await callAs('ada')) expect(text).toContain('/connections/it?request=');
  const browser = gateway.createBrowser({ person: 'ada' });
  const page = await browser.open(`${gateway.baseUrl}/connections`);
  expect(page.text).not.toContain('ada@work');

  await connectAs('ada', 'another');
  expect(await callAs('ada')).toEqual(['another', 'another']);
  await gateway.restart();
  expect(await callAs('bob')).toEqual(['bob@work', 'bob@work']);
  for (const text of await callAs('ada')) expect(text).toContain('/connections/it?request=');
});

test('§24.1 a shared connection outlasts a change of OIDC_ISSUER', async () => {
  const { gateway, next, connectAs, callAs } = await start('shared');
  await connectAs('olga', 'robot');
  await gateway.restart(undefined, next.env);
  expect(await callAs('ada')).toEqual(['robot', 'robot']);
});
