// §17: Redis Sentinel. Real servers fail over.
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import type { StoreReads } from '../../src/config/groups/store.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import type { Store } from '../../src/store/store.ts';
import { collectLog, type LogLine } from '../support/gateway/log.ts';
import { closeAfterTest, useFresh, useShared } from '../support/lifetimes.ts';
import {
  PRIMARY_NAME,
  type RedisWithSentinels,
  startRedisSentinel,
} from '../support/stores/redis-sentinel.ts';
import { readSession } from '../support/stores/session-steps.ts';
import type { Harness } from './harness.ts';
import { age } from './redis-age.ts';
import { describeStore } from './store.contract.ts';

const CHANNEL = 'mcp:session:bus';
const LONG = { timeout: 20_000 };

interface OpenedStore {
  readonly store: Store;
  readonly lines: readonly LogLine[];
}

function openShared(
  url: string,
  backoff?: () => number,
  reads: StoreReads = 'direct',
): OpenedStore {
  const { log, lines } = collectLog();
  const store = openRedisStore({
    url,
    sessionKeyPrefix: 'mcp:session:',
    clock: systemClock,
    log,
    reads,
    ...(backoff && { backoff }),
  });
  return { store, lines };
}

function open(url: string, backoff?: () => number, reads?: StoreReads): OpenedStore {
  const opened = openShared(url, backoff, reads);
  closeAfterTest(opened.store);
  return opened;
}

const isUp = (store: Store): Promise<boolean> =>
  store.ping().then(
    () => true,
    () => false,
  );

const becomesUp = (store: Store) => expect.poll(() => isUp(store), LONG).toBe(true);

const linesOf = (lines: readonly LogLine[], wanted: string) =>
  lines.filter(({ level }) => level === wanted);

const session = {
  sessionId: '6f1f4a4e-5b7f-4f0e-9d6c-0a1b2c3d4e5f',
  createdAt: 1,
  lastAccessedAt: 2,
  userId: 'ada',
  protocolVersion: '2025-11-25',
  clientInfo: '{}',
  clientCapabilities: '{}',
  logLevel: 'info',
} as const;

/** Returns when the replica has everything that was written. */
const untilReplicated = async ({ servers: [primary] }: RedisWithSentinels) => {
  const client = primary.client();
  await client.set('last-write', '1');
  await expect.poll(() => client.call('WAIT', 1, 1000), LONG).toBe(1);
};

const whole = useShared(() => startRedisSentinel());

async function openHarness(): Promise<Harness> {
  const client = whole.servers[0].client();
  await client.flushall();
  const stores = [openShared(whole.url).store, openShared(whole.url).store] as const;
  return {
    store: stores[0],
    other: stores[1],
    advance: (ms) => age(client, ms),
    async close() {
      for (const store of stores) await store.close();
    },
  };
}

describeStore('Redis with Sentinel', openHarness, { isShared: true });

describe('fail-over', () => {
  const redis = useFresh(() => startRedisSentinel());

  test.each([
    { how: 'killed', fail: () => redis.servers[0].kill() },
    { how: 'frozen', fail: async () => redis.servers[0].freeze() },
    { how: 'demoted by hand', fail: () => redis.sentinels[0]?.failOver() },
  ])(
    '§17 Sentinel: a primary that is $how: sessions live on at the new one, although the back-off is at 30 s',
    async ({ fail }) => {
      const { store, lines } = open(redis.url, () => 30_000);
      await becomesUp(store);
      await store.createSession(session, 3600);
      await untilReplicated(redis);
      await fail();
      // Requests go on meanwhile, as they would: nobody waits for 30 s.
      await expect
        .poll(() => isUp(store).then(() => linesOf(lines, 'info')), LONG)
        .toContainEqual(expect.objectContaining({ primary: `127.0.0.1:${redis.servers[1].port}` }));
      await becomesUp(store);
      expect(await readSession(store, session.sessionId)).toMatchObject({ userId: 'ada' });
      await store.set('written', 'after', 60);
      expect(await redis.servers[1].client().get('written')).toBe('after');
      await expect.poll(() => linesOf(lines, 'info').at(-1)?.msg, LONG).toContain('again');
    },
  );

  test.each([
    { how: 'killed', fail: () => redis.servers[0].kill() },
    { how: 'demoted by hand', fail: () => redis.sentinels[0]?.failOver() },
  ])(
    '§17 Sentinel: a primary that is $how: what a process remembers is of the new one',
    async ({ fail }) => {
      const { store } = open(redis.url, undefined, 'tracked');
      await becomesUp(store);
      await store.createSession(session, 3600);
      const access = { sessionId: session.sessionId, owner: { sub: 'ada' }, slideSeconds: 3600 };
      const read = async () => {
        const { session: found } = await store.admitRequest([], access);
        return 'record' in found ? found.record : undefined;
      };
      /** How many scripts this server has run for a call. */
      const countScripts = async (client: Redis) => {
        const before = await client.info('commandstats');
        expect(await read().catch(() => undefined)).toBeDefined();
        const after = await client.info('commandstats');
        const count = (stats: string) => /cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? '0';
        return Number(count(after)) - Number(count(before));
      };
      const isRemembered = (client: Redis) =>
        expect.poll(() => countScripts(client).catch(() => 1), { ...LONG, interval: 5 }).toBe(0);
      await isRemembered(redis.servers[0].client());
      await untilReplicated(redis);
      await fail();
      const next = redis.servers[1].client();
      // Requests go on meanwhile, as they would, until the connection whose reads are tracked is there.
      await expect
        .poll(async () => {
          await read().catch(() => undefined);
          return next.client('LIST');
        }, LONG)
        .toMatch(/ flags=[a-zA-Z]*t/);
      await isRemembered(next);
      await next.del(`mcp:session:${session.sessionId}`);
      const deletedAt = performance.now();
      let reads = 0;
      for (let startedAt = deletedAt; startedAt - deletedAt < 400 || reads === 0; ) {
        startedAt = performance.now();
        // On a busy machine one may go without an answer: that says nothing of what is remembered.
        const answer = await read().then(
          (found) => ({ found }),
          () => undefined,
        );
        if (answer === undefined || startedAt - deletedAt < 200) continue;
        reads += 1;
        expect(answer.found).toBeUndefined();
      }
    },
  );

  test('§17 Sentinel: a server that the sentinels gave up is left, although it still answers, by commands and messages', async () => {
    const { store, lines } = open(redis.url);
    const heard: string[] = [];
    store.subscribe(CHANNEL, (message) => heard.push(message));
    await becomesUp(store);
    const [primary, replica] = redis.servers;
    // Nobody who knows no password is let in any more, and of those who are in, the gateway may stay.
    const admin = primary.client();
    await expect.poll(() => admin.pubsub('NUMSUB', CHANNEL), LONG).toEqual([CHANNEL, 1]);
    await admin.call('CONFIG', 'SET', 'requirepass', 'nobody-knows');
    for (const id of await findSentinelClients(admin)) await admin.call('CLIENT', 'KILL', 'ID', id);
    await admin.call('CLIENT', 'KILL', 'TYPE', 'replica');
    const client = replica.client();
    const isSet = () => store.set('written', 'after', 60).then(() => client.get('written'));
    await expect.poll(() => isSet().catch(() => undefined), LONG).toBe('after');
    expect(linesOf(lines, 'info')).toContainEqual(
      expect.objectContaining({ primary: `127.0.0.1:${replica.port}` }),
    );
    const publish = () => store.publish(CHANNEL, 'after').then(() => heard.at(-1));
    await expect.poll(() => publish().catch(() => undefined), LONG).toBe('after');
  });
});

async function findSentinelClients(client: Redis): Promise<readonly string[]> {
  const list = String(await client.call('CLIENT', 'LIST'));
  return [...list.matchAll(/^id=(\d+) .* name=sentinel-/gm)].map(([, id = '']) => id);
}

describe('sentinels that fail', () => {
  const redis = useFresh(() =>
    startRedisSentinel({ password: 'of:redis/', sentinelPassword: 'of@+' }),
  );

  test.each([
    { how: 'down', fail: () => redis.sentinels[0]?.kill() },
    { how: 'frozen', fail: async () => redis.sentinels[0]?.freeze() },
  ])('§17 Sentinel: one of three that is $how is not missed', async ({ fail }) => {
    await fail();
    const { store, lines } = open(redis.url);
    await becomesUp(store);
    await redis.servers[0].kill();
    await expect
      .poll(
        () =>
          store
            .set('key', 'value', 60)
            .then(() => true)
            .catch(() => false),
        LONG,
      )
      .toBe(true);
    expect(linesOf(lines, 'warn')).toEqual([]);
  });

  test('§17 Sentinel: all down at the start, one line says why, and it works once they are there', async () => {
    for (const sentinel of redis.sentinels) await sentinel.kill();
    const { store, lines } = open(redis.url);
    await expect.poll(() => linesOf(lines, 'error').length, LONG).toBe(1);
    expect(String(linesOf(lines, 'error')[0]?.cause)).toContain('ECONNREFUSED');
    expect(await isUp(store)).toBe(false);
    await redis.sentinels[1]?.restart();
    await becomesUp(store);
    expect(linesOf(lines, 'error')).toHaveLength(1);
  });

  test('§17 Sentinel: all down later, calls go on, and one warning says that nobody would find a new primary', async () => {
    const { store, lines } = open(redis.url);
    await becomesUp(store);
    for (const sentinel of redis.sentinels) await sentinel.kill();
    await expect.poll(() => linesOf(lines, 'warn').length, LONG).toBe(1);
    expect(linesOf(lines, 'warn')[0]?.msg).toContain('sentinel');
    expect(await isUp(store)).toBe(true);
    await redis.sentinels[2]?.restart();
    await expect.poll(() => linesOf(lines, 'info').length, LONG).toBe(1);
    expect(linesOf(lines, 'error')).toEqual([]);
  });
});

describe('a REDIS_URL that does not fit', () => {
  const redis = useShared(() =>
    startRedisSentinel({ password: 'of:redis/', sentinelPassword: 'of@+' }),
  );

  test.each([
    {
      what: 'a wrong name of the primary',
      change: (url: string) => url.replace(PRIMARY_NAME, 'other-name'),
      cause: /other-name.*No such master/,
    },
    {
      what: 'a wrong password of the sentinels',
      change: (url: string) => url.replace(/sentinelPassword=.*/, 'sentinelPassword=hunter2'),
      cause: /WRONGPASS/,
    },
    {
      what: 'no password of the sentinels',
      change: (url: string) => url.replace(/\?.*/, ''),
      cause: /NOAUTH/,
    },
    {
      what: 'a wrong password of Redis',
      change: (url: string) => url.replace(/:[^/]*@/, ':hunter2@'),
      cause: /WRONGPASS/,
    },
  ])('§17 Sentinel: $what is one line, without the password', async ({ change, cause }) => {
    const { store, lines } = open(change(redis.url));
    await expect.poll(() => linesOf(lines, 'error').length, LONG).toBe(1);
    expect(linesOf(lines, 'error')[0]?.msg).toContain('REDIS_URL');
    expect(String(linesOf(lines, 'error')[0]?.cause)).toMatch(cause);
    expect(await isUp(store)).toBe(false);
    expect(JSON.stringify(lines)).not.toMatch(/hunter2|of:redis|of@/);
  });
});
