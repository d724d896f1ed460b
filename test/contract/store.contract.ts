// What every driver of the store must do. Time moves by `advance`, never by waiting.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildChannelName } from '../../src/store/keys.ts';
import {
  type LimitWindow,
  type SessionRecord,
  type Store,
  StoreUnavailable,
} from '../../src/store/store.ts';
import { readSession, slideSession } from '../support/stores/session-steps.ts';

export interface Harness {
  readonly store: Store;
  /** A second process's view of the same store; the same object where there can be only one. */
  readonly other: Store;
  /** Lets everything in the store grow older by `ms`. */
  advance(ms: number): Promise<void>;
  close(): Promise<void>;
}

const TTL = 3600;
const BEGIN = 'is anybody there?';
/** Above a slow machine's noise. */
const SOON = { timeout: 10_000 };

const newSession = (members: Partial<SessionRecord> = {}): SessionRecord => ({
  sessionId: randomUUID(),
  createdAt: 1_700_000_000_000,
  lastAccessedAt: 1_700_000_000_000,
  userId: 'ada',
  protocolVersion: '2025-11-25',
  clientInfo: '{"name":"x","list":[],"empty":{}}',
  clientCapabilities: '{"roots":{},"elicitation":{"modes":[]}}',
  ...members,
});

export function describeStore(name: string, open: () => Promise<Harness>): void {
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

    test('§2.1 a session without user and what a client says comes back without them', async () => {
      const {
        userId: _user,
        clientInfo: _info,
        clientCapabilities: _can,
        ...session
      } = newSession();
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
      expect(await store.endSession(id, 'ada')).toBe(false);
      expect(await store.claimExpiredSession(id)).toBe(false);
      expect(await read(id)).toBeUndefined();
    });

    test('§3.1 a call sets lastAccessedAt and the full time-to-live', async () => {
      const session = await create();
      const id = session.sessionId;
      await harness.advance((TTL - 10) * 1000);
      const access = { sessionId: id, owner: 'ada', slideSeconds: TTL };
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
        await store.admitRequest([], { sessionId: id, owner: 'ada', slideSeconds: undefined }),
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
      const access = { sessionId: id, owner: 'ada', slideSeconds: TTL };
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
          const access = { sessionId, owner: at % 3 ? 'ada' : 'eve', slideSeconds: TTL };
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
        expect(await store.setSessionLogLevel(id, 'ada', logLevel)).toBe(true);
        expect(await readSession(harness.other, id)).toEqual({ ...session, logLevel });
      }
      expect(await store.setSessionLogLevel(id, 'eve', 'info')).toBe(false);
      await harness.advance((TTL - 10) * 1000);
      expect(await slide(id, 'ada')).toBe(true);
      await harness.advance((TTL - 10) * 1000);
      expect(await store.setSessionLogLevel(id, 'ada', 'error')).toBe(true);
      expect(await read(id)).toMatchObject({ logLevel: 'error' });
      await harness.advance(11_000);
      expect(await read(id)).toBeUndefined();
      expect(await store.setSessionLogLevel(id, 'ada', 'error')).toBe(false);
      expect(await read(id)).toBeUndefined();
    });

    test('§3.1 another owner can neither touch nor end a session', async () => {
      const session = await create();
      for (const owner of ['eve', '', undefined]) {
        expect(await slide(session.sessionId, owner)).toBe(false);
        expect(await store.endSession(session.sessionId, owner)).toBe(false);
      }
      expect(await read(session.sessionId)).toEqual(session);
    });

    test('§3.1 an ended session is gone, and a touch does not revive it', async () => {
      const { sessionId: id } = await create();
      expect(await store.endSession(id, 'ada')).toBe(true);
      expect(await store.endSession(id, 'ada')).toBe(false);
      expect(await slide(id, 'ada')).toBe(false);
      expect(await read(id)).toBeUndefined();
      expect(await store.claimExpiredSession(id)).toBe(false);
    });

    test('§3.1 touches and an end at the same moment leave no session behind', async () => {
      const { sessionId: id } = await create();
      const touch = () => slide(id, 'ada');
      await Promise.all([touch(), touch(), store.endSession(id, 'ada'), touch(), touch()]);
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
      const session = await create();
      const access = { sessionId: session.sessionId, owner: 'ada', slideSeconds: undefined };
      const { verdict, session: found } = await store.admitRequest(windowsOf(5, 5), access);
      expect(verdict).toMatchObject({ isAdmitted: true, remaining: 4 });
      expect(found).toEqual({ record: session });
      const nothing = await store.admitRequest(windowsOf(5, 5), undefined);
      expect(nothing.session).toEqual({ record: undefined });
    });

    test('§4.3 a ping is answered', async () => {
      await expect(store.ping()).resolves.toBeUndefined();
    });
  });

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
}
