// Each replica has a process of its own; a client subscribes at one replica, and has its stream at another.
import { expect, test } from 'vitest';
import type { EventStream } from '../../support/clients/event-stream.ts';
import { openClient, type SessionClient } from '../../support/clients/session-client.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { scripted } from '../../support/upstreams/stdio.ts';

const PATIENT = { timeout: 20_000 };
const URI = 'a://1';
const UPDATED = { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: URI } };

const redis = useShared(startRedis);

async function startReplicas(
  isolation: string,
): Promise<readonly [CatalogGateway, CatalogGateway]> {
  const file = { mcpServers: { s: { ...scripted(), isolation } } };
  const env = { MCP_STREAMS: 'true', REDIS_URL: redis.url };
  const first = await startForTest({ file, env });
  const second = await startForTest({ file, env: { ...env, OIDC_ISSUER: first.issuer.url } });
  return [first, second];
}

/** Text of the result of a tool, at the replica of the client. */
async function run(client: SessionClient, tool: string, args: object = {}): Promise<string> {
  const { result } = await client.ask('tools/call', { name: `s__${tool}`, arguments: args });
  return result.content[0].text;
}

/** Has the process of the client's replica say that the resource has changed. */
const change = (client: SessionClient) =>
  run(client, 'notify', { method: 'notifications/resources/updated', params: { uri: URI } });

/** Lists change as well while processes start. */
async function nextUpdate(stream: EventStream): Promise<unknown> {
  for (;;) {
    const message = await stream.next();
    if (message?.method === UPDATED.method) return message;
    expect(message?.method).toMatch(/list_changed$/);
  }
}

test.each(['shared', 'user'])(
  '§18.3 stdio: with "%s" changes reach the stream of a client, at whichever replica it subscribed',
  async (isolation) => {
    const [first, second] = await startReplicas(isolation);
    const here = await openClient(first);
    const there = await here.at(second);
    const stream = await there.watch();
    expect((await here.ask('resources/subscribe', { uri: URI })).result).toEqual({});
    await expect.poll(() => run(there, 'subscriptions'), PATIENT).toBe(`["+${URI}"]`);
    await change(here);
    expect(await nextUpdate(stream)).toEqual(UPDATED);
    await change(there);
    expect(await nextUpdate(stream)).toEqual(UPDATED);
    expect((await there.ask('resources/unsubscribe', { uri: URI })).result).toEqual({});
    expect(await run(there, 'subscriptions')).toBe(`["+${URI}","-${URI}"]`);
    stream.hangUp();
  },
);

test('§18.3 stdio: a stream that is opened later, at another replica, has the subscriptions', async () => {
  const [first, second] = await startReplicas('shared');
  const here = await openClient(first);
  expect((await here.ask('resources/subscribe', { uri: URI })).result).toEqual({});
  const there = await here.at(second);
  expect(await run(there, 'subscriptions')).toBe('[]');
  const stream = await there.watch();
  await expect.poll(() => run(there, 'subscriptions'), PATIENT).toBe(`["+${URI}"]`);
  await change(there);
  expect(await nextUpdate(stream)).toEqual(UPDATED);
  stream.hangUp();
});

test('§18.3 stdio: a stream that is opened while there is no process has the subscriptions once there is one', async () => {
  const [first, second] = await startReplicas('shared');
  const here = await openClient(first);
  expect((await here.ask('resources/subscribe', { uri: URI })).result).toEqual({});
  const there = await here.at(second);
  await run(there, 'exit');
  const stream = await there.watch();
  await expect.poll(() => run(there, 'subscriptions'), PATIENT).toBe(`["+${URI}"]`);
  stream.hangUp();
});

test('§18.3 stdio: what is given up at one replica ends at the process of the other', async () => {
  const [first, second] = await startReplicas('shared');
  const one = await openClient(first);
  const other = await openClient(first);
  for (const client of [one, other]) await client.ask('resources/subscribe', { uri: URI });
  expect((await (await one.at(second)).ask('resources/unsubscribe', { uri: URI })).result).toEqual(
    {},
  );
  expect(await (await other.at(second)).end()).toBe(204);
  const probe = await openClient(first);
  await expect.poll(() => run(probe, 'subscriptions'), PATIENT).toBe(`["+${URI}","-${URI}"]`);
});
