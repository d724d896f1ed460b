// How many streams a process keeps open only so that servers can ask on them.
import { expect, test } from 'vitest';
import {
  createHeldStreams,
  type HeldStream,
} from '../../../src/servers/transport/process-share.ts';
import { manualClock } from '../../support/gateway/clock.ts';

function start() {
  const clock = manualClock();
  const streams = createHeldStreams(clock);
  const closed: number[] = [];
  let count = 0;

  /** Its number, or undefined where there is no room. */
  function add(user: string | undefined, isBusy: boolean): number | undefined {
    clock.advance(1);
    const number = count++;
    const stream: HeldStream = {
      user,
      usedAt: clock.monotonic(),
      isBusy: () => isBusy,
      close() {
        streams.remove(stream);
        closed.push(number);
      },
    };
    return streams.add(stream) ? number : undefined;
  }
  return { add, closed };
}

const MAX_PER_USER = 64;
const MAX_IN_ALL = 1024;

test('§18.3 a process has 1,024 streams for questions: of more the one that was not needed for longest makes room', () => {
  const { add, closed } = start();
  expect(add('busy', true)).toBe(0);
  for (let at = 1; at < MAX_IN_ALL; at += 1) add(`user ${at}`, at > 2);
  expect(closed).toEqual([]);
  for (const user of ['one', 'other']) expect(add(user, true)).toBeDefined();
  expect(closed).toEqual([1, 2]);
  // All are needed by calls under way.
  expect(add('third', true)).toBeUndefined();
  expect(closed).toEqual([1, 2]);
});

test('§18.3 without authentication all together have as many', () => {
  const { add, closed } = start();
  for (let at = 0; at < MAX_IN_ALL; at += 1) expect(add(undefined, true)).toBe(at);
  expect(add(undefined, true)).toBeUndefined();
  expect(closed).toEqual([]);
});

test('§18.3 a user has 64 of them, and takes none from another', () => {
  const { add, closed } = start();
  expect(add('bob', false)).toBe(0);
  for (let at = 1; at <= MAX_PER_USER; at += 1) expect(add('ada', at > 1)).toBe(at);
  expect(add('ada', true)).toBeDefined();
  expect(closed).toEqual([1]);
  expect(add('ada', true)).toBeUndefined();
  expect(closed).toEqual([1]);
});
