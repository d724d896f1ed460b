// §27.2: the canonical form that approvals are bound to, by the vectors that RFC 8785 gives.
import { expect, test } from 'vitest';
import { hasHalfCharacters, toCanonicalJson } from '../../../src/platform/json.ts';

// RFC 8785, Appendix B: the bits of an IEEE 754 double, and how it is written.
test.each([
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
])('§27.2 RFC 8785 Appendix B: the number with the bits %s is written %s', (bits, written) => {
  expect(toCanonicalJson(Buffer.from(bits, 'hex').readDoubleBE())).toBe(written);
});

test('§27.2 RFC 8785 §3.2.3: members are sorted at each level, lists are not, and no character is normalized', () => {
  const value = JSON.parse(
    '{"1":{"f":{"f":"hi","F":5},"\\n":56.0},"10":{},"":"empty","a":{},"111":[{"e":"yes","E":"no"}],"A":{},"u":"A\\u030a"}',
  );
  expect(toCanonicalJson(value)).toBe(
    '{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{},"u":"A\u030a"}',
  );
});

test.each([
  ['"\\ud800"', true],
  ['{"\\udc00":1}', true],
  ['"\\\\ud800"', false],
  ['"\\\\\\ud800"', true],
  ['"\u{1f600}"', false],
])('§27.2 RFC 8785 §3.2.2.2: a half of a character in %s is found: %s', (json, expected) => {
  expect(hasHalfCharacters(toCanonicalJson(JSON.parse(json)))).toBe(expected);
});
