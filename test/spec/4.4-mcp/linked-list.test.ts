import { expect, test } from 'vitest';
import { LinkedList } from '../../../src/platform/bounded-map.ts';

const fill = (...values: string[]) => {
  const list = new LinkedList<string>();
  return { list, links: values.map((value) => list.add(value)) };
};

test('has its values in the order in which they were added', () => {
  const { list } = fill('a', 'b', 'c');
  expect([...list]).toEqual(['a', 'b', 'c']);
  expect(list.size).toBe(3);
});

test.each([
  ['the oldest', 0, ['b', 'c']],
  ['one between', 1, ['a', 'c']],
  ['the newest', 2, ['a', 'b']],
])('%s can be removed, and others come behind what is left', (_what, at, left) => {
  const { list, links } = fill('a', 'b', 'c');
  list.remove(links[at]);
  expect([...list]).toEqual(left);
  list.add('d');
  expect([...list]).toEqual([...left, 'd']);
  expect(list.size).toBe(3);
});

test('is empty when all are removed, and can be filled again', () => {
  const { list, links } = fill('a', 'b');
  for (const link of links) list.remove(link);
  expect([...list]).toEqual([]);
  expect(list.size).toBe(0);
  list.add('c');
  expect([...list]).toEqual(['c']);
});

test('what was removed, or is in another list, is not removed again', () => {
  const { list, links } = fill('a', 'b');
  const other = fill('c');
  list.remove(links[0]);
  list.remove(links[0]);
  list.remove(other.links[0]);
  list.remove(undefined);
  expect([...list]).toEqual(['b']);
  expect(list.size).toBe(1);
  expect([...other.list]).toEqual(['c']);
});

test('the first is the oldest', () => {
  const { list, links } = fill('a', 'b');
  expect(list.first?.value).toBe('a');
  list.remove(links[0]);
  expect(list.first?.value).toBe('b');
  list.remove(links[1]);
  expect(list.first).toBeUndefined();
});

test('the value at hand may be removed', () => {
  const { list, links } = fill('a', 'b', 'c');
  const seen = [];
  for (const value of list) {
    seen.push(value);
    list.remove(links.find((link) => link.value === value));
  }
  expect(seen).toEqual(['a', 'b', 'c']);
  expect(list.size).toBe(0);
});
