// The stream of a session and its subscriptions, among replicas.
import { describe, expect, test } from 'vitest';
import { createChangingResources, updated } from '../../../support/catalogs/changing-resources.ts';
import { openClient } from '../../../support/clients/session-client.ts';
import { startTwoReplicas } from '../../../support/gateway/two-replicas.ts';
import { useShared } from '../../../support/lifetimes.ts';

const { catalog, change } = createChangingResources();
const STREAMS = { MCP_STREAMS: 'true' };

describe('one stream for each session among replicas', () => {
  const pair = useShared(() => startTwoReplicas({ env: STREAMS, deps: { catalog } }));

  test('§16 a second one at the other replica ends the first', async () => {
    const client = await openClient(pair.one);
    const elsewhere = await client.at(pair.other);
    const first = await client.watch();
    const second = await elsewhere.watch();
    expect(await first.rest()).toEqual([]);
    const third = await client.watch();
    expect(await second.rest()).toEqual([]);
    await client.ask('resources/subscribe', { uri: 'watched://a' });
    change('a');
    expect(await third.next()).toEqual(updated('a'));
    third.hangUp();
  });

  test('§4.5 DELETE at the other replica ends it', async () => {
    const client = await openClient(pair.one);
    const stream = await client.watch();
    expect(await (await client.at(pair.other)).end()).toBe(204);
    expect(await stream.rest()).toEqual([]);
  });

  test('§16 subscribed at one replica, told at the other, until unsubscribed at the first', async () => {
    const client = await openClient(pair.one);
    const elsewhere = await client.at(pair.other);
    const stream = await elsewhere.watch();
    await client.ask('resources/subscribe', { uri: 'watched://a' });
    await elsewhere.ask('resources/subscribe', { uri: 'watched://b' });
    change('a');
    expect(await stream.next()).toEqual(updated('a'));
    await client.ask('resources/unsubscribe', { uri: 'watched://a' });
    change('a');
    change('b');
    expect(await stream.next()).toEqual(updated('b'));
    stream.hangUp();
  });
});
