// What a person, or their logout, has ended is not brought back by an answer that was on its way.
import { expect, test } from 'vitest';
import { connect, connectAsFarAsCallback } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { ROTATING, WORKERS } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

async function start(habits = ROTATING) {
  const clock = manualClock(1_800_000_000_000);
  const server = closeAfterTest(await startProtectedServer({ habits, clock }));
  /** Is awaited when a token endpoint has answered, and before the gateway hears it; once. */
  const hold: { answer: (() => Promise<void>) | undefined } = { answer: undefined };
  const fetchHeld: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    if (!String(input).endsWith('/token')) return answer;
    const { answer: held } = hold;
    hold.answer = undefined;
    await held?.();
    return answer;
  };
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      servers: { it: server.configure() },
      env: { CONNECTIONS_END_WITH_LOGOUT: 'true', OAUTH_ACCESS_TTL_SECONDS: '86400' },
      deps: { fetch: fetchHeld },
    }),
  );
  gateway.provider.logoutUrl = `${gateway.baseUrl}/oauth/backchannel-logout`;
  const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
  return { clock, server, gateway, browser, hold };
}

test('§24.4 who is logged out everywhere while a login comes back from the server has no connection then, and the server is told', async () => {
  const { server, gateway, browser, hold } = await start();
  await browser.open(`${gateway.baseUrl}/connections`);
  const callback = await connectAsFarAsCallback(gateway, browser, 'it');
  hold.answer = async () => {
    await gateway.provider.logOutUser({ sub: 'ada' });
  };
  const page = await browser.open(callback);
  expect(page.status).toBe(400);
  expect(page.text).toContain('logged out');
  expect(server.countActiveLogins()).toBe(0);
  const again = await gateway.logIn('ada');
  expect((await again.call('it__whoami')).isError).toBe(true);
});

test('§24.4 who disconnects while a token is renewed stays disconnected, and the new tokens are revoked', async () => {
  const { clock, server, gateway, browser, hold } = await start(WORKERS);
  await connect(gateway, browser, 'it');
  const user = await gateway.logIn('ada');
  clock.advance(2 * 3_600_000);
  const page = await browser.open(`${gateway.baseUrl}/connections`);
  hold.answer = async () => {
    await browser.press(page, /^Disconnect it$/);
  };
  const refused = await user.call('it__whoami');
  expect(refused.text).toContain(`${gateway.baseUrl}/connections/it`);
  expect(server.calls()).toEqual([]);
  const tokens = server.issued.filter((one) => one.startsWith('refresh'));
  const revoked = server.seen('revoke').map(({ form }) => form.get('token'));
  expect(revoked).toContain(tokens.at(-1));
  expect((await browser.open(`${gateway.baseUrl}/connections`)).text).toContain('Not connected');
});

test('§24.4 who connects anew while a token of the connection before is renewed keeps the new one', async () => {
  const { clock, server, gateway, browser, hold } = await start(WORKERS);
  await connect(gateway, browser, 'it');
  const user = await gateway.logIn('ada');
  clock.advance(2 * 3_600_000);
  const other = gateway.createBrowser({ person: 'ada', account: 'ada@home' });
  hold.answer = async () => {
    await connect(gateway, other, 'it');
  };
  expect((await user.call('it__whoami')).text).toBe('ada@home');
  expect((await user.call('it__whoami')).text).toBe('ada@home');
  expect(server.seen('revoke')).toEqual([]);
});
