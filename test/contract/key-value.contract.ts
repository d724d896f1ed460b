// The port KeyValue: what every driver must do with values, with those that are listed, and with the last of many.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { ALL, type Harness, readAll, TTL } from './harness.ts';

export function describeKeyValue(name: string, open: () => Promise<Harness>): void {
  let harness: Harness;
  let store: Store;

  beforeAll(async () => {
    harness = await open();
    store = harness.store;
  });
  afterAll(() => harness.close());

  describe(`values in the ${name} store`, () => {
    test('§2.2 a value comes back until its time is over', async () => {
      const value = '{"client_name":"𝄞 \\" \\u0000","list":[]}';
      await store.set('dcr:client:svc-aaaaaaaaaaaa', value, 60);
      expect(await harness.other.get('dcr:client:svc-aaaaaaaaaaaa')).toBe(value);
      await harness.advance(59_000);
      expect(await store.get('dcr:client:svc-aaaaaaaaaaaa')).toBe(value);
      await harness.advance(2000);
      expect(await store.get('dcr:client:svc-aaaaaaaaaaaa')).toBeUndefined();
      await store.sweepSessions();
      expect(await store.get('dcr:client:svc-aaaaaaaaaaaa')).toBeUndefined();
    });

    test('§2.2 a value that is set again gets the new value and time', async () => {
      await store.set('key', 'one', 60);
      await harness.advance(50_000);
      await store.set('key', 'two', 60);
      await harness.advance(50_000);
      await store.sweepSessions();
      expect(await store.get('key')).toBe('two');
      expect(await store.get('other')).toBeUndefined();
    });
  });

  describe(`single use in the ${name} store`, () => {
    const KEY = 'oauth:test:key';

    test('§3.3 getOrSet writes where nothing is, and gives many the value of one', async () => {
      const values = await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          (at % 2 ? store : harness.other).getOrSet(KEY, `value ${at}`, TTL),
        ),
      );
      expect(new Set(values)).toEqual(new Set([await store.get(KEY)]));
      expect(values[0]).toMatch(/^value \d+$/);
    });

    test('§3.3 getOrSet keeps a value and its time, and writes again after it has expired', async () => {
      await store.set(KEY, 'ünï\u0000cödé 𝄞', TTL);
      await harness.advance((TTL - 10) * 1000);
      expect(await store.getOrSet(KEY, 'other', TTL)).toBe('ünï\u0000cödé 𝄞');
      await harness.advance(10_000);
      expect(await store.getOrSet(KEY, 'again', TTL)).toBe('again');
      await harness.advance((TTL - 10) * 1000);
      expect(await harness.other.getOrSet(KEY, 'other', TTL)).toBe('again');
      await store.delete(KEY);
      expect(await store.get(KEY)).toBeUndefined();
      await store.delete(KEY);
    });

    test('§3.3 take gives a value to one of many, and none that has expired', async () => {
      await store.set(KEY, 'once', TTL);
      const taken = await Promise.all(
        Array.from({ length: 20 }, (_, at) => (at % 2 ? store : harness.other).getAndDelete(KEY)),
      );
      expect(taken.filter((value) => value !== undefined)).toEqual(['once']);
      expect(await store.get(KEY)).toBeUndefined();
      await store.set(KEY, 'late', TTL);
      await harness.advance(TTL * 1000);
      expect(await store.getAndDelete(KEY)).toBeUndefined();
    });
  });

  describe(`compared values in the ${name} store`, () => {
    const newKey = () => `test:compared:${randomUUID()}`;

    test('§16 a value is replaced where the expected one stands, byte for byte, with its full time', async () => {
      const key = newKey();
      await store.set(key, 'ünï\u0000cödé 𝄞', TTL);
      for (const expected of ['', 'ünï', 'ünï\u0000cödé', undefined]) {
        expect(await store.compareAndSet(key, expected, 'wrong', TTL)).toBe(false);
      }
      await harness.advance((TTL - 10) * 1000);
      expect(await harness.other.compareAndSet(key, 'ünï\u0000cödé 𝄞', 'next', TTL)).toBe(true);
      await harness.advance((TTL - 10) * 1000);
      expect(await store.get(key)).toBe('next');
    });

    test('§16 a value that was not replaced keeps its time', async () => {
      const key = newKey();
      await store.set(key, 'value', TTL);
      await harness.advance((TTL - 10) * 1000);
      expect(await store.compareAndSet(key, 'other', 'next', TTL)).toBe(false);
      await harness.advance(11_000);
      expect(await store.get(key)).toBeUndefined();
    });

    test('§16 where nothing is expected, nothing may stand there, nor what has expired be expected', async () => {
      const key = newKey();
      expect(await store.compareAndSet(key, 'value', 'next', TTL)).toBe(false);
      expect(await store.get(key)).toBeUndefined();
      expect(await store.compareAndSet(key, undefined, '', TTL)).toBe(true);
      expect(await store.compareAndSet(key, undefined, 'again', TTL)).toBe(false);
      expect(await store.get(key)).toBe('');
      await harness.advance((TTL + 1) * 1000);
      expect(await store.compareAndSet(key, '', 'late', TTL)).toBe(false);
      expect(await store.compareAndSet(key, undefined, 'new', TTL)).toBe(true);
      expect(await store.get(key)).toBe('new');
    });

    test('§16 of many that replace the same value at once, on two replicas, one does', async () => {
      const key = newKey();
      let standing: string | undefined;
      for (const round of ['first', 'second']) {
        const replaced = await Promise.all(
          Array.from({ length: 20 }, (_, at) =>
            (at % 2 ? store : harness.other).compareAndSet(key, standing, `${round} ${at}`, TTL),
          ),
        );
        expect(replaced.filter(Boolean)).toHaveLength(1);
        standing = `${round} ${replaced.indexOf(true)}`;
        expect(await store.get(key)).toBe(standing);
      }
    });

    test('§16 a value is deleted where the expected one stands, by one of many', async () => {
      const key = newKey();
      expect(await store.compareAndDelete(key, '')).toBe(false);
      await store.set(key, 'value', TTL);
      expect(await store.compareAndDelete(key, 'other')).toBe(false);
      expect(await store.get(key)).toBe('value');
      const deleted = await Promise.all(
        Array.from({ length: 10 }, (_, at) =>
          (at % 2 ? store : harness.other).compareAndDelete(key, 'value'),
        ),
      );
      expect(deleted.filter(Boolean)).toHaveLength(1);
      expect(await store.get(key)).toBeUndefined();
    });
  });

  describe(`listed values in the ${name} store`, () => {
    const newList = () => `test:list:${randomUUID()}`;
    const newKey = () => `test:listed:${randomUUID()}`;
    const namesOf = async (list: string) =>
      (await store.readListed(list, ALL)).items.map(({ value }) => value);

    test('§2.2 a listed value is read by its key and in its list, with its time, by every process', async () => {
      const [list, key] = [newList(), newKey()];
      await store.setListed(list, key, '{"a":"ünï"}', TTL);
      expect(await store.get(key)).toBe('{"a":"ünï"}');
      const { items, next } = await harness.other.readListed(list, ALL);
      expect(items).toEqual([{ key, value: '{"a":"ünï"}', expiresAt: expect.any(Number) }]);
      expect(next).toBeUndefined();
      expect((await store.readListed(newList(), ALL)).items).toEqual([]);
    });

    test('§2.2 the value that expires last comes first, and one that is set again moves', async () => {
      const list = newList();
      const keys = [newKey(), newKey(), newKey()];
      for (const [at, key] of keys.entries()) {
        await store.setListed(list, key, `value ${at}`, TTL + 10 * at);
      }
      expect(await namesOf(list)).toEqual(['value 2', 'value 1', 'value 0']);
      await store.setListed(list, String(keys[0]), 'value 0 again', TTL + 100);
      expect(await namesOf(list)).toEqual(['value 0 again', 'value 2', 'value 1']);
    });

    test('§2.2 a value whose time is over is in no list, and leaves it when the next one comes', async () => {
      const list = newList();
      await store.setListed(list, newKey(), 'short', 10);
      await store.setListed(list, newKey(), 'long', TTL);
      await harness.advance(11_000);
      expect(await namesOf(list)).toEqual(['long']);
      await store.setListed(list, newKey(), 'new', TTL);
      expect(await namesOf(list)).toEqual(['new', 'long']);
    });

    test('§2.2 a list is counted by every process: what is set again once, what is gone or deleted not at all', async () => {
      const [list, key] = [newList(), newKey()];
      expect(await store.countListed(list)).toBe(0);
      await store.setListed(list, newKey(), 'short', 10);
      for (const value of ['long', 'long again']) await store.setListed(list, key, value, TTL);
      await store.setListed(list, newKey(), 'other', TTL);
      await store.setListed(newList(), newKey(), 'of another list', TTL);
      expect(await harness.other.countListed(list)).toBe(3);
      await harness.advance(11_000);
      expect(await store.countListed(list)).toBe(2);
      await store.deleteListed(list, key);
      expect(await harness.other.countListed(list)).toBe(1);
    });

    test('§2.2 of many who delete a listed value, one has deleted it', async () => {
      const [list, key] = [newList(), newKey()];
      await store.setListed(list, key, 'value', TTL);
      await store.setListed(list, newKey(), 'other', TTL);
      const results = await Promise.all(
        [store, harness.other, store].map((one) => one.deleteListed(list, key)),
      );
      expect(results.filter(Boolean)).toEqual([true]);
      expect(await store.get(key)).toBeUndefined();
      expect(await namesOf(list)).toEqual(['other']);
      expect(await store.deleteListed(list, newKey())).toBe(false);
    });

    test.each([1, 2, 3, 100])('§2.2 pages of %d have each value once', async (limit) => {
      const list = newList();
      const values = Array.from({ length: 7 }, (_, at) => `value ${at}`);
      // At the same time, too.
      await Promise.all(values.map((value) => store.setListed(list, newKey(), value, TTL)));
      const items = await readAll((request) => store.readListed(list, request), limit);
      expect(items.map(({ value }) => value).sort()).toEqual(values);
    });

    test('§2.2 a listed value is replaced, and moves in its list, where it still is', async () => {
      const [list, key] = [newList(), newKey()];
      expect(await store.replaceListed(list, key, 'value', TTL)).toBe(false);
      expect(await store.get(key)).toBeUndefined();
      expect(await namesOf(list)).toEqual([]);
      await store.setListed(list, key, 'value', TTL);
      await store.setListed(list, newKey(), 'other', TTL + 10);
      expect(await harness.other.replaceListed(list, key, 'value again', TTL + 100)).toBe(true);
      expect(await store.get(key)).toBe('value again');
      expect(await namesOf(list)).toEqual(['value again', 'other']);
      await store.deleteListed(list, key);
      expect(await store.replaceListed(list, key, 'late', TTL)).toBe(false);
      expect(await namesOf(list)).toEqual(['other']);
    });
  });

  describe(`recent values in the ${name} store`, () => {
    test('§22.4 the last values are kept, the newest first, until their time is over', async () => {
      const key = `test:recent:${randomUUID()}`;
      expect(await store.readRecent(key)).toEqual([]);
      for (const value of ['a', 'b "quoted"', 'c', 'd']) {
        await store.addRecent(key, value, { max: 3, ttlSeconds: TTL });
      }
      expect(await harness.other.readRecent(key)).toEqual(['d', 'c', 'b "quoted"']);
      await harness.advance((TTL + 1) * 1000);
      expect(await store.readRecent(key)).toEqual([]);
    });

    test('§22.4 of many values at once none is lost', async () => {
      const key = `test:recent:${randomUUID()}`;
      const values = Array.from({ length: 20 }, (_, at) => `value ${at}`);
      await Promise.all(
        values.map((value) => store.addRecent(key, value, { max: 20, ttlSeconds: TTL })),
      );
      expect([...(await store.readRecent(key))].sort()).toEqual([...values].sort());
    });
  });
}
