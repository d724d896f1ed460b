// A renewal that fails for a reason that passes costs nobody a call that the present token is good for.
import { expect, test } from 'vitest';
import { asTimePasses } from '../../support/connections/as-time-passes.ts';
import type { TokenBehaviour } from '../../support/connections/authorization-server.ts';
import { connect } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

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
  const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
  await connect(gateway, browser, 'it');
  const user = await gateway.logIn('ada');
  await user.call('it__whoami');
  return { clock, server, gateway, browser, user };
}

const PASSING: readonly TokenBehaviour[] = [
  'error',
  'page',
  'busy',
  'hangs',
  'down',
  'refuses the client',
];

test.for(PASSING)(
  '§24.4 a token endpoint that is “%s” in the last minute of a token: calls go on by it until it ends, and the endpoint is not asked at each',
  async (behaviour) => {
    const { clock, server, user } = await start();
    clock.advance(HOUR_MS - 50_000);
    server.behave(behaviour);
    const asked = server.seen('token').length;
    for (let call = 0; call < 5; call += 1) {
      expect((await user.call('it__whoami')).text).toBe('ada@work');
    }
    expect(server.seen('token')).toHaveLength(asked + 1);
    clock.advance(MINUTE_MS);
    expect((await asTimePasses(clock, user.call('it__whoami'))).isError).toBe(true);
    server.behave('ok');
    clock.advance(MINUTE_MS);
    expect((await user.call('it__whoami')).text).toBe('ada@work');
  },
);

test('§24.4 a token that the server refused, and whose renewal failed: calls fail, no login is needed, and it is renewed a minute later', async () => {
  const { clock, server, user } = await start();
  server.behave('error');
  server.spoilAccessTokens();
  const asked = server.seen('token').length;
  for (let call = 0; call < 3; call += 1) {
    const refused = await user.call('it__whoami');
    expect(refused).toEqual({ isError: true, text: expect.stringContaining('(401)') });
    expect(refused.text).not.toContain('log in to it again');
  }
  expect(server.seen('token')).toHaveLength(asked + 1);
  server.behave('ok');
  clock.advance(MINUTE_MS);
  expect((await user.call('it__whoami')).text).toBe('ada@work');
});

test('§24.4 who disconnects while a renewal is under way, which then fails, is not served by the old token', async () => {
  const { clock, server, gateway, browser, user } = await start();
  clock.advance(HOUR_MS - 50_000);
  server.behave('hangs');
  const asked = server.seen('token').length;
  const waiting = user.call('it__whoami');
  await expect.poll(() => server.seen('token').length).toBe(asked + 1);
  const calls = server.calls().length;
  const ending = browser.press(
    await browser.open(`${gateway.baseUrl}/connections`),
    /^Disconnect it$/,
  );
  const answer = await asTimePasses(clock, waiting);
  await asTimePasses(clock, ending);
  expect(answer.isError).toBe(true);
  expect(server.calls()).toHaveLength(calls);
});
