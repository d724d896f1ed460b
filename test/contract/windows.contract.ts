// The port Windows: how every driver counts requests and bytes, and lets in what has room.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LimitWindow, Store } from '../../src/store/store.ts';
import { type Harness, newSession, TTL } from './harness.ts';

export function describeWindows(name: string, open: () => Promise<Harness>): void {
  let harness: Harness;
  let store: Store;
  let serial = 0;

  beforeAll(async () => {
    harness = await open();
    store = harness.store;
  });
  afterAll(() => harness.close());

  describe(`sliding windows in the ${name} store`, () => {
    const windowsOf = (perIp: number, global: number): LimitWindow[] => {
      serial += 1;
      const of = (scope: 'ip' | 'global', max: number) => ({
        scope,
        key: `ratelimit:g${serial}:${scope === 'ip' ? '10.0.0.1' : 'global'}`,
        windowMs: 60_000,
        max,
      });
      return [of('ip', perIp), of('global', global)];
    };
    const admit = async (windows: LimitWindow[], from: Store = store) => {
      const { verdict } = await from.admitRequest(windows, undefined);
      if (verdict === undefined) throw new Error('no verdict');
      return verdict;
    };

    test('§8.1 counts down, refuses at the limit, and says when to come back', async () => {
      const windows = windowsOf(3, 100);
      const first = await admit(windows);
      expect(first).toMatchObject({ isAdmitted: true, scope: 'ip', limit: 3, remaining: 2 });
      await harness.advance(10_000);
      expect((await admit(windows)).remaining).toBe(1);
      expect((await admit(windows)).remaining).toBe(0);
      const refused = await admit(windows);
      expect(refused).toMatchObject({ isAdmitted: false, scope: 'ip', limit: 3, remaining: 0 });
      expect(refused.resetInMs).toBeGreaterThan(48_000);
      expect(refused.resetInMs).toBeLessThanOrEqual(50_000);
    });

    test('§8.1 the window slides: entries leave one by one', async () => {
      const windows = windowsOf(2, 100);
      await admit(windows);
      await harness.advance(30_000);
      await admit(windows);
      expect((await admit(windows)).isAdmitted).toBe(false);
      await harness.advance(30_500);
      expect(await admit(windows)).toMatchObject({ isAdmitted: true, remaining: 0 });
      expect((await admit(windows)).isAdmitted).toBe(false);
      await harness.advance(30_000);
      expect((await admit(windows)).isAdmitted).toBe(true);
    });

    test('§8.1 the global limit refuses, with its own figures', async () => {
      const windows = windowsOf(100, 2);
      const elsewhere = windows.map((window) =>
        window.scope === 'ip' ? { ...window, key: `${window.key}.2` } : window,
      );
      await admit(windows);
      await admit(elsewhere);
      expect(await admit(windows)).toMatchObject({
        isAdmitted: false,
        scope: 'global',
        limit: 2,
        remaining: 0,
      });
    });

    test('§8.1 a refused request is counted in neither window', async () => {
      const windows = windowsOf(10, 1);
      await admit(windows);
      for (let turn = 0; turn < 5; turn++) expect((await admit(windows)).isAdmitted).toBe(false);
      await harness.advance(61_000);
      // Had the refusals been counted by IP, fewer than 9 would be left.
      expect(await admit(windows)).toMatchObject({ isAdmitted: true, remaining: 9 });
      const [ip] = windows as [LimitWindow, LimitWindow];
      expect((await admit([{ ...ip, max: 2 }])).remaining).toBe(0);
      expect((await admit([{ ...ip, max: 2 }])).isAdmitted).toBe(false);
    });

    test('§8.1 an entry is taken back from its window, and nothing else', async () => {
      const [ip] = windowsOf(2, 100) as [LimitWindow, LimitWindow];
      const { entry } = await store.admitRequest([ip], undefined);
      await store.admitRequest([ip], undefined);
      expect((await admit([ip])).isAdmitted).toBe(false);
      await harness.other.uncountRequest(ip.key, 'none');
      expect((await admit([ip])).isAdmitted).toBe(false);
      if (entry === undefined) throw new Error('no entry');
      await harness.other.uncountRequest(ip.key, entry);
      expect(await admit([ip])).toMatchObject({ isAdmitted: true, remaining: 0 });
      expect((await store.admitRequest([ip], undefined)).entry).toBeUndefined();
    });

    test('§8.1 three windows are counted in one step, in their order', async () => {
      const [ip, global] = windowsOf(100, 100) as [LimitWindow, LimitWindow];
      const user: LimitWindow = { ...ip, scope: 'user', key: `${ip.key}:user`, max: 1 };
      expect(await admit([ip, user, global])).toMatchObject({ isAdmitted: true, scope: 'ip' });
      expect(await admit([ip, user, global])).toMatchObject({ isAdmitted: false, scope: 'user' });
      expect((await admit([ip])).remaining).toBe(98);
      expect((await admit([global])).remaining).toBe(98);
    });

    test('§8.1 of 200 at once against 100, exactly 100 are admitted, on two replicas', async () => {
      const windows = windowsOf(100, 1000);
      const verdicts = await Promise.all(
        Array.from({ length: 200 }, (_, at) => admit(windows, at % 2 ? store : harness.other)),
      );
      expect(verdicts.filter(({ isAdmitted }) => isAdmitted)).toHaveLength(100);
      expect(verdicts.filter(({ scope }) => scope === 'global')).toHaveLength(0);
    });

    test('§8.1 the same at once against a global limit', async () => {
      const windows = windowsOf(1000, 100);
      const verdicts = await Promise.all(
        Array.from({ length: 200 }, (_, at) => admit(windows, at % 2 ? store : harness.other)),
      );
      expect(verdicts.filter(({ isAdmitted }) => isAdmitted)).toHaveLength(100);
      expect((await admit(windows)).scope).toBe('global');
    });

    test('§11 limits and session come in one step', async () => {
      const session = newSession();
      await store.createSession(session, TTL);
      const access = {
        sessionId: session.sessionId,
        owner: { sub: 'ada' },
        slideSeconds: undefined,
      };
      const { verdict, session: found } = await store.admitRequest(windowsOf(5, 5), access);
      expect(verdict).toMatchObject({ isAdmitted: true, remaining: 4 });
      expect(found).toEqual({ record: session });
      const nothing = await store.admitRequest(windowsOf(5, 5), undefined);
      expect(nothing.session).toEqual({ record: undefined });
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
}
