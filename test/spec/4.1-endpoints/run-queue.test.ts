// §12: calls run in short turns of the event loop.
import { expect, test } from 'vitest';
import { createRunQueue } from '../../../src/http/server/overload.ts';
import { manualClock } from '../../support/gateway/clock.ts';

const nextTurn = () => new Promise<void>((resolve) => void setImmediate(resolve));

/** Tasks that take so long each, and the order in which they ran. */
function start(ms: number) {
  const clock = manualClock();
  const queue = createRunQueue(clock);
  const ran: number[] = [];
  const runTask = (id: number) =>
    queue.run(() => {
      ran.push(id);
      clock.advance(ms);
      return id;
    });
  return { clock, queue, ran, runTask };
}

test('§12 cheap calls of one turn all run at once', async () => {
  const { ran, runTask } = start(0.05);
  // One turn to learn what a call costs.
  runTask(0);
  await nextTurn();
  for (let id = 1; id <= 50; id += 1) expect(runTask(id)).toBe(id);
  expect(ran).toHaveLength(51);
});

test('§12 costly calls run some per turn, in the order in which they came, and each gets its own result', async () => {
  const { ran, runTask, queue, clock } = start(3);
  const results = Array.from({ length: 10 }, (_, id) => runTask(id));
  expect(ran).toEqual([0]);
  await nextTurn();
  expect(ran.length).toBeLessThan(4);
  expect(await Promise.all(results)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(ran).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(queue.getWait(clock.monotonic())).toBe(0);
});

test('§12 what a call throws reaches its caller alone', async () => {
  const { queue, runTask } = start(3);
  runTask(0);
  const failing = queue.run(() => {
    throw new Error('broken');
  });
  const next = runTask(1);
  await expect(failing).rejects.toThrow('broken');
  expect(await next).toBe(1);
});

test('§12 how long calls wait is known while many do, and one stall is no such case', async () => {
  const { clock, queue, runTask } = start(20);
  const results = Array.from({ length: 40 }, (_, id) => runTask(id));
  clock.advance(2000);
  expect(queue.getWait(clock.monotonic())).toBe(0);
  for (let turn = 0; turn < 30; turn += 1) await nextTurn();
  expect(queue.getWait(clock.monotonic())).toBeGreaterThan(2000);
  await Promise.all(results);
  await nextTurn();
  expect(queue.getWait(clock.monotonic())).toBe(0);
});

test('§12 a stall while many calls wait is no such case, either', async () => {
  const { clock, queue, runTask } = start(20);
  const results = Array.from({ length: 80 }, (_, id) => runTask(id));
  for (let turn = 0; turn < 30; turn += 1) await nextTurn();
  expect(queue.getWait(clock.monotonic())).toBeGreaterThan(500);
  clock.advance(3000);
  expect(queue.getWait(clock.monotonic())).toBe(0);
  await Promise.all(results);
});

/** Runs of each turn: calls that take 0.1 ms in later ticks, as those do whose body is read first, while connections come. */
async function countRunsWhileAccepting(
  calls: number,
  turns: number,
  clock = manualClock(),
  queue = createRunQueue(clock),
): Promise<readonly number[]> {
  let ran = 0;
  const runTask = () =>
    queue.run(async () => {
      ran += 1;
      for (let tick = 0; tick < 10; tick += 1) await new Promise<void>(process.nextTick);
      clock.advance(0.1);
    });
  const results = Array.from({ length: calls }, runTask);
  const runs: number[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const before = ran;
    queue.noteConnection();
    await nextTurn();
    runs.push(ran - before);
  }
  await Promise.all(results);
  return runs;
}

test('§12 while connections come, few calls run per turn, even where they take their time in later ticks', async () => {
  expect(Math.max(...(await countRunsWhileAccepting(300, 20)))).toBeLessThan(4);
});

test('§12 who goes on to open connections slows the calls of others no more', async () => {
  const runs = await countRunsWhileAccepting(3000, 600);
  expect(Math.max(...runs.slice(0, 500))).toBeLessThan(4);
  expect(runs.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(2900);
});

test('§12 connections that come with few calls leave the short turns to those that come at once', async () => {
  const clock = manualClock();
  const queue = createRunQueue(clock);
  for (let turn = 0; turn < 1000; turn += 1) {
    queue.noteConnection();
    await queue.run(() => clock.advance(0.1));
    await nextTurn();
  }
  expect(Math.max(...(await countRunsWhileAccepting(300, 20, clock, queue)))).toBeLessThan(4);
});
