// When a changed configuration file is noticed.
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { computeStamp, watchFile } from '../../../src/cli/setup/watch-file.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const LOOK_MS = 1000;

/** A watched file, and how often a change of it was told. */
async function watchOne(prepare: (folder: string) => Promise<string>) {
  const { path: folder } = closeAfterTest(await createTemporaryFolder());
  const path = await prepare(folder);
  const clock = manualClock();
  const told: string[] = [];
  const watching = watchFile(
    { path, stamp: computeStamp(path) },
    () => told.push(computeStamp(path)),
    clock,
  );
  closeAfterTest({ close: watching.stop });
  return { folder, path, clock, told, ...watching };
}

const plainFile = async (folder: string) => {
  const path = join(folder, 'mcp.json');
  await writeFile(path, '{}');
  return path;
};

test('§18.1 watching: a file that does not change is not told', async () => {
  const { clock, told } = await watchOne(plainFile);
  clock.advance(LOOK_MS * 10);
  expect(told).toEqual([]);
});

test('§18.1 watching: a file that is written is told once', async () => {
  const { path, clock, told } = await watchOne(plainFile);
  clock.advance(LOOK_MS);
  await writeFile(path, '{ }');
  clock.advance(LOOK_MS * 10);
  expect(told).toHaveLength(1);
  await writeFile(path, '{  }');
  clock.advance(LOOK_MS * 10);
  expect(told).toHaveLength(2);
});

test('§18.1 watching: a change before the first look is told', async () => {
  const { path, clock, told } = await watchOne(plainFile);
  await writeFile(path, '{ }');
  clock.advance(LOOK_MS * 2);
  expect(told).toHaveLength(1);
});

test('§18.1 watching: a file that is still being written is not told', async () => {
  const { path, clock, told } = await watchOne(plainFile);
  for (const text of ['{ ', '{  ', '{   ', '{   }']) {
    await writeFile(path, text);
    clock.advance(LOOK_MS);
    expect(told).toEqual([]);
  }
  clock.advance(LOOK_MS);
  expect(told).toHaveLength(1);
});

test('§18.1 watching: a file has settled once two looks saw the same of it', async () => {
  const { path, clock, isSettled } = await watchOne(plainFile);
  expect(isSettled()).toBe(true);
  await writeFile(path, '{ }');
  expect(isSettled()).toBe(false);
  clock.advance(LOOK_MS);
  expect(isSettled()).toBe(false);
  clock.advance(LOOK_MS);
  expect(isSettled()).toBe(true);
  await writeFile(path, '{  }');
  expect(isSettled()).toBe(false);
});

test('§18.1 watching: a file that another one replaces is told', async () => {
  const { folder, path, clock, told } = await watchOne(plainFile);
  await writeFile(join(folder, 'new.json'), '{}');
  await rename(join(folder, 'new.json'), path);
  clock.advance(LOOK_MS * 2);
  expect(told).toHaveLength(1);
});

test('§18.1 watching: a file that goes and comes back is told', async () => {
  const { path, clock, told } = await watchOne(plainFile);
  await rm(path);
  clock.advance(LOOK_MS * 2);
  expect(told).toEqual(['none']);
  await writeFile(path, '{}');
  clock.advance(LOOK_MS * 2);
  expect(told).toHaveLength(2);
});

test('§18.1 watching: a link that leads to another folder is told, as ConfigMaps change', async () => {
  const { folder, clock, told } = await watchOne(async (inside) => {
    for (const version of ['1', '2']) {
      await mkdir(join(inside, version));
      await writeFile(join(inside, version, 'mcp.json'), '{}');
    }
    await symlink('1', join(inside, '..data'));
    await symlink(join('..data', 'mcp.json'), join(inside, 'mcp.json'));
    return join(inside, 'mcp.json');
  });
  await symlink('2', join(folder, '..data_tmp'));
  await rename(join(folder, '..data_tmp'), join(folder, '..data'));
  clock.advance(LOOK_MS * 2);
  expect(told).toHaveLength(1);
});

test('§18.1 watching: nothing is told once it was ended', async () => {
  const { path, clock, told, stop } = await watchOne(plainFile);
  stop();
  await writeFile(path, '{ }');
  clock.advance(LOOK_MS * 10);
  expect(told).toEqual([]);
});
