// STORE_READS=tracked: what a process remembers of what it has read, and for how long.
import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/platform/clock.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { type Admission, NO_SESSION, type Owner, type Store } from '../../src/store/store.ts';
import { collectLog, type LogLine } from '../support/gateway/log.ts';
import { closeAfterTest, useFresh } from '../support/lifetimes.ts';
import { type RedisServer, startRedis } from '../support/stores/redis.ts';
import { type RedisProxy, startRedisProxy } from '../support/stores/redis-proxy.ts';
import { newSession, TTL } from './harness.ts';
import { age } from './redis-age.ts';

/** So long after a change no process finds what was there before. */
const HOLDS_WITHIN_MS = 200;

const redis: RedisServer = useFresh(startRedis);
let client: Redis;
let one: Store;
let other: Store;

function openTracked(
  url: string,
  lines: { log: readonly LogLine[] } = { log: [] },
  clock: Clock = systemClock,
): Store {
  const { log, lines: logged } = collectLog();
  lines.log = logged;
  return closeAfterTest(
    openRedisStore({
      url,
      sessionKeyPrefix: 'mcp:session:',
      clock,
      log,
      reads: 'tracked',
      backoff: () => 10,
    }),
  );
}

beforeEach(() => {
  client = redis.client();
  one = openTracked(redis.url);
  other = openTracked(redis.url);
});

interface Caller {
  readonly sessionId: string;
  readonly owner: Owner;
  readonly grantKey: string;
}

/** A user with a session and a login. */
async function newCaller(sub = 'ada', ttlSeconds = TTL): Promise<Caller> {
  const { sessionId } = newSession();
  const grantKey = `oauth:grant:${randomUUID()}`;
  await one.createSession(newSession({ sessionId, userId: sub }), ttlSeconds);
  await one.set(grantKey, `${newVersion()}sealed`, ttlSeconds);
  return { sessionId, owner: { sub }, grantKey };
}

const newVersion = () => randomUUID().replaceAll('-', '').slice(0, 16);

/** A call that slides its session to `slideSeconds`. */
const call = async (store: Store, caller: Caller, slideSeconds = TTL) =>
  store.admitRequest([], { ...caller, slideSeconds }, caller.grantKey);

const callToRead = (store: Store, caller: Caller) =>
  store.admitRequest([], { ...caller, slideSeconds: undefined }, caller.grantKey);

/** A store that does not answer lets nobody in. */
const tryCall = (store: Store, caller: Caller): Promise<Admission> =>
  call(store, caller).catch((failure: unknown) => ({
    verdict: undefined,
    entry: undefined,
    session: { failure },
    grant: { failure },
  }));

const isLetIn = ({ session, grant }: Admission): boolean =>
  'record' in session &&
  session.record !== undefined &&
  'version' in grant &&
  grant.version !== undefined;

/** What Redis has been asked for: scripts, and whatever reads. */
async function countQuestions(): Promise<number> {
  const stats = await client.info('commandstats');
  return [...stats.matchAll(/^cmdstat_(?:evalsha|eval|hmget|getrange|get):calls=(\d+)/gm)]
    .map(([, calls]) => Number(calls))
    .reduce((sum, calls) => sum + calls, 0);
}

/** How often the calls of these asked Redis for something. */
async function questionsOf(store: Store, ...callers: readonly Caller[]): Promise<number> {
  const before = await countQuestions();
  for (const caller of callers) expect(isLetIn(await call(store, caller))).toBe(true);
  return (await countQuestions()) - before;
}

const warmUp = (store: Store, ...callers: readonly Caller[]) =>
  expect.poll(() => questionsOf(store, ...callers), { interval: 5 }).toBe(0);

/**
 * Calls until nothing that was there before is found for some time after it changed. Whatever this process is kept from
 * doing meanwhile, a call that begins 200 ms after the change must not find it.
 */
async function expectToHold(store: Store, caller: Caller, changedAt: number): Promise<void> {
  let goneCalls = 0;
  for (let startedAt = changedAt; startedAt - changedAt < 3 * HOLDS_WITHIN_MS; ) {
    startedAt = performance.now();
    const isIn = isLetIn(await tryCall(store, caller));
    if (startedAt - changedAt >= HOLDS_WITHIN_MS) {
      goneCalls += 1;
      expect(isIn).toBe(false);
    }
    await new Promise(setImmediate);
  }
  expect(goneCalls).toBeGreaterThan(0);
}

describe('what is remembered', () => {
  test('§11 a call of a session and a login that are known asks Redis for nothing', async () => {
    const caller = await newCaller();
    await warmUp(one, caller);
    const before = await countQuestions();
    for (let calls = 0; calls < 200; calls += 1) await call(one, caller);
    expect(await countQuestions()).toBe(before);
  });

  test('§11 after a pause the first call asks, and what was known is known again', async () => {
    const caller = await newCaller();
    await warmUp(one, caller);
    const hmgets = async () =>
      Number(/cmdstat_hmget:calls=(\d+)/.exec(await client.info('commandstats'))?.[1]);
    const read = await hmgets();
    // Nobody asks for so long that no beat is sent any more.
    const beats = async () =>
      Number((await client.info('commandstats')).match(/cmdstat_del:calls=(\d+)/)?.[1]);
    let last = -1;
    await expect
      .poll(
        async () => {
          const sent = await beats();
          const isSilent = sent === last;
          last = sent;
          return isSilent;
        },
        { interval: 200 },
      )
      .toBe(true);
    expect(await questionsOf(one, caller)).toBeGreaterThan(0);
    await warmUp(one, caller);
    // By the one script; nothing was read beside it.
    expect((await hmgets()) - read).toBe(1);
  });

  test('§3.1 a session slides once 5 % of its time are over, not before', async () => {
    const caller = await newCaller();
    const key = `mcp:session:${caller.sessionId}`;
    await warmUp(one, caller);
    await age(client, TTL * 40);
    for (let calls = 0; calls < 20; calls += 1) await call(one, caller);
    expect(await client.ttl(key)).toBeLessThanOrEqual(TTL * 0.96);
    expect(Number(await client.hget(key, 'lastAccessedAt'))).toBe(newSession().lastAccessedAt);
    await age(client, TTL * 11);
    await expect
      .poll(async () => {
        await call(one, caller);
        return client.ttl(key);
      })
      .toBeGreaterThan(TTL * 0.99);
    expect(Number(await client.hget(key, 'lastAccessedAt'))).toBeGreaterThan(Date.now() - 60_000);
    await warmUp(one, caller);
  });

  test('§3.1 where the time of a session is set to more, or less, its next call slides it', async () => {
    const caller = await newCaller();
    const key = `mcp:session:${caller.sessionId}`;
    await warmUp(one, caller);
    for (const seconds of [10 * TTL, TTL / 10]) {
      await call(one, caller, seconds);
      expect(await client.ttl(key)).toBeGreaterThan(seconds * 0.99);
      expect(await client.ttl(key)).toBeLessThanOrEqual(seconds);
    }
  });

  test("§3.1 another user's call does not slide a session, nor does it get it as its own", async () => {
    const caller = await newCaller();
    await warmUp(one, caller);
    await age(client, TTL * 60);
    const eve = { ...caller, owner: { sub: 'eve' } };
    const { session } = await call(one, eve);
    expect(session).toMatchObject({ record: { userId: 'ada' } });
    expect(await client.ttl(`mcp:session:${caller.sessionId}`)).toBeLessThan(TTL * 0.95);
  });

  test('§11 what is not there is asked for each time, and found as soon as it is there', async () => {
    const caller = { ...(await newCaller()), sessionId: randomUUID() };
    for (let calls = 0; calls < 20; calls += 1) {
      expect((await call(one, caller)).session).toEqual(NO_SESSION);
    }
    await other.createSession(newSession(caller), TTL);
    expect(isLetIn(await call(one, caller))).toBe(true);
  });

  test('§11 after the time of day was set forward, what was known is known again', async () => {
    let aheadMs = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
    const store = openTracked(redis.url, undefined, clock);
    const caller = await newCaller();
    await warmUp(store, caller);
    aheadMs = 2 * TTL * 1000;
    await warmUp(store, caller);
  });

  test("§11 another user's changes are forgotten for nobody else", async () => {
    const ada = await newCaller('ada');
    const bob = await newCaller('bob');
    await warmUp(one, ada, bob);
    const bobs = await newCaller('bob');
    for (let calls = 0; calls < 20; calls += 1) {
      await other.setSessionLogLevel(bob.sessionId, bob.owner, calls % 2 ? 'debug' : 'error');
      await other.set(bobs.grantKey, newVersion(), TTL);
      expect(await questionsOf(one, ada)).toBe(0);
    }
    await other.endSession(bob.sessionId, bob.owner);
    expect(await questionsOf(one, ada)).toBe(0);
    expect(isLetIn(await call(one, bob))).toBe(false);
  });
});

test('§8.1 a limit that refuses a call does not say that its login has ended', async () => {
  const caller = await newCaller();
  await warmUp(one, caller);
  const window = {
    key: 'ratelimit:mcp:user:ada',
    scope: 'user',
    windowMs: 60_000,
    max: 1,
  } as const;
  const count = () => one.admitRequest([window], { ...caller, slideSeconds: TTL }, caller.grantKey);
  expect(isLetIn(await count())).toBe(true);
  const refused = await count();
  expect(refused.verdict).toMatchObject({ isAdmitted: false });
  expect(refused.grant).toEqual({ version: expect.any(String) });
});

/** What ends a caller's session, or login. */
const ENDS: readonly {
  readonly what: string;
  end(store: Store, caller: Caller): Promise<unknown>;
}[] = [
  {
    what: 'a session that is ended',
    end: (store, { sessionId, owner }) => store.endSession(sessionId, owner),
  },
  {
    what: 'a login that is ended',
    end: (store, { grantKey }) => store.getAndDelete(grantKey),
  },
];

describe.each(ENDS)('$what', ({ end }) => {
  test('§11 is ended at once where it was ended', async () => {
    for (let round = 0; round < 20; round += 1) {
      const caller = await newCaller();
      await warmUp(one, caller);
      // Others of the same keys, which are under way.
      const beside = Promise.all(Array.from({ length: 10 }, () => call(one, caller)));
      await end(one, caller);
      expect(isLetIn(await call(one, caller))).toBe(false);
      await beside;
      expect(isLetIn(await call(one, caller))).toBe(false);
    }
  });

  test('§11 is ended within 200 ms elsewhere', async () => {
    const caller = await newCaller();
    await warmUp(other, caller);
    await end(one, caller);
    await expectToHold(other, caller, performance.now());
  });

  test('§17 never comes back, whatever is called meanwhile', async () => {
    const caller = await newCaller();
    await warmUp(one, caller);
    await warmUp(other, caller);
    await age(client, TTL * 60);
    let isEnded = false;
    const callOn = async (store: Store) => {
      while (!isEnded) await call(store, caller);
    };
    const calls = [one, other, one, other].map(callOn);
    await end(one, caller);
    const endedAt = performance.now();
    await expectToHold(other, caller, endedAt);
    isEnded = true;
    await Promise.all(calls);
    for (const store of [one, other]) expect(isLetIn(await call(store, caller))).toBe(false);
    expect(await client.exists(`mcp:session:${caller.sessionId}`, caller.grantKey)).toBe(1);
  });

  test('§11 is ended within 200 ms elsewhere where REDIS_URL puts a prefix before all keys', async () => {
    [one, other] = [1, 2].map(() => openTracked(`${redis.url}?keyPrefix=postern:`)) as [
      Store,
      Store,
    ];
    const caller = await newCaller();
    await warmUp(other, caller);
    await end(one, caller);
    await expectToHold(other, caller, performance.now());
  });

  describe('over a connection that is half open', () => {
    const proxy: RedisProxy = useFresh(() => startRedisProxy(redis.port));
    let store: Store;

    beforeEach(() => {
      store = openTracked(proxy.url);
    });

    test.each([
      {
        how: 'nothing of what Redis tells arrives',
        fault: () => proxy.silence('listener'),
      },
      {
        how: 'nothing that Redis answers to reads arrives',
        fault: () => proxy.silence('reader'),
      },
      {
        how: 'Redis has closed the connection to which it tells',
        fault: () => proxy.endAtRedis('listener'),
      },
      {
        how: 'Redis has closed the connection whose reads it remembers',
        fault: () => proxy.endAtRedis('reader'),
      },
    ])('§11 is ended within 200 ms where $how', async ({ fault }) => {
      const caller = await newCaller();
      await warmUp(store, caller);
      fault();
      await end(one, caller);
      await expectToHold(store, caller, performance.now());
      // What is silent is given up, and others take its place.
      const next = await newCaller();
      await warmUp(store, next);
    });
  });
});

describe('Redis that fails', () => {
  test('§8.5 a frozen Redis: what was known holds for 200 ms at most, and is known again', async () => {
    const caller = await newCaller();
    await warmUp(one, caller);
    redis.freeze();
    await expectToHold(one, caller, performance.now());
    const { session, grant } = await tryCall(one, caller);
    expect(session).toHaveProperty('failure');
    expect(grant).toHaveProperty('failure');
    redis.thaw();
    await expect.poll(async () => isLetIn(await tryCall(one, caller))).toBe(true);
    await warmUp(one, caller);
  });

  test('§8.5 FLUSHALL: nothing is found any more', async () => {
    const caller = await newCaller();
    await warmUp(one, caller);
    await client.flushall();
    await expectToHold(one, caller, performance.now());
    await warmUp(one, await newCaller());
  });

  test('§8.5 a Redis that is started again, empty: nothing of before is found', async () => {
    const caller = await newCaller();
    await warmUp(one, caller);
    await redis.kill();
    const killedAt = performance.now();
    await redis.restart();
    await expect
      .poll(() =>
        one.ping().then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    await expectToHold(one, caller, killedAt);
    await warmUp(one, await newCaller());
  });

  test('§8.5 a primary that takes no writes any more is not believed, and left', async () => {
    const caller = await newCaller();
    await warmUp(one, caller);
    const countConnections = async () =>
      Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1]);
    const before = await countConnections();
    await client.call('REPLICAOF', '127.0.0.1', '1');
    const changedAt = performance.now();
    let asked = 0;
    for (let startedAt = changedAt; startedAt - changedAt < 2 * HOLDS_WITHIN_MS; ) {
      startedAt = performance.now();
      const scripts = await countQuestions();
      const isIn = isLetIn(await tryCall(one, caller));
      if (startedAt - changedAt < HOLDS_WITHIN_MS) continue;
      asked += 1;
      // It may say what it still knows, but by itself this process says nothing.
      if (isIn) expect(await countQuestions()).toBeGreaterThan(scripts);
    }
    expect(asked).toBeGreaterThan(0);
    // Three connections that were made anew.
    expect(await countConnections()).toBeGreaterThanOrEqual(before + 3);
    await client.call('REPLICAOF', 'NO', 'ONE');
    await expect.poll(async () => isLetIn(await tryCall(one, caller))).toBe(true);
    await warmUp(one, caller);
  });

  test('§8.5 a server that takes no writes is not left again and again while nobody calls', async () => {
    const caller = await newCaller();
    await warmUp(one, caller);
    await client.call('REPLICAOF', '127.0.0.1', '1');
    const countConnections = async () =>
      Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1]);
    let last = -1;
    const isQuiet = async () => {
      const before = last;
      last = await countConnections();
      return last === before;
    };
    await expect.poll(isQuiet, { interval: 700, timeout: 6000 }).toBe(true);
  });

  test('§11 nothing is remembered where all is answered, but no change is told of', async () => {
    const proxy = closeAfterTest(await startRedisProxy(redis.port, { tellsNothing: true }));
    const lines: { log: readonly LogLine[] } = { log: [] };
    const store = openTracked(proxy.url, lines);
    const caller = await newCaller();
    const warnings = () => lines.log.filter(({ level }) => level === 'warn');
    await expect
      .poll(async () => {
        expect(isLetIn(await call(store, caller))).toBe(true);
        return warnings().length;
      })
      .toBe(1);
    expect(String(warnings()[0]?.cause)).toContain('did not tell of a change');
    await one.endSession(caller.sessionId, caller.owner);
    expect(isLetIn(await call(store, caller))).toBe(false);
  });

  test('§3.1 a session whose time is over is gone, although Redis has not told so', async () => {
    // Looks for what has expired once a second.
    await client.config('SET', 'hz', '1');
    const caller = await newCaller('ada', 3);
    const createdAt = performance.now();
    const isFound = async () => isLetIn(await callToRead(one, caller));
    let goneCalls = 0;
    let scripts = await countQuestions();
    let silentCalls = 0;
    while (goneCalls < 20) {
      const startedAt = performance.now();
      const isIn = await isFound();
      const asked = await countQuestions();
      if (asked === scripts) silentCalls += 1;
      scripts = asked;
      // Redis reads its clock before a script, and on a busy machine may stand still between the two.
      if (startedAt - createdAt >= 3100) {
        expect(isIn).toBe(false);
        goneCalls += 1;
      }
    }
    expect(silentCalls).toBeGreaterThan(20);
  });
});

describe('a user of Redis who may not track', () => {
  test.each([
    { what: 'the command', rule: '-client|tracking', allow: '+client|tracking' },
    { what: 'the channel', rule: 'resetchannels', allow: '&*' },
  ])(
    '§8.5 without $what: one warning, calls go on, and it works once allowed',
    async ({ rule, allow }) => {
      await client.call('ACL', [
        'SETUSER',
        'postern',
        'on',
        '>password',
        '~*',
        '&*',
        '+@all',
        rule,
      ]);
      const lines: { log: readonly LogLine[] } = { log: [] };
      const store = openTracked(redis.url.replace('//', '//postern:password@'), lines);
      const caller = await newCaller();
      const warnings = () => lines.log.filter(({ level }) => level === 'warn');
      await expect
        .poll(async () => {
          expect(isLetIn(await call(store, caller))).toBe(true);
          return warnings().length;
        })
        .toBe(1);
      expect(warnings()[0]?.msg).toContain('STORE_READS=tracked');
      expect(String(warnings()[0]?.cause)).toContain('NOPERM');
      expect(await questionsOf(store, caller)).toBeGreaterThan(0);
      await client.call('ACL', ['SETUSER', 'postern', allow]);
      await warmUp(store, caller);
      expect(warnings()).toHaveLength(1);
    },
  );
});
