// §12: numbers keep their spelling where JSON is read and written, and edits of a text leave the rest of it alone.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonNumber, parseExactJson, writeExactJson } from '../../../src/platform/exact-json.ts';
import {
  cutJson,
  type JsonEdit,
  removeMembers,
  spliceJson,
} from '../../../src/platform/splice-json.ts';
import { createAnyJsonText } from '../../support/fuzz/json-texts.ts';
import { chooseCount } from '../../support/tools/long-run.ts';

const RUNS = { numRuns: chooseCount(500, 10_000) };

const anySpace = fc.constantFrom('', '', '', ' ', '\n', '\t \r');
const anyJson = createAnyJsonText(false);

const toPlain = (value: unknown): unknown =>
  value instanceof JsonNumber
    ? value.valueOf()
    : Array.isArray(value)
      ? value.map(toPlain)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toPlain(item)]))
        : value;

/** Written by the rules of `JSON.stringify`, with each number as the text has it: an oracle by regular expression. */
function respell(text: string): string {
  const strings: string[] = [];
  const bare = text.replace(/"(?:[^"\\]|\\.)*"/g, (string) => {
    strings.push(JSON.stringify(JSON.parse(string)));
    return '"';
  });
  return bare.replace(/\s/g, '').replace(/"/g, () => strings.shift() ?? '');
}

test('§12 JSON: numbers are read as JSON.parse reads them, and written as they were spelled', () => {
  fc.assert(
    fc.property(anyJson, (text) => {
      const exact = parseExactJson(text);
      const plain = JSON.parse(text);
      expect(toPlain(exact)).toEqual(toPlain(plain));
      expect(JSON.stringify(exact)).toBe(JSON.stringify(plain));
      // Members that are there twice are read once, by all parsers alike.
      const isWhole = respell(text).length === writeExactJson(exact).length;
      if (isWhole) expect(sortNames(writeExactJson(exact))).toBe(sortNames(respell(text)));
      expect(parseExactJson(writeExactJson(exact))).toEqual(exact);
    }),
    RUNS,
  );
});

/** `{"1":0,"0":0}` comes back in the order of JavaScript. */
const sortNames = (text = ''): string => [...text].sort().join('');

test.each(['1.0', '-0', '1e400', '7205759403792793601', '0.12345678901234567891', '1E5'])(
  '§12 JSON: %s is a number of its own, alone and within others',
  (number) => {
    expect(parseExactJson(number)).toEqual(new JsonNumber(number));
    const text = `{"a":[1,${number},"${number}"],"__proto__":{"b":${number}}}`;
    const value = parseExactJson(text);
    expect(writeExactJson(value)).toBe(text);
    expect(value).not.toHaveProperty('b');
    expect(writeExactJson({ value: [value] })).toBe(`{"value":[${text}]}`);
  },
);

test.each(['', '01', '1.', '.5', '1.0.0', '--1', '-', '1e', '[1.0', '{"a":1.0,}', '1.0 1', '+1.0'])(
  '§12 JSON: %o is refused in the words of JSON.parse',
  (text) => {
    expect(catchError(() => parseExactJson(text))).toEqual(catchError(() => JSON.parse(text)));
  },
);

function catchError(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

test('§12 JSON: a text of 50,000 levels is read, cut and edited without filling the stack', () => {
  const open = '{"a":['.repeat(25_000);
  const close = ']}'.repeat(25_000);
  const path = Array.from({ length: 25_000 }, () => ['a', 0] as const).flat();
  const text = `${open}1.0${close}`;
  let value = parseExactJson(text);
  for (const step of path) value = Reflect.get(Object(value), step);
  expect(value).toEqual(new JsonNumber('1.0'));
  expect(cutJson(text, ['a', 0, 'a'])).toBe(text.slice(11, -3));
  expect(spliceJson(text, [{ path, json: '2.0' }])).toBe(`${open}2.0${close}`);
  expect(spliceJson(text, [{ path }])).toBe(open + close);
});

/** Every place of a value, with what a parser finds there. */
function listPlaces(value: unknown, path: (string | number)[] = []): JsonEdit['path'][] {
  const members: [string | number, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : typeof value === 'object' && value !== null
      ? Object.entries(value)
      : [];
  return [path, ...members.flatMap(([key, item]) => listPlaces(item, [...path, key]))];
}

/** The same edits of the parsed value, from the end, so that positions stay. */
function editValue(
  value: unknown,
  edits: readonly JsonEdit[],
  path: JsonEdit['path'] = [],
): unknown {
  const edit = edits.find((one) => JSON.stringify(one.path) === JSON.stringify(path));
  if (edit?.json !== undefined) return JSON.parse(edit.json);
  const isRemoved = (key: string | number) =>
    edits.some(
      (one) =>
        one.json === undefined && JSON.stringify(one.path) === JSON.stringify([...path, key]),
    );
  if (Array.isArray(value)) {
    return value.flatMap((item, index) =>
      isRemoved(index) ? [] : [editValue(item, edits, [...path, index])],
    );
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, item]) =>
      isRemoved(name) ? [] : [[name, editValue(item, edits, [...path, name])]],
    ),
  );
}

test('§12 JSON: what is removed and replaced in a text is what a parser would find there', () => {
  fc.assert(
    fc.property(
      anyJson,
      fc.infiniteStream(fc.constantFrom('stay', 'stay', 'remove', 'replace')),
      (text, choices) => {
        const value = JSON.parse(text);
        const edits = listPlaces(value).flatMap((path): JsonEdit[] => {
          const choice = choices.next().value;
          if (choice === 'stay' || path.length === 0) return [];
          return choice === 'remove' ? [{ path }] : [{ path, json: '"new"' }];
        });
        expect(JSON.parse(spliceJson(text, edits))).toEqual(editValue(value, edits));
      },
    ),
    RUNS,
  );
});

test('§12 JSON: without some of its members an object is what a parser finds without them', () => {
  const anyObject = fc.array(fc.tuple(fc.constantFrom('a', 'b', '\\u0061', 'c'), anyJson));
  const anyNames = fc.subarray(['a', 'b', 'c', 'd']);
  fc.assert(
    fc.property(anyObject, anyNames, anySpace, (members, names, space) => {
      const spaced = members.map(([name, json]) => `${space}"${name}"${space}:${json}${space}`);
      const text = `${space}{${spaced.join(',')}${space}}${space}`;
      const left = Object.entries(JSON.parse(text)).filter(([name]) => !names.includes(name));
      expect(JSON.parse(removeMembers(text, names))).toEqual(Object.fromEntries(left));
    }),
    RUNS,
  );
});

test('§12 JSON: what is cut from a text is what a parser would find there', () => {
  fc.assert(
    fc.property(anyJson, anySpace, (json, space) => {
      const text = space + json + space;
      for (const path of listPlaces(JSON.parse(text))) {
        const cut = cutJson(text, path);
        const found = path.reduce<unknown>(
          (value, step) => Reflect.get(Object(value), step),
          JSON.parse(text),
        );
        expect(cut === undefined ? undefined : JSON.parse(cut)).toEqual(found);
        expect(text).toContain(cut);
      }
    }),
    RUNS,
  );
});

test.each([
  ['{ "a" : 1.0 , "b":2}', [{ path: ['a'] }], '{ "b":2}'],
  ['{"a":1.0, "b" : 2 }', [{ path: ['b'] }], '{"a":1.0 }'],
  ['{"a":1,"b":2,"c":-0}', [{ path: ['a'] }, { path: ['b'] }], '{"c":-0}'],
  ['{"a":1,"b":2,"c":-0}', [{ path: ['b'] }, { path: ['c'] }], '{"a":1}'],
  ['[1e400,\n2,3]', [{ path: [1] }, { path: [2], json: '{}' }], '[1e400,{}]'],
  ['{"a":1,"\\u0061":2,"b":3}', [{ path: ['a'] }], '{"b":3}'],
  ['{"a":{"b":[1.0,null]},"é":"\\/"}', [{ path: ['a', 'b', 1] }], '{"a":{"b":[1.0]},"é":"\\/"}'],
  ['{"a":1}', [{ path: ['b'] }, { path: ['a', 'b'] }, { path: [0] }], '{"a":1}'],
  ['{"a":{"b":1}}', [{ path: ['a'], json: '2.0' }, { path: ['a', 'b'] }], '{"a":2.0}'],
])('§12 JSON: %s after %o is %s', (text, edits, expected) => {
  expect(spliceJson(text, edits)).toBe(expected);
});
