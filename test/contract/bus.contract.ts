// The port Bus: how every driver carries messages from replica to replica.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildChannelName } from '../../src/store/keys.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import type { Harness } from './harness.ts';

const BEGIN = 'is anybody there?';
/** Above a slow machine's noise. */
const SOON = { timeout: 10_000 };

export function describeBus(name: string, open: () => Promise<Harness>): void {
  let harness: Harness;
  let store: Store;
  let serial = 0;

  beforeAll(async () => {
    harness = await open();
    store = harness.store;
  });
  afterAll(() => harness.close());

  describe(`messages in the ${name} store`, () => {
    const newChannel = () => {
      serial += 1;
      return `${buildChannelName('mcp:session:')}:${serial}`;
    };

    /** What a listener has heard once it is known to listen. */
    async function listen(on: Store, channel: string, act = (_message: string) => {}) {
      const heard: string[] = [];
      let listens = false;
      const end = on.subscribe(channel, (message) => {
        if (message === BEGIN) listens = true;
        else heard.push(message);
        act(message);
      });
      const begin = async () => {
        await on.publish(channel, BEGIN);
        return listens;
      };
      await expect.poll(begin, SOON).toBe(true);
      return { heard, end };
    }

    /**
     * What was published before has arrived by now, where it arrives at all. (Many, since each may
     * take another way through a cluster.)
     */
    async function settle(from: Store = store, on: Store = from) {
      const channel = newChannel();
      const { heard, end } = await listen(on, channel);
      for (let turn = 0; turn < 20; turn += 1) await from.publish(channel, String(turn));
      await expect.poll(() => heard, SOON).toHaveLength(20);
      end();
    }

    test('§3.1 a message reaches every listener of its channel, on every replica', async () => {
      const channel = newChannel();
      const listeners = [
        await listen(store, channel),
        await listen(store, channel),
        await listen(harness.other, channel),
      ];
      await store.publish(channel, 'from one');
      await harness.other.publish(channel, 'from the other');
      for (const { heard, end } of listeners) {
        await expect.poll(() => heard.toSorted(), SOON).toEqual(['from one', 'from the other']);
        end();
      }
    });

    test('§3.1 a listener hears its own channel and no other', async () => {
      const channels = [newChannel(), newChannel()] as const;
      const first = await listen(store, channels[0]);
      const second = await listen(store, channels[1]);
      await store.publish(channels[0], 'first');
      await store.publish(channels[1], 'second');
      await settle();
      expect(first.heard).toEqual(['first']);
      expect(second.heard).toEqual(['second']);
      first.end();
      second.end();
    });

    test('§3.1 after its end a listener hears nothing, and the others go on', async () => {
      const channel = newChannel();
      const goes = await listen(store, channel);
      const stays = await listen(store, channel);
      goes.end();
      goes.end();
      await store.publish(channel, 'one');
      await expect.poll(() => stays.heard, SOON).toEqual(['one']);
      stays.end();
      await store.publish(channel, 'two');
      await settle();
      expect(goes.heard).toEqual([]);
      expect(stays.heard).toEqual(['one']);
      const again = await listen(store, channel);
      await store.publish(channel, 'three');
      await expect.poll(() => again.heard, SOON).toEqual(['three']);
      again.end();
    });

    test('§3.1 a listener that ends another, or begins one, while it is called', async () => {
      const channel = newChannel();
      const late: string[] = [];
      const ends: (() => void)[] = [];
      const first = await listen(store, channel, (message) => {
        if (message !== 'go') return;
        for (const end of ends) end();
        ends.push(store.subscribe(channel, (heard) => late.push(heard)));
      });
      const second = await listen(store, channel);
      ends.push(second.end);
      await store.publish(channel, 'go');
      await expect.poll(() => first.heard, SOON).toEqual(['go']);
      await settle();
      expect(second.heard).toEqual([]);
      await store.publish(channel, 'next');
      await expect.poll(() => late, SOON).toContain('next');
      expect(late).not.toContain('go');
      for (const end of [first.end, ...ends]) end();
    });

    test('§3.1 a large message and any character arrive unchanged', async () => {
      const channel = newChannel();
      const { heard, end } = await listen(harness.other, channel);
      const messages = ['', 'ünï\u0000cödé 𝄞\r\n', `${'0123456789abcdé'.repeat(65_536)}𝄞`];
      for (const [at, message] of messages.entries()) {
        await store.publish(channel, message);
        await expect.poll(() => heard.length, SOON).toBe(at + 1);
        expect(heard[at] === message).toBe(true);
      }
      end();
    });

    test('§3.1 a listener that throws hurts neither the others nor what follows', async () => {
      const channel = newChannel();
      const fail = () => {
        throw new Error('a mistake in a listener');
      };
      const thrower = await listen(store, channel, fail);
      const after = await listen(store, channel);
      await store.publish(channel, 'one');
      await expect.poll(() => after.heard, SOON).toEqual(['one']);
      await store.publish(channel, 'two');
      await expect.poll(() => after.heard, SOON).toEqual(['one', 'two']);
      expect(thrower.heard).toEqual(['one', 'two']);
      thrower.end();
      after.end();
    });

    test('§3.1 no listener is called inside the publish', async () => {
      const channel = newChannel();
      const { heard, end } = await listen(store, channel);
      const published = store.publish(channel, 'one');
      expect(heard).toEqual([]);
      await published;
      await expect.poll(() => heard, SOON).toEqual(['one']);
      end();
    });

    test('§3.1 a message to nobody is no error, and is kept for nobody', async () => {
      const channel = newChannel();
      await store.publish(channel, 'too early');
      // On a cluster it may still be on its way from node to node; elsewhere it has gone by.
      if (name.includes('Cluster')) await settle();
      const { heard, end } = await listen(store, channel);
      await settle();
      expect(heard).toEqual([]);
      end();
    });

    test('§4.3 a closed store hears and sends nothing any more', async () => {
      const channel = newChannel();
      const closing = await open();
      const { heard } = await listen(closing.store, channel);
      const last = closing.store.publish(channel, 'on its way').catch(() => {});
      const end = closing.close();
      const atClose = [...heard];
      await Promise.all([last, end]);
      await expect(closing.store.publish(channel, 'late')).rejects.toThrow(StoreUnavailable);
      closing.store.subscribe(channel, (message) => heard.push(message))();
      expect(heard).toEqual(atClose);
    });
  });
}
