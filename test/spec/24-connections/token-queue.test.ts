// A token endpoint that stalls keeps nobody waiting who asks another one, and nobody for longer than a call may last.
import { expect, test } from 'vitest';
import { createOutbound } from '../../../src/connections/servers/outbound.ts';
import {
  createTokenEndpoint,
  TooManyRequests,
} from '../../../src/connections/servers/token-endpoint.ts';
import type { ConnectionServer } from '../../../src/mcp/upstream/connections.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { noInternet } from '../../support/gateway/no-internet.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { listenOnLoopback } from '../../support/upstreams/listen.ts';

async function start() {
  const clock = manualClock(1_800_000_000_000);
  let asked = 0;
  const stalling = closeAfterTest(
    await listenOnLoopback(() => {
      asked += 1;
    }),
  );
  const good = closeAfterTest(
    await listenOnLoopback((_req, res) => res.end('{"access_token":"t","token_type":"Bearer"}')),
  );
  const tokenEndpoint = createTokenEndpoint(
    { clock },
    createOutbound({ fetch, clock }, noInternet),
    async (_client, _url, form) => ({ form, headers: {} }),
    { findForRecord: () => expect.fail('nothing is revoked') },
  );
  const ask = (name: string, url: string) => {
    const server: ConnectionServer = {
      name,
      url,
      auth: { type: 'oauth', pkce: true, owner: 'user', allowPrivate: false },
    };
    const client = {
      id: 'client',
      secret: undefined,
      method: 'none' as const,
      audience: undefined,
    };
    return tokenEndpoint.requestTokens(
      { tokenUrl: url },
      client,
      [['grant_type', 'refresh_token']],
      server,
    );
  };
  return { clock, stalling, good, ask, count: () => asked };
}

test('§24.4 three token endpoints that stall under all their users: another server’s tokens are renewed at once', async () => {
  const { stalling, good, ask, count } = await start();
  const waiting = ['one', 'two', 'three'].flatMap((name) =>
    Array.from({ length: 120 }, () => ask(name, stalling.url).catch((error: unknown) => error)),
  );
  await expect.poll(count).toBeGreaterThan(50);
  const began = performance.now();
  expect(await ask('good', good.url)).toMatchObject({ kind: 'issued' });
  // Those that stall are given up after 10 s.
  expect(performance.now() - began).toBeLessThan(8000);
  stalling.close();
  await Promise.all(waiting);
}, 60_000);

test('§24.4 who waits for a token endpoint that stalls is told so in time, and nothing was sent', async () => {
  const { clock, stalling, ask, count } = await start();
  const waiting = Array.from({ length: 100 }, () =>
    ask('one', stalling.url).catch((error: unknown) => error),
  );
  await expect.poll(count).toBe(25);
  clock.advance(10_000);
  const refused = (await Promise.all(waiting)).filter((one) => one instanceof TooManyRequests);
  expect(refused).toHaveLength(75);
  expect(count()).toBe(25);
}, 60_000);
