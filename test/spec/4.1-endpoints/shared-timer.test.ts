// One timer for all that wait equally long: open streams, for their next comment and for their end.
import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test } from 'vitest';
import { SharedTimer, systemClock } from '../../../src/platform/clock.ts';
import { manualClock } from '../../support/gateway/clock.ts';

function createTimer(onPassed: (name: string) => void = () => {}) {
  const clock = manualClock();
  const passed: string[] = [];
  let timers = 0;
  const counting = {
    ...clock,
    after(delay: number, task: () => void) {
      timers += 1;
      const cancel = clock.after(delay, () => {
        timers -= 1;
        task();
      });
      return () => {
        timers -= 1;
        cancel();
      };
    },
  };
  const timer = new SharedTimer<string>(counting, 15_000, (name) => {
    passed.push(`${name} at ${clock.monotonic()}`);
    onPassed(name);
  });
  return { clock, timer, passed, countTimers: () => timers };
}

test('§4.4 streams: each waits its own time, whatever the others do', () => {
  const { clock, timer, passed } = createTimer();
  timer.add('a');
  clock.advance(4000);
  timer.add('b');
  timer.add('c');
  clock.advance(11_000);
  expect(passed).toEqual(['a at 15000']);
  clock.advance(4000);
  expect(passed).toEqual(['a at 15000', 'b at 19000', 'c at 19000']);
});

test.each([
  { which: 'first', left: ['b at 15001', 'c at 15002'] },
  { which: 'middle', left: ['a at 15000', 'c at 15002'] },
  { which: 'last', left: ['a at 15000', 'b at 15001'] },
])(
  '§4.4 streams: the $which of three that leaves is forgotten, and no other',
  ({ which, left }) => {
    const { clock, timer, passed } = createTimer();
    const waits = ['a', 'b', 'c'].map((name) => {
      const wait = timer.add(name);
      clock.advance(1);
      return wait;
    });
    const leaving = waits[['first', 'middle', 'last'].indexOf(which)];
    if (leaving === undefined) throw new Error('There is none');
    timer.remove(leaving);
    timer.remove(leaving);
    clock.advance(60_000);
    expect(passed).toEqual(left);
  },
);

test('§4.4 streams: one that waits again when its time has passed does so for the whole time', () => {
  const { clock, timer, passed } = createTimer((name) => timer.add(name));
  timer.add('a');
  clock.advance(5000);
  timer.add('b');
  clock.advance(30_000);
  expect(passed).toEqual(['a at 15000', 'b at 20000', 'a at 30000', 'b at 35000']);
});

test('§4.4 streams: a thousand need one timer, and none of them needs none', () => {
  const { clock, timer, countTimers } = createTimer();
  const waits = Array.from({ length: 1000 }, (_, n) => {
    clock.advance(1);
    return timer.add(`stream ${n}`);
  });
  expect(countTimers()).toBe(1);
  for (const wait of waits) timer.remove(wait);
  expect(countTimers()).toBe(0);
  timer.add('another');
  expect(countTimers()).toBe(1);
  clock.advance(15_000);
  expect(countTimers()).toBe(0);
});

test('§4.4 streams: what one does when its time has passed belongs to the request of no other', async () => {
  const requests = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const timer = new SharedTimer<string>(systemClock, 1, () => seen.push(requests.getStore()));
  requests.run('of a', () => timer.add('a'));
  requests.run('of b', () => timer.add('b'));
  await expect.poll(() => seen).toEqual([undefined, undefined]);
});
