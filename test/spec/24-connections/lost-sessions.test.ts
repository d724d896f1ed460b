// A server that was started anew, and says 401 of the sessions that it had: nobody's token is to blame, and nobody has to log in.
import { expect, test } from 'vitest';
import { connect } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const LOST = /^it had lost its session with the gateway/;

async function start() {
  const clock = manualClock(1_800_000_000_000);
  const server = closeAfterTest(await startProtectedServer({ clock }));
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      servers: { it: server.configure() },
      env: { OAUTH_ACCESS_TTL_SECONDS: '86400' },
    }),
  );
  for (const person of ['ada', 'bob']) {
    const browser = gateway.createBrowser({ person, account: `${person}@work` });
    await connect(gateway, browser, 'it');
  }
  const users = {
    ada: await gateway.logIn('ada'),
    adaElsewhere: await gateway.logIn('ada'),
    bob: await gateway.logIn('bob'),
  };
  for (const user of Object.values(users)) await user.call('it__whoami');
  return { clock, server, ...users };
}

test('§24.4 a session that the server lost (401): another is opened by the same token, which is not renewed, in each session of each user', async () => {
  const { server, ada, adaElsewhere, bob } = await start();
  const asked = server.seen('token').length;
  server.loseSessions(401);
  for (const user of [ada, adaElsewhere, bob]) {
    const sent = server.calls().length;
    expect((await user.call('it__whoami')).text).toMatch(LOST);
    expect(server.calls()).toHaveLength(sent + 1);
  }
  expect((await ada.call('it__whoami')).text).toBe('ada@work');
  expect((await adaElsewhere.call('it__whoami')).text).toBe('ada@work');
  expect((await bob.call('it__whoami')).text).toBe('bob@work');
  expect(server.seen('token')).toHaveLength(asked);
});

test('§24.4 a server that lost sessions and tokens: the token is renewed, the session replaced, and nobody has to log in', async () => {
  const { server, ada, adaElsewhere } = await start();
  server.spoilAccessTokens();
  server.loseSessions(401);
  expect((await ada.call('it__whoami')).text).toMatch(LOST);
  expect((await ada.call('it__whoami')).text).toBe('ada@work');
  expect((await adaElsewhere.call('it__whoami')).text).toMatch(LOST);
  expect((await adaElsewhere.call('it__whoami')).text).toBe('ada@work');
});

test('§24.4 a token that is refused is renewed as ever, in the same session', async () => {
  const { server, ada } = await start();
  const sessionOfLastCall = () =>
    server.seen('mcp').findLast(({ rpcMethod }) => rpcMethod === 'tools/call')?.headers[
      'mcp-session-id'
    ];
  await ada.call('it__whoami');
  const before = sessionOfLastCall();
  server.spoilAccessTokens();
  expect((await ada.call('it__whoami')).text).toBe('ada@work');
  expect(sessionOfLastCall()).toBe(before);
});
