// §4.3: a disk that cannot be written, and a process that is killed.
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, test } from 'vitest';
import { closeAfterTest, useFresh } from '../support/lifetimes.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const SCRIPT = fileURLToPath(new URL('./store-process.ts', import.meta.url));
const HOLDER = fileURLToPath(new URL('./hold-writer.ts', import.meta.url));
const START = 1_800_000_000_000;

const folder = useFresh(createTemporaryFolder);
let child: ChildProcess;

async function startStore(now = START): Promise<void> {
  child = fork(SCRIPT, [folder.path, String(now)], {
    execArgv: ['--import', 'tsx'],
    // lmdb writes there, too.
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  closeAfterTest({ close: killStore });
  expect(await once(child, 'message')).toEqual([{ result: 'open' }, undefined]);
}

async function killStore(): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** One act of `store-process.ts` at a time: its result, or an error with its failure. */
async function act(name: string, arg: string | number = ''): Promise<unknown> {
  child.send({ act: name, arg: String(arg) });
  const [answer] = await once(child, 'message');
  if ('failure' in answer) throw new Error(answer.failure);
  return answer.result;
}

/** From here on no file of the process may be longer: as on a full disk, nothing can be written. */
function limitFiles(limit: string): void {
  execFileSync('prlimit', ['--pid', String(child.pid), `--fsize=${limit}:unlimited`]);
}
/** The two pages that say which commit is the last. */
const fillDisk = () => limitFiles('8192');
const emptyDisk = () => limitFiles('unlimited');

const isReady = () =>
  act('ping').then(
    () => true,
    () => false,
  );

beforeEach(() => startStore());

test('§4.3 touches that cannot be committed wait until they can, and are not ready meanwhile', async () => {
  await act('create', 'one');
  await act('advance', 500);
  expect(await act('touch', 'one')).toBe(true);
  fillDisk();
  expect(await isReady()).toBe(true);
  await act('advance', 1000);
  await expect.poll(isReady).toBe(false);
  await act('advance', 500);
  // Calls in the session go on.
  expect(await act('touch', 'one')).toBe(true);
  await act('advance', 1000);
  await act('advance', 1000);
  expect(await isReady()).toBe(false);
  const line = expect.objectContaining({
    level: 'error',
    msg: expect.stringMatching(/^DATA_DIR cannot be written: .*Free disk space/),
    folder: folder.path,
    cause: expect.stringMatching(/File too large/),
  });
  expect(await act('log')).toEqual([line]);

  emptyDisk();
  await act('advance', 1000);
  await expect.poll(isReady).toBe(true);
  const recovered = expect.objectContaining({
    level: 'info',
    msg: 'DATA_DIR can be written again.',
  });
  expect(await act('log')).toEqual([line, recovered]);
  // Commits keep their order: that of the touches is over.
  await act('set', 'key');
  await killStore();
  await startStore();
  expect(await act('read', 'one')).toMatchObject({ lastAccessedAt: START + 2000 });
});

test('§4.3 what cannot be written is an error, nothing is lost, and it recovers by itself', async () => {
  await act('create', 'one');
  fillDisk();
  for (const [name, arg] of [
    ['create', 'two'],
    ['set', 'key'],
    ['end', 'one'],
  ] as const) {
    await expect(act(name, arg), name).rejects.toThrow(
      /StoreUnavailable: DATA_DIR cannot be written/,
    );
    expect(await isReady()).toBe(false);
  }
  expect(await act('read', 'one')).toMatchObject({ sessionId: 'one' });
  expect(await act('read', 'two')).toBeUndefined();
  emptyDisk();
  // Nobody asks for anything.
  await act('advance', 1000);
  await expect.poll(isReady).toBe(true);
  await act('create', 'two');
  fillDisk();
  await expect(act('setLogLevel', 'one')).rejects.toThrow(/StoreUnavailable/);
  expect(await act('read', 'one')).not.toHaveProperty('logLevel');
  emptyDisk();
  expect(await act('setLogLevel', 'one')).toBe(true);
  expect(await isReady()).toBe(true);
  await killStore();
  await startStore();
  expect(await act('read', 'one')).toMatchObject({ logLevel: 'debug' });
  expect(await act('read', 'two')).toMatchObject({ sessionId: 'two' });
});

test('§4.3 a write that hangs is not ready until it has ended', async () => {
  await act('create', 'one');
  const holder = fork(HOLDER, [join(folder.path, 'store.mdb')], {
    execArgv: ['--import', 'tsx'],
  });
  closeAfterTest({ close: () => void holder.kill('SIGKILL') });
  await once(holder, 'message');
  await act('beginToCreate', 'two');
  await act('advance', 4999);
  expect(await isReady()).toBe(true);
  await act('advance', 1);
  await expect.poll(isReady).toBe(false);
  await act('advance', 5000);
  expect(await act('log')).toEqual([
    expect.objectContaining({ level: 'error', cause: 'a write has taken 5 s so far' }),
  ]);
  expect(await act('touch', 'one')).toBe(true);
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  await expect.poll(isReady).toBe(true);
  expect(await act('read', 'two')).toMatchObject({ sessionId: 'two' });
});

test('§3.1 after a kill all that was answered is there, and a second of sliding is forgotten', async () => {
  await act('create', 'one');
  await act('create', 'ended');
  await act('end', 'ended');
  await act('advance', 10_000);
  await act('touch', 'one');
  await act('advance', 1000);
  // Commits keep their order: that of the touch is over.
  await act('set', 'key');
  await act('advance', 500);
  await act('touch', 'one');
  await killStore();
  await startStore(START + 69_000);
  expect(await act('read', 'one')).toMatchObject({ lastAccessedAt: START + 10_000 });
  expect(await act('read', 'ended')).toBeUndefined();
  await act('advance', 1000);
  expect(await act('read', 'one')).toBeUndefined();
});
