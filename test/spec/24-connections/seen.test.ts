// What operators see of connections, and end: audit log, metrics and the page's API. Never a token, and never more than one's share.
import { expect, test } from 'vitest';
import { connect } from '../../support/connections/connect-steps.ts';
import {
  type ConnectingGateway,
  type ConnectingGatewayOptions,
  startConnectingGateway,
} from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import type { AuditLine } from '../../support/gateway/audit-log.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

async function start(options: Partial<ConnectingGatewayOptions> = {}, habits = KEEPS_TO_MCP) {
  const { clock } = options;
  const server = closeAfterTest(await startProtectedServer({ habits, ...(clock && { clock }) }));
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { it: server.configure(), other: server.configure() },
      ...options,
      env: { OAUTH_ACCESS_TTL_SECONDS: '86400', ...options.env },
    }),
  );
  const connectAs = async (person: string, to = 'it') => {
    const browser = gateway.createBrowser({ person, account: `${person}@work` });
    await connect(gateway, browser, to);
    return browser;
  };
  return { server, gateway, connectAs };
}

const startClock = () => manualClock(1_800_000_000_000);

const listLines = (gateway: ConnectingGateway): readonly AuditLine[] =>
  gateway.auditLines().filter(({ event }) => event === 'connection');

/** Its tokens have to be renewed after a second. */
const SHORT = { ...KEEPS_TO_MCP, expiresIn: 2 };

test('§24.6 audit: made, renewed once a day on all replicas, in need of a login, ended by whom; user and server, and no token', async () => {
  const { server, gateway, connectAs } = await start({ replicas: 2 }, SHORT);
  const browser = await connectAs('ada');
  for (const replica of [0, 1]) {
    const user = await gateway.logIn('ada', replica);
    const before = server.seen('token').length;
    const callAndCount = async () => {
      expect((await user.call('it__whoami')).isError).toBe(false);
      return server.seen('token').length;
    };
    await expect.poll(callAndCount, { timeout: 10_000 }).toBeGreaterThan(before);
  }
  const of = { event: 'connection', user: 'ada', server: 'it' };
  server.endLoginsOf('ada@work');
  server.spoilAccessTokens();
  const user = await gateway.logIn('ada');
  expect((await user.call('it__whoami')).isError).toBe(true);
  await connect(gateway, browser, 'it');
  await browser.press(await browser.open(`${gateway.baseUrl}/connections`), /^Disconnect it$/);
  await expect.poll(() => listLines(gateway)).toHaveLength(5);
  expect(listLines(gateway)).toMatchObject([
    { ...of, action: 'made', outcome: 'success' },
    { ...of, action: 'renewed', outcome: 'success' },
    { ...of, action: 'login_needed', outcome: 'failure', reason: expect.any(String) },
    { ...of, action: 'made', outcome: 'success' },
    { ...of, action: 'ended', outcome: 'success', by: 'user' },
  ]);
  for (const secret of server.issued) expect(gateway.auditText()).not.toContain(secret);
});

test('§24.6 audit: a renewal of the next day has a line again', async () => {
  const clock = startClock();
  const { gateway, connectAs } = await start({ clock });
  await connectAs('ada');
  const renew = async () => {
    const user = await gateway.logIn('ada');
    expect((await user.call('it__whoami')).isError).toBe(false);
  };
  const countRenewed = () => listLines(gateway).filter(({ action }) => action === 'renewed').length;
  clock.advance(HOUR_MS);
  await renew();
  await expect.poll(countRenewed).toBe(1);
  clock.advance(DAY_MS + HOUR_MS);
  await renew();
  await expect.poll(countRenewed).toBe(2);
});

const readSeries = async (gateway: ConnectingGateway, family: string, replica = 0) => {
  const text = await (await gateway.on(replica).fetch(`${gateway.baseUrl}/metrics`)).text();
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${family}{`))
    .sort();
};

test('§24.6 metrics: connections by server and state, the same of every replica, and what token endpoints said', async () => {
  const { server, gateway, connectAs } = await start({ replicas: 2 });
  await connectAs('ada');
  await connectAs('bob');
  await connectAs('bob', 'other');
  server.endLoginsOf('ada@work');
  server.spoilAccessTokens();
  for (const person of ['ada', 'bob']) await (await gateway.logIn(person)).call('it__whoami');
  const counts = [
    'upstream_connections{server="it",state="active"} 1',
    'upstream_connections{server="it",state="login_needed"} 1',
    'upstream_connections{server="other",state="active"} 1',
    'upstream_connections{server="other",state="login_needed"} 0',
  ];
  for (const replica of [0, 1]) {
    expect(await readSeries(gateway, 'upstream_connections', replica)).toEqual(counts);
  }
  const refreshes = [
    ...(await readSeries(gateway, 'upstream_token_refreshes_total', 0)),
    ...(await readSeries(gateway, 'upstream_token_refreshes_total', 1)),
  ];
  const has = (outcome: string) =>
    refreshes.some((series) => series.includes(`{server="it",outcome="${outcome}"}`));
  expect([has('renewed'), has('login_needed'), has('failed')]).toEqual([true, true, false]);
});

test('§24.6 metrics: however often somebody scrapes, each server is counted once in 15 s', async () => {
  const clock = startClock();
  const { gateway, connectAs } = await start({ clock });
  const active = async () => (await readSeries(gateway, 'upstream_connections'))[0];
  expect(await active()).toMatch(/ 0$/);
  await connectAs('ada');
  expect(await active()).toMatch(/ 0$/);
  clock.advance(14_900);
  expect(await active()).toMatch(/ 0$/);
  clock.advance(200);
  expect(await active()).toMatch(/ 1$/);
});
