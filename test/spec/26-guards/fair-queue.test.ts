// §26.3: who has much to ask a guard about waits for itself.
import { expect, test } from 'vitest';
import { Cancellation } from '../../../src/platform/cancellation.ts';
import { createWorkQueue } from '../../../src/platform/work-queue.ts';

const OPTIONS = {
  maxRunning: 4,
  maxRunningOfOne: 2,
  maxWaiting: 10,
  maxWaitingOfOne: 5,
  createRefusal: () => new Error('too much of it waits'),
};

function startWork() {
  const queue = createWorkQueue(OPTIONS);
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (owner: string, name: string, signal?: Cancellation) =>
    queue.run(
      () => {
        started.push(name);
        return new Promise<void>((resolve) => void ends.push(resolve));
      },
      { owner, ...(signal && { signal }) },
    );
  const endFirst = async () => {
    ends.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { ask, started, endFirst };
}

test('§26.3 one owner has a part of the places, and others find theirs', async () => {
  const { ask, started } = startWork();
  for (const name of ['a1', 'a2', 'a3', 'a4']) void ask('ada', name);
  void ask('bob', 'b1');
  expect(started).toEqual(['a1', 'a2', 'b1']);
});

test('§26.3 places that become free are given in turns', async () => {
  const { ask, started, endFirst } = startWork();
  for (const name of ['a1', 'a2', 'a3', 'a4']) void ask('ada', name);
  for (const name of ['b1', 'b2', 'b3']) void ask('bob', name);
  void ask('eve', 'e1');
  expect(started).toEqual(['a1', 'a2', 'b1', 'b2']);
  await endFirst();
  expect(started.slice(4)).toEqual(['a3']);
  await endFirst();
  expect(started.slice(5)).toEqual(['e1']);
});

test('§26.3 too much of one is turned away, and nobody else is', async () => {
  const { ask, started } = startWork();
  const all = Array.from({ length: 8 }, (_, index) => ask('ada', `a${index}`));
  await expect(all.at(-1)).rejects.toThrow('too much');
  void ask('bob', 'b');
  expect(started).toContain('b');
});

test('§26.3 who leaves the line is not waited for', async () => {
  const { ask, started, endFirst } = startWork();
  void ask('ada', 'a1');
  void ask('ada', 'a2');
  const signal = new Cancellation();
  const left = ask('ada', 'a3', signal);
  void ask('ada', 'a4');
  signal.abort();
  await expect(left).rejects.toThrow('no longer waits');
  await endFirst();
  expect(started).toEqual(['a1', 'a2', 'a4']);
});

test('§26.3 who leaves just as the last work of its line ends takes no later line along', async () => {
  const queue = createWorkQueue({ ...OPTIONS, maxRunningOfOne: 1 });
  const owner = 'ada';
  const signal = new Cancellation();
  let endFirst = () => {};
  const started: string[] = [];
  const run = (name: string) =>
    queue.run(
      () => {
        started.push(name);
        return new Promise<void>(() => {});
      },
      { owner },
    );
  void queue.run(
    () =>
      new Promise<void>((resolve) => {
        endFirst = resolve;
      }),
    { owner },
  );
  const left = queue.run(async () => {}, { owner, signal });
  endFirst();
  // After the line of the first has ended, and before the one that leaves hears of it.
  queueMicrotask(() => void run('second'));
  signal.abort();
  await expect(left).rejects.toThrow('no longer waits');
  void run('third');
  expect(started).toEqual(['second']);
});
