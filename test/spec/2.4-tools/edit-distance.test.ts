// How far two names are apart, compared with the plain definition of it.
import { expect, test } from 'vitest';
import { computeEditDistance } from '../../../src/platform/nearest-name.ts';

/** Damerau–Levenshtein, restricted, as it is defined. */
function define(one: string, other: string): number {
  if (one === '' || other === '') return one.length + other.length;
  const [first, second] = [one.slice(1), other.slice(1)];
  const replaced = define(first, second) + (one[0] === other[0] ? 0 : 1);
  const isSwapped = one[0] === other[1] && one[1] === other[0] && other.length > 1;
  const swapped = isSwapped ? define(one.slice(2), other.slice(2)) + 1 : replaced;
  return Math.min(replaced, swapped, define(first, other) + 1, define(one, second) + 1);
}

const LETTERS = ['a', 'b', 'c'];
const grow = (texts: readonly string[]) =>
  texts.flatMap((text) => LETTERS.map((letter) => text + letter));
const SHORT = [[''], LETTERS, grow(LETTERS), grow(grow(LETTERS))].flat();

test('§7.1 the distance of names is what it is defined as, and Infinity beyond what is asked for', () => {
  const wrong = SHORT.flatMap((one) =>
    SHORT.flatMap((other) => {
      const distance = define(one, other);
      return [0, 1, 2, 2.5, Number.POSITIVE_INFINITY].flatMap((most) => {
        const wanted = distance <= most ? distance : Number.POSITIVE_INFINITY;
        const found = computeEditDistance(one, other, most);
        return found === wanted ? [] : [{ one, other, most, wanted, found }];
      });
    }),
  );
  expect(wrong).toEqual([]);
});
