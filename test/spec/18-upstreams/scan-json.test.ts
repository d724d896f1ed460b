// Where members stand in the bytes of JSON is told as the parser would, whatever is written there: what is taken for an object
// that is none could bring a message of its own with it.
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import {
  SCAN_BOUNDS,
  type ScannedMember,
  scanObject,
} from '../../../src/platform/scan/scan-json.ts';
import { chooseCount, LONG_MS } from '../../support/tools/long-run.ts';

const RULES = { sought: Buffer.from('resource').readBigUInt64LE(), maxValues: 1000 };

interface Surroundings {
  readonly before: string;
  readonly behind: string;
}

/** What is around it does not belong to it. */
function scan(text: string, { before, behind }: Surroundings = { before: '', behind: '' }) {
  const bytes = Buffer.from(before + text + behind);
  const start = Buffer.byteLength(before);
  const end = start + Buffer.byteLength(text);
  return scanObject(bytes, start, end, RULES)?.members.map((member) => ({
    name: member.name,
    from: member.from - start,
    start: member.start - start,
    end: member.end - start,
  }));
}

/** That the parser finds the same, and that nothing else stands between the members. */
function expectSameAsParsed(text: string, members: readonly ScannedMember[]) {
  const bytes = Buffer.from(text);
  const parsed = JSON.parse(text);
  expect(new Set(Object.keys(parsed))).toEqual(new Set(members.map(({ name }) => name)));
  expect(Object.keys(parsed)).toHaveLength(members.length);
  let behind = 0;
  for (const [index, { name, from, start, end }] of members.entries()) {
    expect(bytes.subarray(from, start).toString().trimEnd()).toMatch(/^"[\s\S]*:$/);
    const between = bytes.subarray(behind, start).toString().replaceAll(' ', '');
    expect(between).toBe(`${index === 0 ? '{' : ','}"${name.replaceAll(' ', '')}":`);
    expect(JSON.parse(bytes.subarray(start, end).toString())).toEqual(parsed[name]);
    behind = end;
  }
  const rest = bytes.subarray(behind).toString().replaceAll(' ', '');
  expect(rest).toBe(members.length === 0 ? '{}' : '}');
}

const ESCAPES = [
  '\\"',
  '\\\\',
  '\\/',
  '\\b',
  '\\f',
  '\\n',
  '\\r',
  '\\t',
  '\\u0041',
  '\\uD83d\\uDE00',
];
const anyPart = fc.oneof(
  fc.constantFrom(...ESCAPES, '\\u0000', '\\ud800'),
  fc.constantFrom(...'{}[],:/ abfnrtu09ä€😀\u007f\u2028'),
  fc.nat({ max: 70 }).map((length) => 'x'.repeat(length)),
);
const anyString = fc.array(anyPart, { maxLength: 12 }).map((parts) => `"${parts.join('')}"`);
const anySpaces = fc.constantFrom('', '', '', ' ', '   ');
const list = (items: readonly string[], space: string) => items.join(`${space},${space}`);
const { value: anyValue } = fc.letrec<{ value: string; member: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    anyString,
    fc.constantFrom('0', '-0', '7', '-12.50e+10', '1E-2', '1e5', '0.1', '1'.repeat(80)),
    fc.constantFrom('null', 'true', 'false', '{}', '[]', '[ ]', '{ }'),
    fc
      .tuple(fc.array(tie('value'), { minLength: 1, maxLength: 4 }), anySpaces)
      .map(([items, space]) => `[${space}${list(items, space)}${space}]`),
    fc
      .tuple(fc.array(tie('member'), { minLength: 1, maxLength: 4 }), anySpaces)
      .map(([members, space]) => `{${space}${list(members, space)}${space}}`),
  ),
  member: fc
    .tuple(anyString, anySpaces, tie('value'))
    .map(([name, space, value]) => `${name}${space}:${space}${value}`),
}));
const anyName = fc.string({ unit: fc.constantFrom('a', 'b', 'ä', ' '), maxLength: 20 });
const anyObject = fc
  .tuple(
    fc.uniqueArray(fc.tuple(anyName, anyValue), { selector: ([name]) => name, maxLength: 4 }),
    anySpaces,
  )
  .map(
    ([members, space]) =>
      `{${space}${list(
        members.map(([name, value]) => `"${name}"${space}:${value}`),
        space,
      )}${space}}`,
  );
const anySurroundings = fc.record({
  before: fc.nat({ max: 70 }).map((length) => '"'.repeat(length)),
  behind: fc
    .array(
      fc.constantFrom('"', '\\', '}', ']', ',', '{"a":1', '0', '\n', ' ', 'u00', 'x'.repeat(40)),
    )
    .map((parts) => parts.join('')),
});

test('§18.3 results: all that is JSON is found, member by member', { timeout: LONG_MS }, () => {
  fc.assert(
    fc.property(anyObject, anySurroundings, (text, around) => {
      const members = scan(text, around);
      expect(members).toBeDefined();
      expectSameAsParsed(text, members ?? []);
    }),
    { numRuns: chooseCount(1000, 20_000) },
  );
});

/** Names, as those of objects, that are spelled as they are. */
const anyListed = fc.oneof(
  anyValue,
  fc
    .array(fc.tuple(anyName, anyValue), { maxLength: 3 })
    .map((members) => `{${members.map(([name, value]) => `"${name}": ${value}`).join(' ,')}}`),
);

test('§18.3 results: what is in lists is found, entry by entry', { timeout: LONG_MS }, () => {
  let found = 0;
  fc.assert(
    fc.property(fc.array(fc.array(anyListed, { maxLength: 4 }), { maxLength: 3 }), (lists) => {
      const members = lists.map((listed, index) => `"${index}": [ ${listed.join(' , ')} ]`);
      const bytes = Buffer.from(`{"no list":{"a":[{"b":1}]},${[...members, '"a":0'].join(',')}}`);
      const cut = (of: { start: number; end: number }) => bytes.toString('utf8', of.start, of.end);
      const { entries } = scanObject(bytes, 0, bytes.length, RULES) ?? {};
      const all = lists.flat();
      const names = all.flatMap((entry) => (entry.startsWith('{') ? readNames(entry) : []));
      expect(entries === undefined).toBe(names.some((name) => name.includes('\\')));
      if (entries === undefined) return;
      found += 1;
      expect(entries.map(cut)).toEqual(all);
      for (const entry of entries) {
        const object = cut(entry).startsWith('{') ? JSON.parse(cut(entry)) : {};
        const read = entry.members.map((member) => [member.name, JSON.parse(cut(member))] as const);
        expect(Object.fromEntries(read)).toEqual(object);
      }
    }),
    { numRuns: chooseCount(1000, 20_000) },
  );
  expect(found).toBeGreaterThan(200);
});

/** Of its own members, as they are spelled. */
function readNames(object: string): readonly string[] {
  const names: string[] = [];
  let level = 0;
  for (const [token, name] of object.matchAll(
    /("(?:[^"\\]|\\.)*") *:|"(?:[^"\\]|\\.)*"|[[\]{}]/gs,
  )) {
    if (name !== undefined && level === 1) names.push(name);
    if (token === '{' || token === '[') level += 1;
    if (token === '}' || token === ']') level -= 1;
  }
  return names;
}

test('§18.3 results: entries of lists are found up to a bound, and all that is around them beyond it', () => {
  const scanList = (count: number) => {
    const entries = Array.from({ length: count }, (_, index) => `{"type":${index}}`);
    const bytes = Buffer.from(`{"a":[${entries.join(',')}],"b":"text"}`);
    return scanObject(bytes, 0, bytes.length, RULES);
  };
  expect(scanList(219)?.entries).toHaveLength(219);
  expect(scanList(220)?.entries).toBeUndefined();
  expect(scanList(400)?.members.map(({ name }) => name)).toEqual(['a', 'b']);
  expect(scanList(1)?.entries).toHaveLength(1);
});

const anyEdit = fc.record({
  at: fc.nat(),
  removed: fc.nat({ max: 2 }),
  added: fc.oneof(
    fc.string({ unit: fc.constantFrom(...'{}[]:,"\\0-.eE+tnul b/x\n\u001f'), maxLength: 2 }),
    fc.constantFrom('\\u00', '\\\\"', 'resource', '"a":', '}}', '"},"id":1,"x":{"a":"'),
  ),
});

function edit(text: string, edits: readonly { at: number; removed: number; added: string }[]) {
  return edits.reduce((current, { at, removed, added }) => {
    const start = at % (current.length + 1);
    return current.slice(0, start) + added + current.slice(start + removed);
  }, text);
}

const isSought = (value: unknown): boolean => {
  if (typeof value === 'string') return value.startsWith('resource');
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some((entry) => entry.some(isSought));
};

test('§18.3 results: what was changed so that it is no JSON is never taken for it', {
  timeout: LONG_MS,
}, () => {
  let found = 0;
  fc.assert(
    fc.property(
      anyObject,
      fc.array(anyEdit, { minLength: 1, maxLength: 3 }),
      anySurroundings,
      (original, edits, around) => {
        // A change may have cut a character in two.
        const text = Buffer.from(edit(original, edits)).toString();
        const members = scan(text, around);
        if (members === undefined) return;
        found += 1;
        expectSameAsParsed(text, members);
        expect(text).not.toMatch(/[\u0000-\u001f]/);
        expect(isSought(JSON.parse(text))).toBe(false);
      },
    ),
    { numRuns: chooseCount(5000, 100_000) },
  );
  expect(found).toBeGreaterThan(200);
});

test('§18.3 results: what ends earlier or later than its end is never taken for JSON', {
  timeout: LONG_MS,
}, () => {
  fc.assert(
    fc.property(anyObject, anySurroundings, fc.nat(), (text, { before, behind }, by) => {
      const at = by % (text.length + 1);
      const [start, rest] = [text.slice(0, at), text.slice(at)];
      if (rest !== '') expect(scan(start, { before, behind: rest + behind })).toBeUndefined();
      if (behind !== '') expect(scan(text + behind, { before, behind })).toBeUndefined();
    }),
    { numRuns: chooseCount(1000, 20_000) },
  );
});

test.each([
  '',
  '{',
  '}',
  '[]',
  '"a"',
  'null',
  '{}}',
  ' {}',
  '{} ',
  '{,}',
  '{"a":1,"a":2}',
  '{"\\u0061":1}',
  '{"a"}',
  '{"a":}',
  '{"a" 1}',
  '{"a"::1}',
  '{"a":1,}',
  '{,"a":1}',
  '{"a":1,,"b":1}',
  '{"a":1 "b":1}',
  '{a:1}',
  "{'a':1}",
  '{1:1}',
  '{null:1}',
  '{"a":1]',
  '{"a":[1}',
  '{"a":1}{"b":1}',
  '{"a":1},{"b":1}',
  '{"a":1}"',
  '\ufeff{}',
])('§18.3 results: %j is no object that is known by its bytes', (text) => {
  expect(scan(text)).toBeUndefined();
});

/** Values that parsers have taken for JSON, by mistake or on purpose. */
const WRONG_VALUES = [
  ...['-', '--1', '+1', '01', '-01', '00', '.5', '-.5', '1.', '1.e1', '1e', '1e+', '1eE2', '1e1.5'],
  ...['0x1', '1_000', '1 2', '- 1', '1e 5', '1-1', '1a', 'Infinity', '-Infinity', 'NaN', '１'],
  ...[
    'tru',
    'truee',
    'True',
    'TRUE',
    'nul',
    'nulll',
    'fals',
    'talse',
    'falsee',
    'true1',
    'nulltrue',
  ],
  ...['undefined', 'a', "'a'", '`a`', '"', '"a', 'a"', '""a', '"a""b"', '"a" "b"', '/**/1', '1//'],
  ...['[', ']', '[1', '[1,', '[1,]', '[,1]', '[,]', '[1,,2]', '[1 2]', '[1:2]', '[}', '{]', '[1}'],
  ...[
    '[[]',
    '[]]',
    '{"a":1',
    '{"a"',
    '{"a":',
    '{"a":1,',
    '{"a":1,}',
    '{"a" "b"}',
    '{"a":1:2}',
    '{1:1}',
  ],
  ...[
    '"\\"',
    '"\\',
    '"\\x"',
    '"\\a"',
    '"\\0"',
    '"\\U0041"',
    '"\\\'"',
    '"\\ "',
    '"\\{"',
    '"\\ä"',
    '"\\😀"',
  ],
  ...[
    '"\\u"',
    '"\\u0"',
    '"\\u00"',
    '"\\u004"',
    '"\\u004g"',
    '"\\u 041"',
    '"\\u+041"',
    '"\\u00\\n"',
  ],
  ...[
    '"\\u004:"',
    '"\\u004/"',
    '"\\u004@"',
    '"\\u004`"',
    '"\\u004G"',
    '"\\u004ä"',
    '"\\\\u004g\\"',
  ],
  ...[
    '"\\B"',
    '"\\N"',
    '"\\R"',
    '"\\T"',
    '"\\F"',
    '"\\v"',
    '"\\1"',
    '"\\!"',
    '"\\o"',
    '"\\?"',
    '"\\2"',
  ],
];

test.each(WRONG_VALUES)('§18.3 results: %j is no value', (value) => {
  for (const text of [`{"a":${value}}`, `{"a":[${value}]}`, `{"a":{"b":[1,${value}]}}`]) {
    expect(() => JSON.parse(text)).toThrow();
    expect(scan(text)).toBeUndefined();
  }
});

test('§18.3 results: only what RFC 8259 names may stand behind a backslash, and no control character', () => {
  for (let code = 0; code < 256; code += 1) {
    const character = String.fromCharCode(code);
    const isEscape = '"\\/bfnrt'.includes(character);
    expect(scan(`{"a":"\\${character}"}`) !== undefined, character).toBe(isEscape);
    expect(scan(`{"a":"${'x'.repeat(20)}\\${character}"}`) !== undefined).toBe(isEscape);
    const isPlain = code >= 0x20 && !'"\\'.includes(character);
    expect(scan(`{"a":"${character}"}`) !== undefined, character).toBe(isPlain);
    expect(scan(`{"a":"${'x'.repeat(20)}${character}"}`) !== undefined).toBe(isPlain);
    expect(scan(`{"a":${character}1}`) !== undefined, character).toBe(
      ' -123456789'.includes(character),
    );
  }
});

test('§18.3 results: what a string has is understood wherever it stands in a block of bytes', () => {
  const right = [...ESCAPES, '\\\\\\"', '\\\\\\\\', '\\\\\\\\\\"\\\\', '\\\\u12', '😀', 'ä'];
  const wrong = [
    '\\x',
    '\\u12',
    '\\u123',
    '\\u123x',
    '\\u12\\u1234',
    '\\\\\\x',
    '\\\\\\u12g4',
    '\\',
  ];
  for (let length = 0; length < 140; length += 1) {
    const x = 'x'.repeat(length);
    for (const part of [...right, ...right.map((one) => one + one)]) {
      const text = `{"a":"${x}${part}","b":"${part}${x}"}`;
      expectSameAsParsed(text, scan(text) ?? []);
    }
    for (const part of [...wrong, '\u0001', '\u001f', '\n', '"']) {
      expect(scan(`{"a":"${x}${part}"}`), x + part).toBeUndefined();
    }
    const behind = `"}${x}"}`;
    for (const cut of ['', '\\', '\\\\', '\\u12', '\\u1234']) {
      expect(scan(`{"a":"${x}${cut}`, { before: '', behind })).toBeUndefined();
    }
    expect(scan(`{"a":"${x}"`, { before: '', behind: '}' })).toBeUndefined();
    expect(scan(`{"a":"${x}"}`, { before: '', behind: '\\"\n' })).toHaveLength(1);
  }
});

const SPELLINGS = ['resource', '\\u0072esource', 'r\\u0065\\u0073ource', 'resourc\\u0065'];
const ALL_SPELLED = [...'resource'].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`);

test.each([...SPELLINGS, ALL_SPELLED.join(''), ALL_SPELLED.join('').replace('6f', '6F')])(
  '§18.3 results: a string that begins with what is sought is found as %s',
  (word) => {
    for (const text of [
      `{"a":[{"type":"${word}"}]}`,
      `{"a":[{"type":"${word}_link"}]}`,
      `{"a":"${word} ${'x'.repeat(200)}"}`,
      `{"${word}":1}`,
      `{"a":{"${word}":1}}`,
    ]) {
      expect(scan(text)).toBeUndefined();
    }
  },
);

test('§18.3 results: a string that begins with other letters is not what is sought', () => {
  for (const word of [
    ...['resourc', 'Resource', 'a resource', '\\u0052esource', '\\u0172esource', '\\nresource'],
    ...['\\u4f60\\u597d', 'resourc\\u0045', '\\\\u0072esource', 'reso\\"urce', '\\"resource'],
  ]) {
    expect(scan(`{"a":"${word}","b":["${word}"]}`), word).toHaveLength(2);
  }
  expect(scan('{"a":"resourc"}', { before: '', behind: 'e' })).toHaveLength(1);
});

test('§18.3 results: more values, levels or members than are allowed are left to the parser', () => {
  const ones = (count: number) => JSON.stringify({ a: Array.from({ length: count }, () => 1) });
  expect(scan(ones(RULES.maxValues - 2))).toHaveLength(1);
  expect(scan(ones(RULES.maxValues - 1))).toBeUndefined();
  const nest = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
  expect(scan(nest(SCAN_BOUNDS.levels))).toHaveLength(1);
  expect(scan(nest(SCAN_BOUNDS.levels + 1))).toBeUndefined();
  const spread = (members: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: members }, (_, n) => [`m${n}`, n])));
  expect(scan(spread(SCAN_BOUNDS.members))).toHaveLength(SCAN_BOUNDS.members);
  expect(scan(spread(SCAN_BOUNDS.members + 1))).toBeUndefined();
});

test('§18.3 results: a body of any length is read to its last byte, and one of more than 8 MiB not at all', () => {
  const fill = (length: number) => `{"a":"${'x'.repeat(length - 8)}"}`;
  const page = 65_536;
  for (const pages of [5, 6, 8, 128, 5]) {
    const length = pages * page - 8320;
    for (const by of [-1, 0, ...(pages === 128 ? [] : [1])]) {
      const text = fill(length + by);
      expect(scan(text)).toEqual([{ name: 'a', from: 1, start: 5, end: text.length - 1 }]);
      expect(scan(text.slice(0, -2))).toBeUndefined();
      expect(scan(`${text.slice(0, -2)}\\"`)).toBeUndefined();
      expect(scan(`${text.slice(0, -1)}1`)).toBeUndefined();
    }
  }
  expect(scan(fill(8 * 2 ** 20))).toBeUndefined();
});

test('§18.3 results: numbers are compared as they are written, not as doubles', () => {
  expect(scan('{"a": 12345678901234567890.125 ,"b":-0.0e+12}')).toEqual([
    { name: 'a', from: 1, start: 6, end: 30 },
    { name: 'b', from: 32, start: 36, end: 44 },
  ]);
});

// Other files of this worker would get the modules that met with a refusal.
afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

interface MemorySize {
  readonly initial: number;
  readonly maximum: number;
}

/** What of it is used here: the types of Node.js do not have it. */
declare const WebAssembly: {
  readonly Module: unknown;
  readonly Instance: unknown;
  readonly Memory: new (size: MemorySize) => object;
};

/** A scanner of its own, on an engine that has no memory for workspaces of more pages than these. */
async function openScanner(pagesLeft: number) {
  const refused: number[] = [];
  class Memory extends WebAssembly.Memory {
    constructor(size: MemorySize) {
      if (size.initial > pagesLeft) {
        refused.push(size.initial);
        throw new RangeError('WebAssembly.Memory(): could not allocate memory');
      }
      super(size);
    }
  }
  const { Module, Instance } = WebAssembly;
  vi.stubGlobal('WebAssembly', { Module, Instance, Memory });
  vi.resetModules();
  const fresh = await import('../../../src/platform/scan/scan-json.ts');
  const { joinPieces } = await import('../../../src/platform/pieces.ts');
  const scanLength = (length: number) => {
    const body = Buffer.from(`{"a":"${'x'.repeat(length - 8)}"}`);
    const joined = joinPieces([body.subarray(0, 7), body.subarray(7)]);
    expect(joined.equals(body)).toBe(true);
    return fresh.scanObject(joined, 0, joined.length, RULES)?.members;
  };
  return { scanLength, refused };
}

test.each([
  { pagesLeft: 0, scanned: undefined },
  { pagesLeft: 5, scanned: [{ name: 'a', from: 1, start: 5, end: 2999 }] },
])(
  '§18.3 results: an engine that has memory for $pagesLeft pages is asked for more only once',
  async ({ pagesLeft, scanned }) => {
    const { scanLength, refused } = await openScanner(pagesLeft);
    for (const _ of Array.from({ length: 3 })) {
      expect(scanLength(3000)).toEqual(scanned);
      expect(scanLength(1_000_000)).toBeUndefined();
    }
    expect(refused).toHaveLength(1);
  },
);
