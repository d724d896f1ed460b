// The port Windows: how every driver tells whether the grant of a call's user still stands, in the step that counts the call.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGrantId, type Grant } from '../../src/logins/grants/grant.ts';
import { createGrants, type Grants } from '../../src/logins/grants/grants.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createSeal } from '../../src/store/seal/seal.ts';
import { type LimitWindow, NO_GRANT, NO_SESSION, type Store } from '../../src/store/store.ts';
import { noMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { ALL, type Harness, newSession, TTL } from './harness.ts';

export function describeGrants(name: string, open: () => Promise<Harness>): void {
  let harness: Harness;
  let store: Store;

  beforeAll(async () => {
    harness = await open();
    store = harness.store;
  });
  afterAll(() => harness.close());

  describe(`grants that are asked for with a call of the ${name} store`, () => {
    /** Of 16 characters, as versions are. */
    const newVersion = () => randomUUID().replaceAll('-', '').slice(0, 16);
    const sealed = 'x'.repeat(20_000);

    /** A grant of a user with a session, and a window of its own. */
    async function newGrant() {
      const version = newVersion();
      const key = `oauth:grant:${randomUUID()}`;
      const session = newSession();
      await store.set(key, version + sealed, TTL);
      await store.createSession(session, TTL);
      const window: LimitWindow = {
        scope: 'user',
        key: `ratelimit:mcp:user:${randomUUID()}`,
        windowMs: 10 * TTL * 1000,
        max: 100,
      };
      const access = { sessionId: session.sessionId, owner: { sub: 'ada' }, slideSeconds: TTL };
      return { key, version, session, window, access };
    }
    type NewGrant = Awaited<ReturnType<typeof newGrant>>;

    const call = ({ window, access, key }: NewGrant, from: Store = store) =>
      from.admitRequest([window], access, key);
    /** Of a call that is counted, and reads its session, just where there is one. */
    async function readGrant(grant: NewGrant, from?: Store) {
      const { verdict, session, grant: found } = await call(grant, from);
      const isThere = !('version' in found) || found.version !== undefined;
      expect(verdict?.isAdmitted).toBe(isThere ? true : undefined);
      expect(session).toMatchObject({ record: isThere ? { userId: 'ada' } : undefined });
      return found;
    }

    /** So many were counted. */
    const countCalls = async ({ window }: NewGrant) => {
      const { verdict } = await store.admitRequest([window], undefined);
      return 100 - (verdict?.remaining ?? 0) - 1;
    };

    test('§11 a grant that is there: its version, and the call is counted and its session slid', async () => {
      const grant = await newGrant();
      await harness.advance((TTL - 10) * 1000);
      // Its own time is nearly over, too.
      await store.set(grant.key, grant.version + sealed, TTL);
      for (const from of [store, harness.other]) {
        expect(await call(grant, from)).toMatchObject({
          verdict: { isAdmitted: true },
          session: { record: { userId: 'ada' } },
          grant: { version: grant.version },
        });
      }
      await harness.advance(20_000);
      expect(await readGrant(grant)).toEqual({ version: grant.version });
      expect(await countCalls(grant)).toBe(3);
    });

    test('§11 where none is asked for there is none, and all is as ever', async () => {
      const { window, access } = await newGrant();
      expect(await store.admitRequest([window], access)).toMatchObject({
        verdict: { isAdmitted: true },
        session: { record: { userId: 'ada' } },
        grant: NO_GRANT,
      });
    });

    test('§11 a missing grant: nothing is counted, the session neither read nor slid', async () => {
      const grant = await newGrant();
      await harness.other.delete(grant.key);
      await harness.advance((TTL - 10) * 1000);
      for (const from of [store, harness.other, store]) {
        expect(await call(grant, from)).toEqual({
          verdict: undefined,
          entry: undefined,
          session: NO_SESSION,
          grant: NO_GRANT,
        });
      }
      expect(await countCalls(grant)).toBe(0);
      await harness.advance(20_000);
      const { session } = await store.admitRequest([], grant.access);
      expect(session).toEqual(NO_SESSION);
    });

    test('§11 a grant whose time is over is missing from then on, however often it was read', async () => {
      const grant = await newGrant();
      await store.set(grant.key, grant.version + sealed, 60);
      await harness.advance(55_000);
      for (const from of [store, harness.other]) {
        expect(await readGrant(grant, from)).toEqual({ version: grant.version });
      }
      await harness.advance(10_000);
      for (const from of [store, harness.other]) {
        expect(await readGrant(grant, from)).toEqual(NO_GRANT);
      }
      await store.sweepSessions();
      expect(await readGrant(grant)).toEqual(NO_GRANT);
    });

    test.each<{
      way: string;
      change: (from: Store, key: string, value: string, next: string) => Promise<unknown>;
    }>([
      { way: 'set', change: (from, key, _value, next) => from.set(key, next, TTL) },
      {
        way: 'compareAndSet',
        change: (from, key, value, next) => from.compareAndSet(key, value, next, TTL),
      },
      {
        way: 'delete and getOrSet',
        change: async (from, key, _value, next) => {
          await from.delete(key);
          await from.getOrSet(key, next, TTL);
        },
      },
    ])(
      '§11 after $way the next call of every process hears the new version, and counts',
      async ({ change }) => {
        const grant = await newGrant();
        for (const from of [store, harness.other]) await readGrant(grant, from);
        const version = newVersion();
        await change(harness.other, grant.key, grant.version + sealed, version + sealed);
        for (const from of [store, harness.other]) {
          expect(await readGrant(grant, from)).toEqual({ version });
        }
        expect(await countCalls(grant)).toBe(4);
      },
    );

    test.each<{ way: string; end: (from: Store, key: string, value: string) => Promise<unknown> }>([
      { way: 'delete', end: (from, key) => from.delete(key) },
      { way: 'compareAndDelete', end: (from, key, value) => from.compareAndDelete(key, value) },
      { way: 'getAndDelete', end: (from, key) => from.getAndDelete(key) },
    ])('§11 after $way the next call of every process hears that it is gone', async ({ end }) => {
      const grant = await newGrant();
      for (const from of [store, harness.other]) await readGrant(grant, from);
      await end(harness.other, grant.key, grant.version + sealed);
      for (const from of [store, harness.other]) {
        expect(await readGrant(grant, from)).toEqual(NO_GRANT);
      }
    });

    test('§11 what is asked while a grant changes is old or new, and afterwards new', async () => {
      const grant = await newGrant();
      const unlimited = { ...grant, window: { ...grant.window, max: 1e6 } };
      let { version } = grant;
      for (let round = 0; round < 20; round += 1) {
        const next = newVersion();
        let isChanged = false;
        void harness.other.set(grant.key, next + sealed, TTL).then(() => {
          isChanged = true;
        });
        while (!isChanged) {
          const found = await readGrant(unlimited);
          await new Promise(setImmediate);
          expect([version, next]).toContain('version' in found && found.version);
        }
        expect(await readGrant(unlimited)).toEqual({ version: next });
        version = next;
      }
    });

    test('§11 a full window refuses, and the session is not read', async () => {
      const grant = await newGrant();
      const full = { ...grant, window: { ...grant.window, max: 1 } };
      await call(full);
      expect(await call(full)).toMatchObject({
        verdict: { isAdmitted: false, scope: 'user' },
        entry: undefined,
        session: NO_SESSION,
      });
    });

    test('§11 a key that holds no grant concerns nobody else', async () => {
      const [grant, broken] = [await newGrant(), await newGrant()];
      await store.delete(broken.key);
      await store.addRecent(broken.key, 'a'.repeat(100), { max: 3, ttlSeconds: TTL });
      const [good, bad] = await Promise.all([call(grant), call(broken)]);
      expect(good.grant).toEqual({ version: grant.version });
      // A failure, or a version that no process knows: never that there is none.
      expect(bad.grant).not.toEqual(NO_GRANT);
      expect(bad.grant).not.toEqual({ version: broken.version });
      expect(bad.verdict).toMatchObject({ isAdmitted: true });
    });

    test('§11 of very many calls at once each hears of its own grant, and those without one do not count', async () => {
      const grants = await Promise.all(Array.from({ length: 30 }, newGrant));
      const gone = new Set(grants.filter((_, at) => at % 3 === 0));
      for (const { key } of gone) await store.delete(key);
      const shared: LimitWindow = {
        scope: 'global',
        key: `ratelimit:mcp:${randomUUID()}`,
        windowMs: 60_000,
        max: 1000,
      };
      const calls = Array.from({ length: 240 }, (_, at) => grants[(at * 7) % 30] as NewGrant);
      const admissions = await Promise.all(
        calls.map(({ window, access, key }, at) =>
          at % 8 === 5
            ? store.admitRequest([window, shared], access)
            : (at % 2 ? store : harness.other).admitRequest([window, shared], access, key),
        ),
      );
      for (const [at, { verdict, session, grant }] of admissions.entries()) {
        const called = calls[at] as NewGrant;
        const isAsked = at % 8 !== 5;
        const isGone = isAsked && gone.has(called);
        expect(grant).toEqual({ version: isAsked && !isGone ? called.version : undefined });
        expect(verdict?.isAdmitted).toBe(isGone ? undefined : true);
        expect(session).toMatchObject({
          record: isGone ? undefined : { sessionId: called.access.sessionId },
        });
      }
      const counted = calls.filter((called, at) => at % 8 === 5 || !gone.has(called)).length;
      // Another maximum, so that what this process has taken in advance is returned, and Redis counts.
      const { verdict } = await store.admitRequest([{ ...shared, max: 2000 }], undefined);
      const remaining = 2000 - counted - 1;
      const heldByOther = 1000 * (harness.maxShare ?? 0);
      expect(verdict?.remaining).toBeLessThanOrEqual(remaining);
      expect(verdict?.remaining).toBeGreaterThanOrEqual(remaining - heldByOther);
    });
  });
  describe(`grants that are found by the session at the provider in the ${name} store`, () => {
    const ISSUER = 'https://id.example';
    const seal = createSeal(['a-secret-of-the-gateway-that-is-long-enough']);
    const openGrants = (from: Store): Grants =>
      createGrants(
        { store: from, clock: systemClock, metrics: noMetrics },
        seal,
        { announce: async () => {} },
        { idleSeconds: TTL, maxSeconds: 0, unrenewedSeconds: TTL },
      );
    let grants: Grants;
    let others: Grants;

    beforeAll(() => {
      grants = openGrants(store);
      others = openGrants(harness.other);
    });

    const newGrant = (sid: string | undefined): Grant => {
      const now = systemClock.now();
      return {
        id: createGrantId(),
        user: { issuer: ISSUER, sub: randomUUID() },
        claims: {},
        client: { id: 'client', redirectHost: 'client.example' },
        scopes: [],
        resources: [],
        createdAt: now,
        renewedAt: now,
        sid,
        provider: { refreshToken: 'x' },
        issued: {
          generation: 1,
          issuedAt: now,
          expiresAt: now + TTL * 1000,
          scopes: [],
          resources: [],
          isUsed: false,
        },
      };
    };

    async function listIds(from: Grants, sid: string, issuer = ISSUER) {
      const { items } = await from.listIds(ALL, { kind: 'session', session: { issuer, sid } });
      return [...items].sort();
    }

    test('§13.4 every process finds those of a session, and no others', async () => {
      const [sid, otherSid] = [randomUUID(), randomUUID()];
      const mine = [newGrant(sid), newGrant(sid), newGrant(sid)];
      for (const grant of [...mine, newGrant(otherSid), newGrant(undefined)]) {
        await grants.create(grant);
      }
      const ids = mine.map(({ id }) => id).sort();
      for (const from of [grants, others]) {
        expect(await listIds(from, sid)).toEqual(ids);
        expect(await listIds(from, sid, 'https://other.example')).toEqual([]);
      }
    });

    test('§13.4 one that ends, or becomes one of another session, is in the list no more', async () => {
      const [sid, next] = [randomUUID(), randomUUID()];
      const [ended, moved, kept] = [newGrant(sid), newGrant(sid), newGrant(sid)];
      for (const grant of [ended, moved, kept]) await grants.create(grant);
      await others.end(ended.id);
      await others.update(moved.id, (grant) => ({ ...grant, sid: next }));
      for (const from of [grants, others]) {
        expect(await listIds(from, sid)).toEqual([kept.id]);
        expect(await listIds(from, next)).toEqual([moved.id]);
      }
    });

    test('§13.4 the list of a session ends with the last of its grants', async () => {
      const sid = randomUUID();
      await grants.create(newGrant(sid));
      await harness.advance(2 * TTL * 1000);
      await store.sweepSessions();
      expect(await listIds(others, sid)).toEqual([]);
    });
  });
}
