// §12: how many sessions a user may have, in every driver of the store.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SessionRecord, Store } from '../../src/store/store.ts';
import { readSession, slideSession } from '../support/stores/session-steps.ts';
import type { Harness } from './store.contract.ts';

const TTL = 3600;
const MAX = 3;

export function describeUserSessions(name: string, open: () => Promise<Harness>): void {
  let harness: Harness;
  let store: Store;

  beforeAll(async () => {
    harness = await open();
    store = harness.store;
  });
  afterAll(() => harness.close());

  /** Opens one; resolves to its id and those that were ended for it. */
  async function begin(userId: string | undefined, max = MAX, from = store) {
    const id = randomUUID();
    const session: SessionRecord = {
      sessionId: id,
      createdAt: 1,
      lastAccessedAt: 1,
      ...(userId !== undefined && { userId }),
      protocolVersion: '2025-11-25',
    };
    return { id, ended: await from.createSession(session, TTL, max) };
  }

  /** Opens one after the other, a second apart. */
  async function beginMany(userId: string, count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let left = count; left > 0; left -= 1) {
      const { id, ended } = await begin(userId);
      expect(ended).toEqual([]);
      ids.push(id);
      await harness.advance(1000);
    }
    return ids;
  }

  const isAlive = async (id: string) => (await readSession(store, id)) !== undefined;
  const touch = (id: string, userId: string) => slideSession(store, id, userId, TTL);

  async function aliveOf(ids: readonly string[]): Promise<string[]> {
    const alive = await Promise.all(ids.map(isAlive));
    return ids.filter((_, at) => alive[at]);
  }

  describe(`sessions of one user in the ${name} store`, () => {
    test('§3.1 one more than allowed ends the one that expires first', async () => {
      const [first, second, third] = await beginMany('ada', MAX);
      const before = await store.countSessions();
      const { id, ended } = await begin('ada');
      expect(ended).toEqual([first]);
      expect(await aliveOf([first, second, third, id].map(String))).toEqual([second, third, id]);
      // It has left the index as well: nobody counts it as expired.
      expect(await store.countSessions()).toBe(before);
      expect(await store.claimExpiredSession(String(first))).toBe(false);
      expect(await touch(String(first), 'ada')).toBe(false);
    });

    test('§3.1 a session that was touched since expires later', async () => {
      const [first, second, third] = await beginMany('bob', MAX);
      await harness.advance(1_000_000);
      await touch(String(first), 'bob');
      await harness.advance(1000);
      await touch(String(second), 'bob');
      expect((await begin('bob')).ended).toEqual([third]);
      await harness.advance(1000);
      expect((await begin('bob')).ended).toEqual([first]);
    });

    test('§3.1 of many that were all touched since, in another order, likewise', async () => {
      const ids: string[] = [];
      for (let left = 40; left > 0; left -= 1) ids.push((await begin('olivia', 40)).id);
      for (const id of ids.toReversed()) {
        await harness.advance(1000);
        await touch(id, 'olivia');
      }
      const [third, second, first] = ids.slice(-3);
      expect((await begin('olivia', 40)).ended).toEqual([first]);
      expect((await begin('olivia', 39)).ended).toEqual([second, third]);
    });

    test('§3.1 others have sessions of their own, and who is nobody has no limit', async () => {
      await beginMany('carol', MAX);
      expect((await begin('dave')).ended).toEqual([]);
      const ids: string[] = [];
      for (let left = 10; left > 0; left -= 1) {
        const { id, ended } = await begin(undefined);
        expect(ended).toEqual([]);
        ids.push(id);
      }
      expect(await aliveOf(ids)).toEqual(ids);
    });

    test('§3.1 without a limit nothing is ended', async () => {
      for (let left = 10; left > 0; left -= 1) {
        expect((await begin('erin', 0)).ended).toEqual([]);
      }
    });

    test('§3.1 a session that was ended leaves room', async () => {
      const [first = '', second] = await beginMany('frank', MAX);
      expect(await store.endSession(first, 'frank')).toBe(true);
      expect((await begin('frank')).ended).toEqual([]);
      expect((await begin('frank')).ended).toEqual([second]);
    });

    test('§3.1 sessions that expired leave room, and are counted as expired by the sweep', async () => {
      await harness.advance(TTL * 3000);
      await store.sweepSessions();
      await beginMany('grace', MAX);
      await harness.advance(TTL * 1000);
      const { id, ended } = await begin('grace');
      expect(ended).toEqual([]);
      await harness.advance(1000);
      expect(await store.sweepSessions()).toBe(MAX);
      for (let left = MAX - 1; left > 0; left -= 1) {
        expect((await begin('grace')).ended).toEqual([]);
        await harness.advance(1000);
      }
      expect((await begin('grace')).ended).toEqual([id]);
    });

    test('§3.1 sessions that are kept alive for long still count, sweep by sweep', async () => {
      const ids = await beginMany('heidi', MAX);
      for (let turns = 12; turns > 0; turns -= 1) {
        await harness.advance((TTL * 1000) / 2);
        for (const id of ids) expect(await touch(id, 'heidi')).toBe(true);
        await harness.other.sweepSessions();
      }
      expect((await begin('heidi')).ended).toHaveLength(1);
      expect(await aliveOf(ids)).toHaveLength(MAX - 1);
    });

    test('§3.1 a lower limit ends as many as are too many', async () => {
      const ids = await beginMany('ivan', MAX);
      const { id, ended } = await begin('ivan', 1);
      expect([...ended].sort()).toEqual([...ids].sort());
      expect(await isAlive(id)).toBe(true);
    });

    test('§3.1 the new one stays, though it expires before all others', async () => {
      const ids = await beginMany('judy', MAX);
      await Promise.all(ids.map((one) => slideSession(store, one, 'judy', 10 * TTL)));
      const { id, ended } = await begin('judy');
      expect(ended).toHaveLength(1);
      expect(await isAlive(id)).toBe(true);
    });

    test('§3.1 of 50 opened at once by two replicas at the limit, the limit is left', async () => {
      const old = await beginMany('mallory', MAX);
      const opened = await Promise.all(
        Array.from({ length: 50 }, (_, at) =>
          begin('mallory', MAX, at % 2 ? store : harness.other),
        ),
      );
      const ended = opened.flatMap((one) => one.ended);
      expect(new Set(ended).size).toBe(ended.length);
      expect(ended).toHaveLength(50);
      const ids = [...old, ...opened.map(({ id }) => id)];
      expect(await aliveOf(ids)).toHaveLength(MAX);
      expect(await aliveOf(ended)).toEqual([]);
    });

    test('§3.1 touches, ends and opens at once leave no more than allowed', async () => {
      const old = await beginMany('niaj', MAX);
      const opening = Array.from({ length: 20 }, () => begin('niaj'));
      const acts = old.flatMap((id) => [touch(id, 'niaj'), store.endSession(id, 'niaj')]);
      const opened = await Promise.all(opening);
      await Promise.all(acts);
      const ids = [...old, ...opened.map(({ id }) => id)];
      expect((await aliveOf(ids)).length).toBeLessThanOrEqual(MAX);
      for (let left = MAX; left > 0; left -= 1) await begin('niaj');
      expect((await begin('niaj')).ended).toHaveLength(1);
    });
  });
}
