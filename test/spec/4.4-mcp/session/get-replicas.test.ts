// The stream of a session and its subscriptions, among replicas.
import { describe, expect, test } from 'vitest';
import { createChangingResources, updated } from '../../../support/catalogs/changing-resources.ts';
import type { EventStream } from '../../../support/clients/event-stream.ts';
import { openClient, type SessionClient } from '../../../support/clients/session-client.ts';
import { manualClock } from '../../../support/gateway/clock.ts';
import type { TestGateway } from '../../../support/gateway/gateway.ts';
import { startTwoReplicas } from '../../../support/gateway/two-replicas.ts';
import { useFresh, useShared } from '../../../support/lifetimes.ts';

const { catalog, change } = createChangingResources();
const STREAMS = { MCP_STREAMS: 'true' };

/** One of two streams of a session that is subscribed to "a" ends; the other one is told, until DELETE. */
async function expectOneStays(client: SessionClient, streams: readonly EventStream[]) {
  const pending = streams.map((stream) => stream.next());
  const ended = await Promise.race(
    pending.map(async (next, at) => {
      expect(await next).toBeUndefined();
      return at;
    }),
  );
  change('a');
  const kept = 1 - ended;
  expect(await pending[kept]).toEqual(updated('a'));
  expect(await client.end()).toBe(204);
  expect(await streams[kept]?.rest()).toEqual([]);
}

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

describe('streams of a session that are opened at one moment', () => {
  const pair = useShared(() => startTwoReplicas({ env: STREAMS, deps: { catalog } }));

  test('§16 of two at two replicas, one stays', async () => {
    // Each replica tells a change in its own time: the streams of a round must not hear of the one before.
    const witnesses = await Promise.all([pair.one, pair.other].map(watchA));
    for (let round = 0; round < 10; round++) {
      const client = await openClient(pair.one);
      const elsewhere = await client.at(pair.other);
      await client.ask('resources/subscribe', { uri: 'watched://a' });
      const streams = await Promise.all([client.watch(), elsewhere.watch()]);
      await expectOneStays(client, streams);
      for (const witness of witnesses) expect(await witness.next()).toEqual(updated('a'));
    }
    for (const witness of witnesses) witness.hangUp();
  });

  async function watchA(replica: TestGateway): Promise<EventStream> {
    const client = await (await openClient(pair.one)).at(replica);
    await client.ask('resources/subscribe', { uri: 'watched://a' });
    return client.watch();
  }
});

describe('one stream for each session where the clock of a replica is behind', () => {
  const clock = manualClock();
  const clockBehind = manualClock(clock.now() - 5000);
  const pair = useFresh(() =>
    startTwoReplicas({ env: STREAMS, deps: { catalog, clock } }, { deps: { clock: clockBehind } }),
  );

  /** Messages arrive in their order: the last one of the first replica has arrived at the other. */
  async function waitForMessages(): Promise<void> {
    const client = await openClient(pair.one);
    const stream = await (await client.at(pair.other)).watch();
    expect(await client.end()).toBe(204);
    expect(await stream.rest()).toEqual([]);
  }

  /** What is sent while the work is done reaches nobody. */
  async function loseMessages<Result>(work: () => Promise<Result>): Promise<Result> {
    const redis = pair.redis.client();
    const countSubscribers = async () =>
      String(await redis.client('LIST', 'TYPE', 'PUBSUB'))
        .trim()
        .split('\n')
        .filter(Boolean).length;
    // They come back as soon as the clocks go on.
    await redis.client('KILL', 'TYPE', 'PUBSUB');
    const result = await work();
    await expect
      .poll(async () => {
        for (const each of [clock, clockBehind]) each.advance(100);
        return countSubscribers();
      })
      .toBe(2);
    return result;
  }

  test('§16 a newer one at that replica ends the older', async () => {
    const client = await openClient(pair.one);
    await client.ask('resources/subscribe', { uri: 'watched://a' });
    const first = await client.watch();
    await waitForMessages();
    const second = await (await client.at(pair.other)).watch();
    expect(await first.rest()).toEqual([]);
    change('a');
    expect(await second.next()).toEqual(updated('a'));
    second.hangUp();
  });

  test('§16 where the message about the older one does not arrive in time, the newer one stays', async () => {
    const client = await openClient(pair.one);
    const elsewhere = await client.at(pair.other);
    await client.ask('resources/subscribe', { uri: 'watched://a' });
    const first = await loseMessages(() => client.watch());
    const second = await elsewhere.watch();
    expect(await first.rest()).toEqual([]);
    change('a');
    expect(await second.next()).toEqual(updated('a'));
    second.hangUp();
  });

  test('§16 where a message about the older one was lost, one stays as soon as another is opened', async () => {
    const client = await openClient(pair.one);
    await client.ask('resources/subscribe', { uri: 'watched://a' });
    const first = await loseMessages(() => client.watch());
    const second = await (await client.at(pair.other)).watch();
    await expectOneStays(client, [first, second]);
  });
});
