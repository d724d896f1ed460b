// The bus by which changes are told, to the process or stream of a server and to those who listen.
import { expect, test } from 'vitest';
import { createCountedBus } from '../../../src/platform/counted-bus.ts';

function createBus() {
  const events: string[] = [];
  const bus = createCountedBus<string, (text: string) => void, string>({
    start(topic) {
      events.push(`start ${topic}`);
      if (topic === 'broken') throw new Error('it cannot be started');
      return `source of ${topic}`;
    },
    stop(source) {
      events.push(`stop ${source}`);
      if (source === 'source of stuck') throw new Error('it cannot be stopped');
    },
    onError: (cause) => void events.push(String(cause)),
    bounds: {
      topics: 3,
      topicsOfListener: 2,
      failFull(what) {
        throw new Error(what);
      },
    },
  });
  return { bus, events };
}

const ignore = () => {};

test('§18.3 what listeners need is started with the first of them, and stopped after the last', () => {
  const { bus, events } = createBus();
  const stops = [bus.subscribe('a', ignore), bus.subscribe('a', () => {})];
  bus.subscribe('a', ignore);
  for (const stop of [...stops, ...stops]) stop();
  bus.subscribe('a', ignore);
  bus.unsubscribeAll(ignore);
  const once = ['start a', 'stop source of a'];
  expect(events).toEqual([...once, ...once]);
  expect(bus.topics.size).toBe(0);
});

test('§18.3 where it cannot be started nobody listens', () => {
  const { bus, events } = createBus();
  expect(() => bus.subscribe('broken', ignore)).toThrow('it cannot be started');
  expect(bus.topics.size).toBe(0);
  expect(events).toEqual(['start broken']);
});

test('§18.3 what one listener throws reaches no other, and who has left is told nothing', () => {
  const { bus, events } = createBus();
  bus.subscribe('a', () => {
    stopLast();
    throw new Error('no');
  });
  bus.subscribe('a', (text) => void events.push(text));
  const stopLast = bus.subscribe('a', () => void events.push('too late'));
  bus.publish('a', (listener) => listener('heard'));
  expect(events).toEqual(['start a', 'Error: no', 'heard']);
});

test('§18.3 topics are bounded, of each listener and of all', () => {
  const { bus } = createBus();
  for (const topic of ['a', 'b', 'a']) bus.subscribe(topic, ignore);
  expect(() => bus.subscribe('c', ignore)).toThrow('topicsOfListener');
  const other = () => {};
  bus.subscribe('c', other);
  expect(() => bus.subscribe('d', other)).toThrow('topics');
  bus.end('a');
  expect([...bus.topics.keys()]).toEqual(['b', 'c']);
});

test('§18.3 what cannot be stopped keeps nobody from leaving, and no other from being stopped', () => {
  const { bus, events } = createBus();
  bus.subscribe('stuck', ignore);
  bus.subscribe('a', ignore);
  bus.endAll();
  expect(bus.topics.size).toBe(0);
  expect(events.slice(2)).toEqual([
    'stop source of stuck',
    'Error: it cannot be stopped',
    'stop source of a',
  ]);
});
