// §12: what JSON text may have at most, told from the text alone, before it is parsed.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findExceededBound } from '../../../src/platform/json.ts';
import { chooseCount } from '../../support/tools/long-run.ts';

const membersOf = (value: unknown): readonly unknown[] =>
  typeof value === 'object' && value !== null ? Object.values(value) : [];

const countLevels = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? 1 + Math.max(0, ...membersOf(value).map(countLevels))
    : 0;

const countValues = (value: unknown): number =>
  1 + membersOf(value).reduce<number>((sum, member) => sum + countValues(member), 0);

/** Quotes, backslashes and brackets also inside of strings and names. */
const anyText = fc.string({ unit: fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', 'a') });
const { value: anyValue } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    anyText,
    fc.constantFrom(null, true, 0, -1.5e300),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(anyText, tie('value'), { maxKeys: 4 }),
  ),
}));

test('§12 JSON: levels and values are counted as the value has them, whatever stands in its strings', () => {
  fc.assert(
    fc.property(
      anyValue,
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 30 }),
      fc.constantFrom(undefined, 1),
      (value, levels, values, indent) => {
        const text = JSON.stringify(value, null, indent);
        const isWithin = countLevels(value) <= levels && countValues(value) <= values;
        expect(findExceededBound(text, { levels, values }) === undefined).toBe(isWithin);
      },
    ),
    { numRuns: chooseCount(500, 10_000) },
  );
});
