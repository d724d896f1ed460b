// What an operator changes of a server changes where tokens go: those that were given for another place go nowhere.
import { expect, test } from 'vitest';
import { connect } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { GITHUB, KEEPS_TO_MCP } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

async function start(habits = KEEPS_TO_MCP) {
  const clock = manualClock(1_800_000_000_000);
  const [first, second] = [
    closeAfterTest(await startProtectedServer({ habits, clock })),
    closeAfterTest(await startProtectedServer({ habits, clock })),
  ];
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      servers: { it: first.configure() },
      env: { OAUTH_ACCESS_TTL_SECONDS: '86400' },
    }),
  );
  const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
  await connect(gateway, browser, 'it');
  const user = await gateway.logIn('ada');
  expect((await user.call('it__whoami')).text).toBe('ada@work');
  return { clock, first, second, gateway, browser, user };
}

test('§24.4 a name in the file that leads to another host now: no token of the one before is sent there', async () => {
  const { first, second, gateway, browser } = await start();
  await gateway.restart({ it: second.configure() });
  const user = await gateway.logIn('ada');
  const refused = await user.call('it__whoami');
  expect(refused.isError).toBe(true);
  expect(refused.text).toContain(`${gateway.baseUrl}/connections/it`);
  await user.listToolNames();
  for (const token of first.issued) expect(second.text()).not.toContain(token);
  await connect(gateway, browser, 'it');
  expect((await user.call('it__whoami')).text).toBe('ada@work');
});

test('§24.4 one that leads to another path of the same host keeps its connections', async () => {
  const { first, gateway } = await start();
  const moved = { ...first.configure(), url: `${first.url}?v=2` };
  await gateway.restart({ it: moved });
  const user = await gateway.logIn('ada');
  expect((await user.call('it__whoami')).text).toBe('ada@work');
});

test('§24.2 a secret that was written for another authorization server is not sent to the one before', async () => {
  const { clock, first, second, gateway } = await start(GITHUB_WITH_EXPIRY);
  const other = { clientId: 'made-elsewhere', clientSecret: 'secret-of-elsewhere' };
  await gateway.restart({
    it: first.configure({ ...other, authorizationServer: second.issuer }),
  });
  clock.advance(2 * 3_600_000);
  const user = await gateway.logIn('ada');
  const refused = await user.call('it__whoami');
  expect(refused.isError).toBe(true);
  expect(refused.text).toContain(`${gateway.baseUrl}/connections/it`);
  expect(first.text()).not.toContain(other.clientSecret);
});

const GITHUB_WITH_EXPIRY = { ...GITHUB, expiresIn: 3600, hasRefreshTokens: true };
