// Streams that listen to what cannot be stopped: they end all the same, and so do all others.
import { expect, test } from 'vitest';
import { createLocalCatalog } from '../../../../src/index.ts';
import type { Catalog } from '../../../../src/mcp/catalog/catalog.ts';
import type { Clock } from '../../../../src/platform/clock.ts';
import { openEvents } from '../../../support/clients/event-stream.ts';
import { openClient } from '../../../support/clients/session-client.ts';
import { statelessRequest } from '../../../support/clients/stateless.ts';
import { manualClock, readAsTimePasses } from '../../../support/gateway/clock.ts';
import { closeAfterTest } from '../../../support/lifetimes.ts';
import { startForTest } from '../../../support/upstreams/catalog-gateway.ts';
import { startWatchedHttp } from '../../../support/upstreams/watched-server.ts';

const unstoppable: Catalog = {
  ...createLocalCatalog({}),
  listen: () => () => {
    throw new Error('it cannot be stopped');
  },
};

const start = (mcpServers: object = {}, clock?: Clock) =>
  startForTest({
    file: { mcpServers },
    builtIn: unstoppable,
    env: { MCP_STREAMS: 'true' },
    ...(clock && { clock }),
  });

const FAILURE = {
  level: 'error',
  msg: 'A stream has ended, but its subscriptions could not be stopped.',
};

test('§15 a session gets a new stream where the former one cannot be stopped, and the former one ends', async () => {
  const gateway = await start();
  const client = await openClient(gateway);
  const former = await client.watch();
  const next = await client.watch();
  expect(next.status).toBe(200);
  expect(await former.rest()).toEqual([]);
  expect(gateway.log).toContainEqual(expect.objectContaining(FAILURE));
  next.hangUp();
});

test('§3.1 a session ends where its stream cannot be stopped', async () => {
  const gateway = await start();
  const client = await openClient(gateway);
  const stream = await client.watch();
  expect(await client.end()).toBe(204);
  expect(await stream.rest()).toEqual([]);
});

test('§11 each stream of a gateway that stops ends as it should where none can be stopped', async () => {
  const gateway = await start();
  const streams = [];
  for (let count = 0; count < 3; count += 1)
    streams.push(await (await openClient(gateway)).watch());
  const { message, headers } = statelessRequest('subscriptions/listen', { notifications: {} });
  const subscription = await openEvents({
    port: await gateway.listen(),
    headers: {
      ...headers,
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${await gateway.issuer.sign()}`,
    },
    body: message,
  });
  await gateway.gateway.close();
  for (const stream of streams) expect(await stream.rest()).toEqual([]);
  expect((await subscription.rest()).at(-1)).toMatchObject({ result: { resultType: 'complete' } });
});

test('§18.3 servers are no longer listened to for a stream where the built-in catalogue cannot be stopped', async () => {
  const server = closeAfterTest(await startWatchedHttp('session'));
  const clock = manualClock();
  const gateway = await start({ s: server.entry }, clock);
  const client = await openClient(gateway);
  const stream = await client.watch();
  await client.ask('resources/subscribe', { uri: 'a://1' });
  await expect.poll(() => server.countStreams(1)).toBe(1);
  stream.hangUp();
  await expect.poll(readAsTimePasses(clock, () => server.countStreams(1))).toBe(0);
});
