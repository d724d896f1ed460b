// No token, code or secret of a server is seen anywhere but there, and none of the gateway's, its clients' or its provider's is seen
// by a server, whatever fails.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { TokenBehaviour } from '../../support/connections/authorization-server.ts';
import { connect, connectAsFarAsCallback } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP, type ServerHabits } from '../../support/connections/habits.ts';
import { MADE_CLIENT, startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const MINUTE_MS = 60_000;

/** What it refuses it repeats: whatever it is, wherever that may be shown. */
const REPEATING: ServerHabits = {
  ...KEEPS_TO_MCP,
  title: 'one that repeats what it refuses',
  auth: ({ clientId, clientSecret }) => ({ clientId, clientSecret }),
  repeatsTokens: true,
  renderRefusal: ({ status, error, asked }) => ({
    status,
    body: { error, error_description: `No: ${decodeURIComponent(asked)}`, error_uri: asked },
  }),
};

async function run() {
  const clock = manualClock(1_800_000_000_000);
  const server = closeAfterTest(await startProtectedServer({ habits: REPEATING, clock }));
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      servers: { it: server.configure() },
      env: { OAUTH_ACCESS_TTL_SECONDS: '86400', METRICS_ENABLED: 'true' },
    }),
  );
  const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
  const user = await gateway.logIn('ada');
  await user.call('it__whoami');

  // A code that is not good any more, and one whose exchange fails in each way.
  const spent = await connectAsFarAsCallback(gateway, browser, 'it');
  spent.searchParams.set('code', `${spent.searchParams.get('code')}x`);
  await browser.open(spent);
  for (const behaviour of FAILING) {
    const callback = await connectAsFarAsCallback(gateway, browser, 'it');
    server.behave(behaviour);
    await browser.open(callback);
    server.behave('ok');
  }
  await connect(gateway, browser, 'it');
  await user.call('it__whoami');
  server.spoilAccessTokens();
  await user.call('it__whoami');
  await user.call('it__write');

  for (const behaviour of FAILING) {
    clock.advance(61 * MINUTE_MS);
    server.behave(behaviour);
    await user.call('it__whoami');
    server.behave('ok');
    clock.advance(MINUTE_MS);
    await user.call('it__whoami');
  }
  server.refuseAccount('ada@work');
  await user.call('it__whoami');
  server.endLoginsOf('ada@work');
  clock.advance(61 * MINUTE_MS);
  await user.call('it__whoami');
  const page = await browser.open(`${gateway.baseUrl}/connections`);
  server.behave('error');
  await browser.press(page, /^Disconnect it$/);
  server.behave('ok');
  await connect(gateway, browser, 'it');
  await browser.open(`${gateway.baseUrl}/account`);
  return { server, gateway, browser, user };
}

/** Those that do not hang. */
const FAILING: readonly TokenBehaviour[] = [
  'error',
  'page',
  'busy',
  'down',
  'lost',
  'refuses the client',
];

test('§24.5 whatever fails, no code, token or secret of the server is in a log, the audit log, a metric, a page, an answer, or readable in the store', async () => {
  const { server, gateway, browser, user } = await run();
  const metrics = await (await fetch(`${gateway.baseUrl}/metrics`)).text();
  expect(metrics).toContain('# EOF');
  const places = {
    log: JSON.stringify(gateway.log),
    audit: gateway.auditText(),
    metrics,
    pages: browser.textOf(gateway.baseUrl),
    answers: user.text(),
    store: await readFolder(gateway.dataDir),
  };
  const secrets = [...server.issued, MADE_CLIENT.secret, ...verifiersIn(server.text())];
  expect(secrets.length).toBeGreaterThan(20);
  const leaks = Object.entries(places).flatMap(([place, text]) =>
    secrets.filter((secret) => text.includes(secret)).map((secret) => `${place}: ${secret}`),
  );
  expect(leaks).toEqual([]);
  expect(Object.values(places).map((text) => text.length > 100)).toEqual(
    Object.values(places).map(() => true),
  );
});

test('§24.5 the server never sees a token of the gateway, of its client or of its provider, nor who asks', async () => {
  const { server, gateway, user, browser } = await run();
  const seen = server.text();
  expect(seen).not.toContain(user.accessToken);
  expect(seen).not.toMatch(/pst_|opaque-|eyJ/);
  expect(seen).not.toContain(gateway.provider.origin);
  for (const line of browser.cookies.list()) {
    const [, value = ''] = /^[^=]+=([^;]+)/.exec(line) ?? [];
    if (!line.startsWith('account=')) expect(seen).not.toContain(value);
  }
  // What was sent without a good token of its own was not sent at all.
  const presented = server.seen('mcp').map(({ headers }) => headers.authorization ?? '');
  for (const header of presented) expect(header).toMatch(/^(Bearer access-[0-9a-f-]+)?$/);
});

const verifiersIn = (text: string): readonly string[] =>
  [...text.matchAll(/code_verifier=([\w-]+)/g)].map(([, verifier]) => verifier ?? '');

async function readFolder(path: string): Promise<string> {
  const names = await readdir(path, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile());
  const texts = await Promise.all(
    files.map((entry) => readFile(join(entry.parentPath, entry.name), 'latin1')),
  );
  return texts.join('\n');
}
