// What every driver must do with values that are listed, with the last of many, and with sessions as a list.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Page, PagePlace, PageRequest } from '../../src/store/page.ts';
import type { Store } from '../../src/store/store.ts';
import { slideSession } from '../support/stores/session-steps.ts';
import type { Harness } from './store.contract.ts';

const TTL = 3600;
const ALL = { from: undefined, limit: 100 };

/** Page by page; more pages than anything here has fail the test. */
async function readAll<Item>(
  readPage: (request: PageRequest) => Promise<Page<Item>>,
  limit: number,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let from: PagePlace | undefined;
  for (let pages = 0; pages < 100; pages += 1) {
    const page = await readPage({ from, limit });
    expect(page.items.length).toBeLessThanOrEqual(limit);
    items.push(...page.items);
    from = page.next;
    if (from === undefined) return items;
  }
  throw new Error('The pages have no end');
}

export function describeLists(name: string, open: () => Promise<Harness>): void {
  let harness: Harness;
  let store: Store;

  beforeAll(async () => {
    harness = await open();
    store = harness.store;
  });
  afterAll(() => harness.close());

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

  describe(`budgets of bytes in the ${name} store`, () => {
    const KIB = 1024;
    const entry = (kibibytes: number) => ({ name: randomUUID(), bytes: kibibytes * KIB });
    const bounds = { maxBytes: 100 * KIB, ttlSeconds: 10 };
    const newBudget = () => `test:budget:${randomUUID()}`;

    test('§18.3 bytes count until they are released, for every process; what is too much counts nothing', async () => {
      const budget = newBudget();
      const [first, second, third] = [entry(60), entry(50), entry(40)];
      expect(await store.reserveBytes(budget, first, bounds)).toBe(true);
      expect(await harness.other.reserveBytes(budget, second, bounds)).toBe(false);
      expect(await harness.other.reserveBytes(budget, third, bounds)).toBe(true);
      expect(await store.reserveBytes(newBudget(), second, bounds)).toBe(true);
      await harness.other.releaseBytes(budget, first);
      await harness.other.releaseBytes(budget, first);
      expect(await store.reserveBytes(budget, second, bounds)).toBe(true);
      expect(await store.reserveBytes(budget, first, bounds)).toBe(false);
    });

    test('§18.3 bytes count until their time is over; the same entry counts once', async () => {
      const budget = newBudget();
      const first = entry(60);
      for (let times = 0; times < 3; times += 1) {
        expect(await store.reserveBytes(budget, first, bounds)).toBe(true);
      }
      await harness.advance(5_000);
      expect(await store.reserveBytes(budget, entry(30), bounds)).toBe(true);
      await harness.advance(6_000);
      expect(await store.reserveBytes(budget, entry(60), bounds)).toBe(true);
      expect(await store.reserveBytes(budget, entry(30), bounds)).toBe(false);
    });

    test('§18.3 of many at once as many count as have room, small ones as 16 KiB', async () => {
      const budget = newBudget();
      const results = await Promise.all(
        Array.from({ length: 20 }, () => store.reserveBytes(budget, entry(1), bounds)),
      );
      expect(results.filter(Boolean)).toHaveLength(6);
    });
  });

  describe(`sessions as a list in the ${name} store`, () => {
    const create = async (userId: string | undefined, ttlSeconds = TTL, userMax = 100) => {
      const session = {
        sessionId: randomUUID(),
        createdAt: 1_700_000_000_000,
        lastAccessedAt: 1_700_000_000_000,
        protocolVersion: '2025-11-25',
        clientInfo: '{"name":"x"}',
        ...(userId !== undefined && { userId }),
      };
      await store.createSession(session, ttlSeconds, userMax);
      return session;
    };
    const idsOf = async (owner?: string, limit = 100) =>
      (await readAll((request) => store.listSessions(request, owner), limit)).map(
        ({ record }) => record.sessionId,
      );

    test('§22.2 live sessions are listed with their times, those of everybody or of one user', async () => {
      const user = randomUUID();
      const first = await create(user, TTL);
      const second = await create(user, TTL + 10);
      const other = await create(undefined, TTL + 20);
      expect(await idsOf(user)).toEqual([second.sessionId, first.sessionId]);
      expect((await idsOf()).slice(0, 3)).toEqual([
        other.sessionId,
        second.sessionId,
        first.sessionId,
      ]);
      const { items } = await harness.other.listSessions(ALL, user);
      expect(items.map(({ record }) => record)).toEqual([second, first]);
      const [one, two] = items.map(({ expiresAt }) => expiresAt);
      // The clocks of several servers differ by some milliseconds.
      expect(Math.abs(Number(one) - Number(two) - 10_000)).toBeLessThan(5_000);
    });

    test('§22.2 the sealed name of its user is listed with a session', async () => {
      const user = randomUUID();
      const session = { ...(await create(user)), sessionId: randomUUID(), person: 'sealed' };
      await store.createSession(session, TTL, 1);
      const { items } = await harness.other.listSessions(ALL, user);
      expect(items.map(({ record }) => record)).toEqual([session]);
    });

    test('§22.2 a session that was ended, or has expired, is not listed', async () => {
      const user = randomUUID();
      const [ended, expired, kept] = [
        await create(user),
        await create(user, 10),
        await create(user),
      ];
      await store.endSession(ended.sessionId, user);
      await harness.advance(11_000);
      expect(await idsOf(user)).toEqual([kept.sessionId]);
      expect(await idsOf()).not.toContain(ended.sessionId);
      expect(await idsOf()).not.toContain(expired.sessionId);
    });

    test('§22.2 a session in use is listed with the time to which it slid', async () => {
      const user = randomUUID();
      const { sessionId } = await create(user);
      const [before] = (await store.listSessions(ALL, user)).items;
      await harness.advance(60_000);
      await slideSession(store, sessionId, user, TTL);
      const [after] = (await store.listSessions(ALL, user)).items;
      expect(after?.record.lastAccessedAt).toBeGreaterThan(Number(before?.record.lastAccessedAt));
      expect(Number(after?.expiresAt)).toBeGreaterThan(0);
      await harness.advance((TTL - 30) * 1000);
      expect(await idsOf(user)).toEqual([sessionId]);
    });

    test.each([1, 3])('§22.2 pages of %d have each session once', async (limit) => {
      const user = randomUUID();
      const sessions = await Promise.all(Array.from({ length: 5 }, () => create(user)));
      expect([...(await idsOf(user, limit))].sort()).toEqual(
        sessions.map(({ sessionId }) => sessionId).sort(),
      );
    });
  });

  test(`§22.4 the ${name} store says what it is`, async () => {
    const facts = await store.describe();
    if (facts.driver === 'embedded') expect(facts.bytes).toBeGreaterThan(0);
    else {
      expect(facts.servers?.length).toBeGreaterThan(0);
      for (const server of facts.servers ?? []) {
        expect(server).toMatchObject({
          version: expect.stringMatching(/^(Redis|Valkey) \d/),
          role: 'primary',
          evictionPolicy: 'noeviction',
        });
      }
    }
  });
}
