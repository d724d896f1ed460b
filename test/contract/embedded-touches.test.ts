// §3.1: touches wait in memory for a second; everything else is on disk before it is answered.
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/store/embedded/open.ts';
import type { SessionRecord, Store } from '../../src/store/store.ts';
import { below, randomOf } from '../support/fuzz/seeded-random.ts';
import { type ManualClock, manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import { closeAfterTest, useFresh } from '../support/lifetimes.ts';
import { readSession, slideSession } from '../support/stores/session-steps.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { newSession } from './harness.ts';
import { contentOf } from './store-content.ts';

const TTL = 60;
const { log } = collectLog();

const parent = useFresh(createTemporaryFolder);
let clock: ManualClock;
let store: Store;
beforeEach(async () => {
  clock = manualClock();
  folder = 'data';
  store = await open(folder);
});

async function open(name: string): Promise<Store> {
  const dataDir = join(parent.path, name);
  return closeAfterTest(
    await openEmbeddedStore({ dataDir, sessionKeyPrefix: 'mcp:session:', clock, log }),
  );
}

let folder: string;
let copies = 0;

/** What a crash at this moment would leave: the name of the folder. */
async function copyWhatIsOnDisk(): Promise<string> {
  copies += 1;
  const name = `copy-${copies}`;
  await mkdir(join(parent.path, name));
  await copyFile(join(parent.path, folder, 'store.mdb'), join(parent.path, name, 'store.mdb'));
  return name;
}

const openWhatIsOnDisk = async () => open(await copyWhatIsOnDisk());

async function create(sessionId: string, userMax = 0): Promise<SessionRecord> {
  const now = clock.now();
  const record = newSession({ sessionId, createdAt: now, lastAccessedAt: now });
  await store.createSession(record, TTL, userMax);
  return record;
}

const touch = (id: string) => slideSession(store, id, 'ada', TTL);
const setLogLevel = (id: string, level: string) =>
  store.setSessionLogLevel(id, { sub: 'ada' }, level);

async function passSecond(): Promise<void> {
  clock.advance(1000);
  await finishCommits();
}

/** Commits keep their order; what is to be done after those before it is done a turn later. */
async function finishCommits(): Promise<void> {
  await store.set('key', 'value', TTL);
  await nextTurn();
}

test('§3.1 a touch is seen at once, and is on disk a second later', async () => {
  const session = await create('one');
  clock.advance(30_000);
  expect(await touch('one')).toBe(true);
  const touched = { ...session, lastAccessedAt: clock.now() };
  expect(await readSession(store, 'one')).toEqual(touched);
  expect(await readSession(await openWhatIsOnDisk(), 'one')).toEqual(session);
  await passSecond();
  const onDisk = await openWhatIsOnDisk();
  expect(await readSession(onDisk, 'one')).toEqual(touched);
  clock.advance(58_000);
  // With its new time to live, too.
  expect(await readSession(onDisk, 'one')).toEqual(touched);
  expect(await readSession(store, 'one')).toEqual(touched);
});

test('§3.1 a touch while an earlier one is committed is on disk a second after that', async () => {
  await create('one');
  await touch('one');
  clock.advance(1000);
  await touch('one');
  const touchedAt = clock.now();
  await finishCommits();
  await passSecond();
  const onDisk = await openWhatIsOnDisk();
  expect(await readSession(onDisk, 'one')).toMatchObject({ lastAccessedAt: touchedAt });
});

test('§3.1 touches of more sessions than a commit writes at once are on disk a second later', async () => {
  const random = randomOf(3, 1);
  const ids = Array.from({ length: 600 }, (_, at) => `many-${at}`);
  const touchedAt = new Map(ids.map((id) => [id, clock.now()]));
  await Promise.all(ids.map((id) => create(id)));
  for (let second = 0; second < 18; second += 1) {
    clock.advance(below(random, 900));
    // For the last seconds nobody calls.
    const used = second < 14 ? ids.filter(() => below(random, 3) > 0) : [];
    for (const id of used) touchedAt.set(id, clock.now());
    await Promise.all(used.map((id) => touch(id)));
    await passSecond();
    await finishCommits();
    const copy = await copyWhatIsOnDisk();
    const onDisk = await open(copy);
    const records = await Promise.all(ids.map((id) => readSession(onDisk, id)));
    expect(records.map((record) => record?.lastAccessedAt)).toEqual([...touchedAt.values()]);
    // Now and then it goes on from there, as after a crash.
    if (second % 4 === 0) {
      folder = copy;
      store = onDisk;
    } else {
      await onDisk.close();
    }
    expect(await countLogged()).toBeLessThan(8);
  }
  expect(await countLogged()).toBe(0);
});

/** Seconds of which the touches are on disk, but not yet in their places. */
async function countLogged(): Promise<number> {
  const content = await contentOf(join(parent.path, await copyWhatIsOnDisk()));
  return content.filter((entry) => entry.startsWith('session-touches ')).length;
}

test('§3.1 the touches of many sessions are on disk a second later', async () => {
  const ids = Array.from({ length: 1200 }, (_, at) => `many-${at}`);
  await Promise.all(ids.map((id) => create(id)));
  clock.advance(TTL * 1000 - 1);
  expect(await Promise.all(ids.map((id) => touch(id)))).toEqual(ids.map(() => true));
  await passSecond();
  // They are more than one batch: the others follow.
  await finishCommits();
  await finishCommits();
  expect(await countAlive(await openWhatIsOnDisk(), ids)).toBe(ids.length);
  expect(await countAlive(store, ids)).toBe(ids.length);
});

async function countAlive(from: Store, ids: readonly string[]): Promise<number> {
  const sessions = await Promise.all(ids.map((id) => readSession(from, id)));
  return sessions.filter((session) => session !== undefined).length;
}

test('§3.1 a session whose touch waits is neither swept, nor claimed, nor ended as the oldest', async () => {
  await create('first', 2);
  clock.advance(100);
  await create('second', 2);
  clock.advance(TTL * 1000 - 200);
  expect(await touch('first')).toBe(true);
  // On disk the first has expired, the second has not.
  clock.advance(150);
  expect(await readSession(await openWhatIsOnDisk(), 'first')).toBeUndefined();
  expect(await store.claimExpiredSession('first')).toBe(false);
  expect(await store.sweepSessions()).toBe(0);
  expect(await store.countSessions()).toBe(2);
  const times = { createdAt: 1, lastAccessedAt: 1 };
  const third = newSession({ sessionId: 'third', ...times });
  expect(await store.createSession(third, TTL, 2)).toEqual(['second']);
  expect(await readSession(store, 'first')).toBeDefined();
  expect(await readSession(store, 'second')).toBeUndefined();
});

test('§3.1 a touch that waits does not revive a session that was ended', async () => {
  await create('ended');
  await create('oldest', 1);
  clock.advance(1);
  expect(await touch('ended')).toBe(true);
  expect(await store.endSession('ended', { sub: 'ada' })).toBe(true);
  expect(await touch('ended')).toBe(false);
  expect(await touch('oldest')).toBe(true);
  await create('newest', 1);
  expect(await touch('oldest')).toBe(false);
  await passSecond();
  for (const from of [store, await openWhatIsOnDisk()]) {
    expect(await readSession(from, 'ended')).toBeUndefined();
    expect(await readSession(from, 'oldest')).toBeUndefined();
    expect(await from.countSessions()).toBe(1);
  }
});

test('§3.1 a touch, an end and the commit of touches at once leave no session behind', async () => {
  const ids = Array.from({ length: 100 }, (_, at) => `race-${at}`);
  await Promise.all(ids.map((id) => create(id)));
  await Promise.all(ids.map((id) => touch(id)));
  const acts = ids.flatMap((id) => [touch(id), store.endSession(id, { sub: 'ada' }), touch(id)]);
  clock.advance(1000);
  await Promise.all(acts);
  await passSecond();
  expect(await countAlive(store, ids)).toBe(0);
  expect(await countAlive(await openWhatIsOnDisk(), ids)).toBe(0);
});

test('§3.1 a log level is on disk before the answer, with the touches around it', async () => {
  const session = await create('one');
  clock.advance(10);
  await touch('one');
  clock.advance(10);
  await touch('one');
  expect(await setLogLevel('one', 'warning')).toBe(true);
  const levelled = { ...session, lastAccessedAt: clock.now(), logLevel: 'warning' };
  expect(await readSession(store, 'one')).toEqual(levelled);
  expect(await readSession(await openWhatIsOnDisk(), 'one')).toEqual(levelled);
  clock.advance(10);
  await touch('one');
  await passSecond();
  const touched = { ...levelled, lastAccessedAt: clock.now() - 1000 };
  expect(await readSession(await openWhatIsOnDisk(), 'one')).toEqual(touched);
  // A touch and a log level at once, in either order.
  await Promise.all([touch('one'), setLogLevel('one', 'error'), touch('one')]);
  await passSecond();
  const last = await readSession(await openWhatIsOnDisk(), 'one');
  expect(last).toMatchObject({ logLevel: 'error', lastAccessedAt: clock.now() - 1000 });
});

test('§3.1 sessions, their end and values are on disk before the answer', async () => {
  await create('kept');
  await create('ended');
  await store.endSession('ended', { sub: 'ada' });
  await store.set('dcr:client:svc-1', 'client', TTL);
  await store.getOrSet('once', 'value', TTL);
  await store.getAndDelete('once');
  const onDisk = await openWhatIsOnDisk();
  expect(await readSession(onDisk, 'kept')).toBeDefined();
  expect(await readSession(onDisk, 'ended')).toBeUndefined();
  expect(await onDisk.get('dcr:client:svc-1')).toBe('client');
  expect(await onDisk.get('once')).toBeUndefined();
});

test('§4.3 a close commits the touches that wait', async () => {
  await create('one');
  clock.advance(30_000);
  await touch('one');
  await store.close();
  store = await open('data');
  expect(await readSession(store, 'one')).toMatchObject({ lastAccessedAt: clock.now() });
});

test('§3.1 more sessions than are kept in memory are read and touched alike', async () => {
  const ids = Array.from({ length: 12_000 }, (_, at) => `session-${at}`);
  await Promise.all(ids.map((id) => create(id)));
  clock.advance(1000);
  const refused: string[] = [];
  for (const id of ids) if (!(await touch(id))) refused.push(id);
  expect(refused).toEqual([]);
  expect(await readSession(store, 'session-0')).toMatchObject({ lastAccessedAt: clock.now() });
  const ended = ids.filter((_, at) => at % 5 === 1);
  await Promise.all(ended.map((id) => store.endSession(id, { sub: 'ada' })));
  expect(await touch('session-1')).toBe(false);
  await store.close();
  store = await open('data');
  clock.advance(TTL * 1000 - 1);
  expect(await countAlive(store, ids)).toBe(ids.length - ended.length);
  clock.advance(1);
  expect(await countAlive(store, ids)).toBe(0);
});
