// §2.1: DATA_DIR over the lives of processes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, test } from 'vitest';
import { openDataFolder } from '../../src/store/embedded/folder.ts';
import { DataDirError } from '../../src/store/embedded/lock.ts';
import { openEmbeddedStore } from '../../src/store/embedded/open.ts';
import type { SessionRecord, Store } from '../../src/store/store.ts';
import { type ManualClock, manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import { closeAfterTest, useFresh } from '../support/lifetimes.ts';
import { readSession, slideSession } from '../support/stores/session-steps.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { contentOf } from './store-content.ts';

const PREFIX = 'mcp:session:';
const TTL = 60;
const { log } = collectLog();

const parent = useFresh(createTemporaryFolder);
let dataDir: string;
let clock: ManualClock;
beforeEach(() => {
  dataDir = join(parent.path, 'data');
  clock = manualClock();
});

async function open(folder = dataDir): Promise<Store> {
  const store = await openEmbeddedStore({ dataDir: folder, sessionKeyPrefix: PREFIX, clock, log });
  closeAfterTest({ close: () => store.close().catch(() => {}) });
  return store;
}

const recordOf = (sessionId: string): SessionRecord => ({
  sessionId,
  createdAt: clock.now(),
  lastAccessedAt: clock.now(),
  userId: 'ada',
  protocolVersion: '2025-11-25',
  clientCapabilities: '{}',
});

/** What a killed process leaves: the socket of its lock, and nobody behind it. A close removes the name that it was bound to. */
async function leaveDeadLock(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const bound = join(folder, 'bound.sock');
  const server = createServer().listen(bound);
  await once(server, 'listening');
  await rename(bound, join(folder, 'lock.sock'));
  server.close();
  await once(server, 'close');
  expect((await stat(join(folder, 'lock.sock'))).isSocket()).toBe(true);
}

test('§3.1 folder: after a restart live sessions are there, expired ones are gone and taken once', async () => {
  const first = await open();
  const early = Array.from({ length: 30 }, (_, at) => `early-${at}`);
  for (const id of early) await first.createSession(recordOf(id), TTL);
  await first.set('dcr:client:early', 'early', TTL);
  clock.advance(30_000);
  await first.createSession(recordOf('late'), TTL);
  await slideSession(first, 'early-0', 'ada', TTL);
  await first.createSession(recordOf('ended'), TTL);
  await first.endSession('ended', { sub: 'ada' });
  await first.set('dcr:client:late', 'late', TTL);
  await first.close();
  // Nobody ran while they expired.
  clock.advance(31_000);

  const second = await open();
  expect((await readSession(second, 'late'))?.sessionId).toBe('late');
  expect((await readSession(second, 'early-0'))?.lastAccessedAt).toBe(clock.now() - 31_000);
  for (const id of ['early-1', 'early-29', 'ended']) {
    expect(await readSession(second, id)).toBeUndefined();
  }
  expect(await second.get('dcr:client:early')).toBeUndefined();
  expect(await second.get('dcr:client:late')).toBe('late');
  expect(await second.claimExpiredSession('early-1')).toBe(true);
  expect(await second.claimExpiredSession('ended')).toBe(false);
  expect(await second.sweepSessions()).toBe(28);
  expect(await second.sweepSessions()).toBe(0);
  expect(await second.countSessions()).toBe(2);
  await second.close();

  const third = await open();
  expect(await third.sweepSessions()).toBe(0);
  expect(await third.countSessions()).toBe(2);
  expect(await slideSession(third, 'late', 'ada', TTL)).toBe(true);
});

test('§3.1 folder: it is refused while another has it, and free after the close', async () => {
  const first = await open();
  await first.set('key', 'value', TTL);
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await expect(open()).rejects.toThrow(/^DATA_DIR: .* in use by another process/);
    await expect(open()).rejects.toThrow(DataDirError);
  }
  expect(await first.get('key')).toBe('value');
  await first.close();
  expect(await (await open()).get('key')).toBe('value');
});

test('§3.1 folder: the lock of a process that was killed is taken over', async () => {
  const before = await open();
  await before.set('key', 'value', TTL);
  await before.close();
  await leaveDeadLock(dataDir);
  const store = await open();
  expect(await store.get('key')).toBe('value');
  await expect(open()).rejects.toThrow(/in use by another process/);
});

test('§3.1 folder: of many that start over one dead lock exactly one has the folder', async () => {
  for (const count of [2, 5, 9]) {
    const folder = join(parent.path, `of-${count}`);
    await leaveDeadLock(folder);
    const starts = await Promise.allSettled(Array.from({ length: count }, () => open(folder)));
    const lost = starts.flatMap((start) => (start.status === 'rejected' ? [start.reason] : []));
    expect(starts.length - lost.length).toBe(1);
    for (const reason of lost) {
      expect(reason).toBeInstanceOf(DataDirError);
      expect(reason.message).toContain('in use by another process');
    }
    await expect(open(folder)).rejects.toThrow(/in use by another process/);
  }
});

test('§5 folder: it is made where it is missing, and for its owner only', async () => {
  dataDir = join(parent.path, 'a', 'b', 'c');
  await open();
  expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
});

test('§5 folder: its files are their owner’s only, whatever the folder allows', async () => {
  await mkdir(dataDir, { mode: 0o755 });
  await open();
  for (const file of ['store.mdb', 'store.mdb-lock']) {
    expect((await stat(join(dataDir, file))).mode & 0o777).toBe(0o600);
  }
});

test('§5 folder: a store.mdb of another program, or the stump of one, is refused by name', async () => {
  await (await open()).close();
  const whole = await readFile(join(dataDir, 'store.mdb'));
  for (const content of [Buffer.alloc(20_000, 'x'), whole.subarray(0, 4096), Buffer.from('x')]) {
    await writeFile(join(dataDir, 'store.mdb'), content);
    await expect(open()).rejects.toThrow(/^DATA_DIR: .*store\.mdb is damaged/);
  }
  await writeFile(join(dataDir, 'store.mdb'), '');
  await (await open()).set('key', 'value', TTL);
});

test('§5 folder: a path that is too long for a lock is refused, one that just fits is not', async () => {
  // The lock may be called by the path from the root or from here: the shorter counts.
  const shortest = Math.min(parent.path.length, relative('', parent.path).length);
  const ofLength = (bytes: number) =>
    join(parent.path, 'x'.repeat(bytes - shortest - '/'.length - '/lock.sock'.length));
  await expect(open(ofLength(104))).rejects.toThrow(/^DATA_DIR: .* too long .*103 bytes/);
  await (await open(ofLength(103))).set('key', 'value', TTL);
  // By bytes, not by characters.
  await expect(open(join(parent.path, 'ü'.repeat(50)))).rejects.toThrow(/too long/);
});

test('§5 folder: a DATA_DIR that is a file, or below one, is refused by its name', async () => {
  const file = join(parent.path, 'file');
  await writeFile(file, 'x');
  for (const path of [file, join(file, 'data')]) {
    await expect(open(path)).rejects.toThrow(DataDirError);
    await expect(open(path)).rejects.toThrow(`DATA_DIR: the folder ${path} cannot be used: `);
  }
});

/** Opens each in a process of its own: the lines that it printed, and how it ended. */
async function openElsewhere(folders: readonly string[]) {
  const script = fileURLToPath(new URL('./open-stores.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', script, ...folders], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  const [code, signal] = await once(child, 'close');
  const lines = out.trimEnd().split('\n');
  return { code, signal, seen: lines.map((line) => JSON.parse(line)) };
}

/** A folder with the first `bytes` of a store.mdb. */
async function cutTo(bytes: number, whole: Buffer): Promise<string> {
  const folder = join(parent.path, `cut-${bytes}`);
  await mkdir(folder);
  await writeFile(join(folder, 'store.mdb'), whole.subarray(0, bytes));
  return folder;
}

const PAGE = 4096;

test('§3.1 folder: a store.mdb that is cut at any page is refused by name, or as good as whole', async () => {
  const { root, write, close } = await openDataFolder(dataDir);
  const short = root.openDB<string>({ name: 'short', encoding: 'string' });
  const long = root.openDB<string>({ name: 'long', encoding: 'string' });
  for (let round = 0; round < 3; round += 1) {
    await write(() => {
      for (let at = 0; at < 150; at += 1) short.putSync(`key-${at}`, `${round}`.repeat(100));
      for (let at = 0; at < 4; at += 1) long.putSync(`key-${at}`, `${round}`.repeat(9000));
    });
    await write(() => {
      for (let at = round; at < 150; at += 4) short.removeSync(`key-${at}`);
    });
  }
  await close();
  const content = await contentOf(dataDir);
  const whole = await readFile(join(dataDir, 'store.mdb'));
  const pages = whole.length / PAGE;
  expect(pages).toBeGreaterThan(20);

  const cuts = Array.from({ length: pages }, (_, at) => (at + 1) * PAGE);
  const folders = await Promise.all(
    [...cuts, ...cuts.map((bytes) => bytes - 100)].map((bytes) => cutTo(bytes, whole)),
  );
  const { code, signal, seen } = await openElsewhere(folders);
  expect({ code, signal, count: seen.length }).toEqual({ code: 0, signal: null, count: 2 * pages });
  for (const { dataDir: folder, refused, content: found } of seen) {
    if (refused === undefined) expect(found, folder).toEqual(content);
    else expect(refused).toMatch(/^DATA_DIR: the folder .*store\.mdb is damaged.*move it away/);
  }
  const refusedOnes = seen.filter(({ refused }) => refused !== undefined);
  expect(refusedOnes.length).toBeGreaterThan(pages / 2);
  expect(seen.find(({ dataDir: folder }) => folder.endsWith(`cut-${whole.length}`))).toHaveProperty(
    'content',
  );
});

test('§3.1 folder: pages that were taken and given back at once are not missed', async () => {
  const first = await openDataFolder(dataDir);
  const database = first.root.openDB<string>({ name: 'all', encoding: 'string' });
  for (const count of [10, 100, 500]) {
    await first.write(() => {
      for (let at = 0; at < count; at += 1) database.putSync(`key-${at}`, 'x'.repeat(9000));
      for (let at = 0; at < count; at += 1) database.removeSync(`key-${at}`);
    });
    await first.write(() => database.putSync('kept', 'value'));
  }
  await first.close();
  const page = await readFile(join(dataDir, 'store.mdb'));
  // The last page that any commit took, by the newer of both meta pages.
  const last = Math.max(...[0, PAGE].map((at) => Number(page.readBigUInt64LE(at + 144))));
  expect(page.length).toBeLessThan((last + 1) * PAGE);
  expect(await contentOf(dataDir)).toEqual(['all kept value']);
});
