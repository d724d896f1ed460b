// Where members stand in the bytes of JSON is told as the parser would, whatever is written there.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type ScannedMember, scanObject } from '../../../src/platform/scan/scan-json.ts';
import { chooseCount, LONG_MS } from '../../support/tools/long-run.ts';

const RULES = { sought: Buffer.from('resource').readBigUInt64LE(), maxValues: 1000 };

const scan = (text: string) => {
  const bytes = Buffer.from(text);
  return scanObject(bytes, 0, bytes.length, RULES);
};

const parseEach = (text: string, members: readonly ScannedMember[]) =>
  members.map(({ name, start, end }) => [
    name,
    JSON.parse(Buffer.from(text).subarray(start, end).toString()),
  ]);

/** Objects of JavaScript have names that are numbers first. */
const sorted = (entries: readonly (readonly unknown[])[]) =>
  [...entries].sort(([one], [other]) => (String(one) < String(other) ? -1 : 1));

const parsedEntries = (text: string) => sorted(Object.entries(JSON.parse(text)));

const anyString = fc.string({
  unit: fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', 'a', ' ', 'ä', '€', '\u0001'),
  maxLength: 12,
});
const anyNumber = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer());
const plainName = fc.string({ unit: fc.constantFrom('a', 'b', 'ä', ' '), maxLength: 4 });
const { value: anyValue } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    anyString,
    anyNumber,
    fc.constantFrom(null, true, false),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(anyString, tie('value'), { maxKeys: 3 }),
  ),
}));
const anyObject = fc.dictionary(plainName, anyValue, { maxKeys: 4 });

test('§18.3 results: what is JSON is found, member by member', () => {
  fc.assert(
    fc.property(anyObject, (value) => {
      const text = JSON.stringify(value);
      const members = scan(text);
      // Short strings in which something is escaped are left to the parser.
      if (members === undefined) expect(text).toContain('\\');
      else expect(sorted(parseEach(text, members))).toEqual(parsedEntries(text));
    }),
    { numRuns: chooseCount(3000, 50_000) },
  );
});

/** What a backslash stands before is not looked at within strings: the texts here have none. */
const plainString = fc.string({
  unit: fc.constantFrom('{', '}', '[', ']', ',', ':', 'a', ' ', 'ä'),
  maxLength: 6,
});
const { value: plainValue } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    plainString,
    fc.constantFrom(0, -1.5e300, 7, null, true, false),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(plainString, tie('value'), { maxKeys: 3 }),
  ),
}));
const anyEdit = fc.record({
  at: fc.nat(),
  removed: fc.nat({ max: 2 }),
  added: fc.string({ unit: fc.constantFrom(...'{}[]:,"0-.eE+tnul '), maxLength: 2 }),
});

test('§18.3 results: what was changed so that it is no JSON is never taken for it', {
  timeout: LONG_MS,
}, () => {
  fc.assert(
    fc.property(
      fc.dictionary(plainString, plainValue, { maxKeys: 3 }),
      fc.array(anyEdit, { minLength: 1, maxLength: 3 }),
      (value, edits) => {
        const text = edits.reduce((current, { at, removed, added }) => {
          const start = at % (current.length + 1);
          return current.slice(0, start) + added + current.slice(start + removed);
        }, JSON.stringify(value));
        const members = scan(text);
        if (members !== undefined) {
          expect(sorted(parseEach(text, members))).toEqual(parsedEntries(text));
        }
      },
    ),
    { numRuns: chooseCount(20_000, 300_000) },
  );
});

test.each([
  '',
  '{',
  '[]',
  '"a"',
  'null',
  '{}}',
  ' {}',
  '{} ',
  '{"a":1,"a":2}',
  '{"\\u0061":1}',
  '{"a":-}',
  '{"a":1e}',
  '{"a":.5}',
  '{"a":+1}',
  '{"a":NaN}',
  `{"a":${'['.repeat(200)}${']'.repeat(200)}}`,
])('§18.3 results: %j is no object that is known by its bytes', (text) => {
  expect(scan(text)).toBeUndefined();
});

test('§18.3 results: a string that is sought is found however it is spelled, and a long one is none', () => {
  for (const text of ['{"a":[{"type":"sought_after"}]}', '{"sought":1}', '{"a":"\\u0073ought"}']) {
    expect(scan(text)).toBeUndefined();
  }
  expect(scan(`{"a":"not sought","b":"sought ${'x'.repeat(200)}"}`)).toHaveLength(2);
});

test('§18.3 results: many values are left to the parser', () => {
  expect(scan(JSON.stringify({ a: Array.from({ length: 100 }, () => 1) }))).toHaveLength(1);
  expect(scan(JSON.stringify({ a: Array.from({ length: 1000 }, () => 1) }))).toBeUndefined();
});

test('§18.3 results: numbers are compared as they are written, not as doubles', () => {
  expect(scan('{"a": 12345678901234567890.125 ,"b":-0.0e+12}')).toEqual([
    { name: 'a', start: 6, end: 30 },
    { name: 'b', start: 36, end: 44 },
  ]);
});
