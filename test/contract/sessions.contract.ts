// The port Sessions: what every driver must do with sessions, with those of one user (§12), and with a list of them.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SessionRecord, Store } from '../../src/store/store.ts';
import { readSession, slideSession } from '../support/stores/session-steps.ts';
import { ALL, type Harness, newSession, readAll, TTL } from './harness.ts';

/** More than 5 % of the full time: where not every call slides its session, one slides it after that. */
const RARELY_SLID_MS = TTL * 60;

export function describeSessions(name: string, open: () => Promise<Harness>): void {
  let harness: Harness;
  let store: Store;
  let serial = 0;

  beforeAll(async () => {
    harness = await open();
    store = harness.store;
  });
  afterAll(() => harness.close());

  const read = (id: string) => readSession(store, id);
  const slide = (id: string, owner: string | undefined) => slideSession(store, id, owner, TTL);
  const create = async (members?: Partial<SessionRecord>) => {
    const session = newSession(members);
    await store.createSession(session, TTL);
    return session;
  };

  describe(`sessions in the ${name} store`, () => {
    test('§2.1 a session comes back as it was stored, byte for byte', async () => {
      for (const members of [
        {},
        { userId: 'ünï\u0000cödé 𝄞' },
        { clientInfo: '{"a":[],"b":"\\u2028"}' },
        { clientCapabilities: '{"a":[],"b":1e3}', logLevel: 'warning' },
      ]) {
        const session = await create(members);
        expect(await read(session.sessionId)).toEqual(session);
        expect(await readSession(harness.other, session.sessionId)).toEqual(session);
      }
    });

    test('§2.1 a session without user and what a client says of itself comes back without them', async () => {
      const { userId: _user, clientInfo: _info, ...session } = newSession();
      await store.createSession(session, TTL);
      expect(await read(session.sessionId)).toEqual(session);
      expect(await slide(session.sessionId, 'ada')).toBe(false);
      expect(await slide(session.sessionId, undefined)).toBe(true);
      expect(await store.endSession(session.sessionId, undefined)).toBe(true);
    });

    test('§3.1 an unknown session is absent, and cannot be touched, ended or taken', async () => {
      const id = randomUUID();
      expect(await read(id)).toBeUndefined();
      expect(await slide(id, 'ada')).toBe(false);
      expect(await store.endSession(id, { sub: 'ada' })).toBe(false);
      expect(await store.claimExpiredSession(id)).toBe(false);
      expect(await read(id)).toBeUndefined();
    });

    test('§3.1 a call sets lastAccessedAt and the full time-to-live', async () => {
      const session = await create();
      const id = session.sessionId;
      await harness.advance((TTL - 10) * 1000);
      const access = { sessionId: id, owner: { sub: 'ada' }, slideSeconds: TTL };
      const { session: slid } = await store.admitRequest([], access);
      const lastAccessedAt = 'record' in slid ? Number(slid.record?.lastAccessedAt) : 0;
      expect(lastAccessedAt).toBeGreaterThan(session.lastAccessedAt);
      await harness.advance((TTL - 10) * 1000);
      expect(await read(id)).toEqual({ ...session, lastAccessedAt });
      await harness.advance(11_000);
      expect(await read(id)).toBeUndefined();
      expect(await slide(id, 'ada')).toBe(false);
    });

    test('§3.1 reading a session gives it no time', async () => {
      const { sessionId: id } = await create();
      await harness.advance((TTL - 10) * 1000);
      expect(await read(id)).toBeDefined();
      expect(
        await store.admitRequest([], {
          sessionId: id,
          owner: { sub: 'ada' },
          slideSeconds: undefined,
        }),
      ).toMatchObject({ session: { record: { userId: 'ada' } } });
      await harness.advance(11_000);
      expect(await read(id)).toBeUndefined();
    });

    test('§3.1 a call that any window refuses gives its session no time', async () => {
      const { sessionId: id } = await create();
      await harness.advance((TTL - 10) * 1000);
      serial += 1;
      const createWindow = (scope: 'ip' | 'global', max: number) =>
        ({ scope, key: `ratelimit:refusing:${serial}:${scope}`, windowMs: 60_000, max }) as const;
      const windows = [createWindow('ip', 5), createWindow('global', 0)];
      const access = { sessionId: id, owner: { sub: 'ada' }, slideSeconds: TTL };
      expect(await store.admitRequest(windows, access)).toMatchObject({
        verdict: { isAdmitted: false, scope: 'global' },
        session: { record: undefined },
      });
      // Nor did it count for its address.
      expect(await store.admitRequest(windows.slice(0, 1), undefined)).toMatchObject({
        verdict: { isAdmitted: true, remaining: 4 },
      });
      await harness.advance(11_000);
      expect(await read(id)).toBeUndefined();
    });

    test('§11 of 60 calls at once against 30, those that are admitted slide their sessions', async () => {
      const sessions = await Promise.all(Array.from({ length: 60 }, () => create()));
      await harness.advance((TTL - 10) * 1000);
      serial += 1;
      const window = {
        scope: 'ip',
        key: `ratelimit:edge:${serial}`,
        windowMs: 60_000,
        max: 30,
      } as const;
      const admissions = await Promise.all(
        sessions.map(({ sessionId }, at) => {
          const owner = { sub: at % 3 ? 'ada' : 'eve' };
          const access = { sessionId, owner, slideSeconds: TTL };
          return (at % 2 ? store : harness.other).admitRequest([window], access);
        }),
      );
      const isAdmitted = admissions.map(({ verdict }) => verdict?.isAdmitted);
      expect(isAdmitted.filter(Boolean)).toHaveLength(30);
      await harness.advance(11_000);
      const alive = await Promise.all(sessions.map(({ sessionId }) => read(sessionId)));
      expect(alive.map((session) => session !== undefined)).toEqual(
        isAdmitted.map((one, at) => one === true && at % 3 !== 0),
      );
    });

    test('§15 a log level is noted for every replica, by the owner alone, and gives no time', async () => {
      const session = await create();
      const id = session.sessionId;
      for (const logLevel of ['debug', 'emergency']) {
        expect(await store.setSessionLogLevel(id, { sub: 'ada' }, logLevel)).toBe(true);
        expect(await readSession(harness.other, id)).toEqual({ ...session, logLevel });
      }
      expect(await store.setSessionLogLevel(id, { sub: 'eve' }, 'info')).toBe(false);
      await harness.advance((TTL - 10) * 1000);
      expect(await slide(id, 'ada')).toBe(true);
      await harness.advance((TTL - 10) * 1000);
      expect(await store.setSessionLogLevel(id, { sub: 'ada' }, 'error')).toBe(true);
      expect(await read(id)).toMatchObject({ logLevel: 'error' });
      await harness.advance(11_000);
      expect(await read(id)).toBeUndefined();
      expect(await store.setSessionLogLevel(id, { sub: 'ada' }, 'error')).toBe(false);
      expect(await read(id)).toBeUndefined();
    });

    test('§3.1 another owner can neither touch nor end a session', async () => {
      const session = await create();
      for (const owner of ['eve', '', undefined]) {
        expect(await slide(session.sessionId, owner)).toBe(false);
        expect(
          await store.endSession(
            session.sessionId,
            owner === undefined ? undefined : { sub: owner },
          ),
        ).toBe(false);
      }
      expect(await read(session.sessionId)).toEqual(session);
    });

    test('§3.1 an ended session is gone, and a touch does not revive it', async () => {
      const { sessionId: id } = await create();
      expect(await store.endSession(id, { sub: 'ada' })).toBe(true);
      expect(await store.endSession(id, { sub: 'ada' })).toBe(false);
      expect(await slide(id, 'ada')).toBe(false);
      expect(await read(id)).toBeUndefined();
      expect(await store.claimExpiredSession(id)).toBe(false);
    });

    test('§3.1 touches and an end at the same moment leave no session behind', async () => {
      const { sessionId: id } = await create();
      const touch = () => slide(id, 'ada');
      await Promise.all([touch(), touch(), store.endSession(id, { sub: 'ada' }), touch(), touch()]);
      expect(await read(id)).toBeUndefined();
    });

    test('§4.11 an expired session is taken by exactly one of many', async () => {
      const { sessionId: id } = await create();
      const before = await store.countSessions();
      expect(await store.claimExpiredSession(id)).toBe(false);
      await harness.advance(TTL * 1000 + 1000);
      const takes = await Promise.all(
        Array.from({ length: 10 }, (_, at) =>
          (at % 2 ? store : harness.other).claimExpiredSession(id),
        ),
      );
      expect(takes.filter(Boolean)).toHaveLength(1);
      expect(await store.countSessions()).toBe(before - 1);
    });

    test('§4.11 the sweep takes what has expired, once, and keeps what was touched', async () => {
      await harness.advance(TTL * 2000);
      await store.sweepSessions();
      expect(await store.countSessions()).toBe(0);
      const sessions = await Promise.all(Array.from({ length: 450 }, () => create()));
      await harness.advance((TTL - 10) * 1000);
      const kept = sessions.slice(0, 5).map(({ sessionId }) => sessionId);
      for (const id of kept) await slide(id, 'ada');
      expect(await store.sweepSessions()).toBe(0);
      expect(await store.countSessions()).toBe(450);
      await harness.advance(11_000);
      const swept = await Promise.all([store.sweepSessions(), harness.other.sweepSessions()]);
      expect(swept[0] + swept[1]).toBe(445);
      expect(await store.countSessions()).toBe(5);
      for (const id of kept) expect(await read(id)).toBeDefined();
      await harness.advance(TTL * 1000);
      expect(await store.sweepSessions()).toBe(5);
    });
  });

  describe(`sessions as a list in the ${name} store`, () => {
    const createOf = async (userId: string | undefined, ttlSeconds = TTL, userMax = 100) => {
      const session = {
        sessionId: randomUUID(),
        createdAt: 1_700_000_000_000,
        lastAccessedAt: 1_700_000_000_000,
        protocolVersion: '2025-11-25',
        clientInfo: '{"name":"x"}',
        clientCapabilities: '{}',
        ...(userId !== undefined && { userId }),
      };
      await store.createSession(session, ttlSeconds, userMax);
      return session;
    };
    const idsOf = async (sub?: string, limit = 100) => {
      const owner = sub === undefined ? undefined : { sub };
      const listed = await readAll((request) => store.listSessions(request, owner), limit);
      return listed.map(({ record }) => record.sessionId);
    };

    test('§22.2 live sessions are listed with their times, those of everybody or of one user', async () => {
      const user = randomUUID();
      const first = await createOf(user, TTL);
      const second = await createOf(user, TTL + 10);
      const other = await createOf(undefined, TTL + 20);
      expect(await idsOf(user)).toEqual([second.sessionId, first.sessionId]);
      expect((await idsOf()).slice(0, 3)).toEqual([
        other.sessionId,
        second.sessionId,
        first.sessionId,
      ]);
      const { items } = await harness.other.listSessions(ALL, { sub: user });
      expect(items.map(({ record }) => record)).toEqual([second, first]);
      const [one, two] = items.map(({ expiresAt }) => expiresAt);
      // The clocks of several servers differ by some milliseconds.
      expect(Math.abs(Number(one) - Number(two) - 10_000)).toBeLessThan(5_000);
    });

    test('§22.2 the sealed name of its user is listed with a session', async () => {
      const user = randomUUID();
      const session = { ...(await createOf(user)), sessionId: randomUUID(), person: 'sealed' };
      await store.createSession(session, TTL, 1);
      const { items } = await harness.other.listSessions(ALL, { sub: user });
      expect(items.map(({ record }) => record)).toEqual([session]);
    });

    test('§22.2 a session that was ended, or has expired, is not listed', async () => {
      const user = randomUUID();
      const [ended, expired, kept] = [
        await createOf(user),
        await createOf(user, 10),
        await createOf(user),
      ];
      await store.endSession(ended.sessionId, { sub: user });
      await harness.advance(11_000);
      expect(await idsOf(user)).toEqual([kept.sessionId]);
      expect(await idsOf()).not.toContain(ended.sessionId);
      expect(await idsOf()).not.toContain(expired.sessionId);
    });

    test('§22.2 a session in use is listed with the time to which it slid', async () => {
      const user = randomUUID();
      const { sessionId } = await createOf(user);
      const [before] = (await store.listSessions(ALL, { sub: user })).items;
      await harness.advance(RARELY_SLID_MS);
      await slideSession(store, sessionId, user, TTL);
      const [after] = (await store.listSessions(ALL, { sub: user })).items;
      expect(after?.record.lastAccessedAt).toBeGreaterThan(Number(before?.record.lastAccessedAt));
      expect(Number(after?.expiresAt)).toBeGreaterThan(0);
      await harness.advance((TTL - 30) * 1000);
      expect(await idsOf(user)).toEqual([sessionId]);
    });

    test.each([1, 3])('§22.2 pages of %d have each session once', async (limit) => {
      const user = randomUUID();
      const sessions = await Promise.all(Array.from({ length: 5 }, () => createOf(user)));
      expect([...(await idsOf(user, limit))].sort()).toEqual(
        sessions.map(({ sessionId }) => sessionId).sort(),
      );
    });
  });
}

/** How many of them a user may have. */
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
      clientCapabilities: '{}',
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
      await harness.advance(RARELY_SLID_MS);
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
      expect(await store.endSession(first, { sub: 'frank' })).toBe(true);
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
      const acts = old.flatMap((id) => [touch(id, 'niaj'), store.endSession(id, { sub: 'niaj' })]);
      const opened = await Promise.all(opening);
      await Promise.all(acts);
      const ids = [...old, ...opened.map(({ id }) => id)];
      expect((await aliveOf(ids)).length).toBeLessThanOrEqual(MAX);
      for (let left = MAX; left > 0; left -= 1) await begin('niaj');
      expect((await begin('niaj')).ended).toHaveLength(1);
    });
  });
}
