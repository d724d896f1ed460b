// Texts of JSON as anybody may write them: numbers of all forms, spaces, escapes.
import fc from 'fast-check';

export const anyNumberText = fc.oneof(
  fc.constantFrom('0', '7', '-1', '0.1', '1e400', '-0', '1.0', '-0.0e-0', '1E5', '1e+21', '5e-324'),
  fc.constantFrom('7205759403792793601', '0.12345678901234567891', '123456789.123456789', '1e-7'),
  fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.oneof(fc.nat().map(String), fc.bigInt({ min: 0n }).map(String)),
      fc.oneof(fc.constant(''), fc.stringMatching(/^\.[0-9]{1,25}$/)),
      fc.oneof(fc.constant(''), fc.stringMatching(/^[eE][+-]?[0-9]{1,3}$/)),
    )
    .map((parts) => parts.join('')),
);
const anySpace = fc.constantFrom('', '', '', ' ', '\n', '\t \r');
const anyName = fc.constantFrom('"a"', '"b"', '"__proto__"', '"\\u0061"', '""', '"1.0"', '"a\\"}"');
const anyString = fc.constantFrom('"1.0"', '"\\\\"', '"\\"-0\\""', '"[{,"', '"]}:€"', '"\\/"');
const join = (items: readonly string[], space: string) => items.join(`${space},${space}`);

interface Member {
  readonly name: string;
  readonly text: string;
}

/** `isUnique` where no object has a member twice. */
export const createAnyJsonText = (isUnique: boolean) =>
  fc.letrec<{ value: string; member: Member }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      anyNumberText,
      anyString,
      fc.constantFrom('null', 'true', 'false', '{}', '[ ]'),
      fc
        .tuple(fc.array(tie('value'), { maxLength: 4 }), anySpace)
        .map(([items, space]) => `[${space}${join(items, space)}${space}]`),
      fc
        .tuple(
          isUnique
            ? fc.uniqueArray(tie('member'), { maxLength: 4, selector: ({ name }) => name })
            : fc.array(tie('member'), { maxLength: 4 }),
          anySpace,
        )
        .map(([members, space]) => {
          const texts = members.map(({ text }) => text);
          return `{${space}${join(texts, space)}${space}}`;
        }),
    ),
    member: fc.tuple(anyName, anySpace, tie('value')).map(([name, space, value]) => ({
      name: JSON.parse(name),
      text: `${name}${space}:${space}${value}`,
    })),
  })).value;
