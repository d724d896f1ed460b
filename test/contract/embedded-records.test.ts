// §17: a damaged record, and a store that closes under work, are no absence.
import { join } from 'node:path';
import { open as openLmdb, type RootDatabase } from 'lmdb';
import { beforeEach, describe, expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/store/embedded/open.ts';
import { type SessionRecord, type Store, StoreUnavailable } from '../../src/store/store.ts';
import { type ManualClock, manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import { useFresh } from '../support/lifetimes.ts';
import { readSession, slideSession } from '../support/stores/session-steps.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const PREFIX = 'mcp:session:';
const TTL = 60;
const { log } = collectLog();

let dataDir: string;
let clock: ManualClock;

const folder = useFresh(createTemporaryFolder);
beforeEach(() => {
  dataDir = folder.path;
  clock = manualClock();
});

const open = (): Promise<Store> =>
  openEmbeddedStore({ dataDir, sessionKeyPrefix: PREFIX, clock, log });

const recordOf = (sessionId: string): SessionRecord => ({
  sessionId,
  createdAt: clock.now(),
  lastAccessedAt: clock.now(),
  userId: 'ada',
  protocolVersion: '2025-11-25',
  clientCapabilities: '{}',
});

/** Writes into the closed store as nobody should. */
async function tamper(write: (root: RootDatabase) => Promise<unknown>): Promise<void> {
  const root = openLmdb({ path: join(dataDir, 'store.mdb'), noSubdir: true });
  await write(root);
  await root.close();
}

const putBytes = (root: RootDatabase, name: string, key: string, bytes: Buffer) =>
  root.openDB({ name, encoding: 'binary' }).put(key, bytes);
const putValue = (root: RootDatabase, name: string, key: string, value: unknown) =>
  root.openDB({ name }).put(key, value);

describe('a damaged record', () => {
  test.each<{ what: string; damage: (root: RootDatabase, name: string, key: string) => unknown }>([
    // 0xc1 is no type of MessagePack.
    { what: 'cannot be read', damage: (...at) => putBytes(...at, Buffer.from([0xc1, 0xff])) },
    { what: 'has lost its time', damage: (...at) => putValue(...at, { value: 'x' }) },
    { what: 'is a text', damage: (...at) => putValue(...at, 'x') },
    { what: 'is null', damage: (...at) => putValue(...at, null) },
  ])('§8.5 that $what is an error and no absence, until it is swept', async ({ damage }) => {
    const before = await open();
    await before.createSession(recordOf('broken'), TTL);
    await before.createSession(recordOf('whole'), TTL);
    await before.set('dcr:client:broken', 'x', TTL);
    await before.set('dcr:client:whole', 'x', TTL);
    await before.close();
    await tamper(async (root) => {
      await damage(root, 'values', 'dcr:client:broken');
      await damage(root, 'sessions', `${PREFIX}broken`);
    });

    const store = await open();
    await expect(store.get('dcr:client:broken')).rejects.toThrow();
    await expect(readSession(store, 'broken')).rejects.toThrow();
    await expect(slideSession(store, 'broken', 'ada', TTL)).rejects.toThrow();
    await expect(store.endSession('broken', { sub: 'ada' })).rejects.toThrow();
    await expect(store.claimExpiredSession('broken')).rejects.toThrow();
    // The others are not touched by it.
    expect((await readSession(store, 'whole'))?.sessionId).toBe('whole');
    expect(await slideSession(store, 'whole', 'ada', TTL)).toBe(true);
    expect(await store.get('dcr:client:whole')).toBe('x');

    clock.advance(TTL * 1000 + 1);
    expect(await store.sweepSessions()).toBe(2);
    expect(await store.countSessions()).toBe(0);
    expect(await readSession(store, 'broken')).toBeUndefined();
    expect(await store.get('dcr:client:broken')).toBeUndefined();
    await store.close();
  });
});

describe('a store that closes under work', () => {
  /** Everything that a request or a timer may ask for. */
  const asked = (store: Store): Promise<unknown>[] => [
    store.sweepSessions(),
    store.countSessions(),
    store.get('dcr:client:x'),
    store.set('dcr:client:x', 'x', TTL),
    readSession(store, 'session-1'),
    store.createSession(recordOf('new'), TTL),
    slideSession(store, 'session-1', 'ada', TTL),
    store.endSession('session-2', { sub: 'ada' }),
    store.claimExpiredSession('session-3'),
    store.publish('channel', 'x'),
  ];

  const reasons = async (settled: Promise<readonly PromiseSettledResult<unknown>[]>) =>
    (await settled).flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));

  test('§4.3 what is asked while it closes is refused, and ends the process in no way', async () => {
    for (let round = 0; round < 4; round += 1) {
      const store = await open();
      const many = Array.from({ length: 600 }, (_, at) => recordOf(`session-${at}`));
      await Promise.all(many.map((record) => store.createSession(record, TTL)));
      clock.advance(TTL * 2000);
      const begun = Promise.allSettled(asked(store));
      const closing = store.close();
      const late = Promise.allSettled(asked(store));
      expect(await reasons(late)).toEqual(Array(10).fill(expect.any(StoreUnavailable)));
      // Asked before, they may be done or not; an answer they have.
      await begun;
      await closing;
      expect(await reasons(Promise.allSettled(asked(store)))).toHaveLength(10);
    }
  });

  test('§4.3 a close waits for what was begun, and it is there afterwards', async () => {
    const store = await open();
    const ids = Array.from({ length: 200 }, (_, at) => `session-${at}`);
    const begun = Promise.all(ids.map((id) => store.createSession(recordOf(id), TTL)));
    await store.close();
    await begun;
    const next = await open();
    for (const id of ids) expect((await readSession(next, id))?.sessionId).toBe(id);
    await next.close();
  });
});
