// Shapes for strings, numbers and flags, with the same rules as settings.

import { MAX_GLOB_LENGTH } from '../../../platform/glob.ts';
import { isConnectionHeader } from '../../../platform/http-client/http-pool.ts';
import { quote } from '../../../platform/text.ts';
import {
  describeInvalid,
  flag,
  integer,
  matching,
  oneOf,
  type Rule,
  textWith,
} from '../../rules.ts';
import { expandVariables, hasVariable } from '../expand.ts';
import type { FileNode } from '../syntax/read-syntax.ts';
import {
  createRecordShape,
  type FilePlace,
  nameKind,
  record,
  report,
  type Shape,
} from './shape.ts';

/** `schema` is the JSON Schema of the values that the rule accepts. A secret is never shown, even if it is invalid. */
type ScalarOptions = Pick<Shape<unknown>, 'schema' | 'isSecret'>;

/** A value with a variable is a string in the file, whatever it expands to. */
const WITH_VARIABLE = { type: 'string', pattern: '\\$\\{' } as const;

/** The part of a text rule that JSON Schema can express. */
interface TextLimits extends Pick<ScalarOptions, 'isSecret'> {
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
}

export const text = <T>(rule: Rule<T>, { isSecret, ...limits }: TextLimits = {}): Shape<T> =>
  scalar('string', rule, { schema: { type: 'string', ...limits }, ...(isSecret && { isSecret }) });

/** A text that matches the pattern, both in this process and in JSON Schema. */
export const patternText = (pattern: string, allowed: string): Shape<string> =>
  text(matching(new RegExp(pattern), allowed), { pattern });

/** A text that is not blank; surrounding whitespace is trimmed. */
export const nonBlank = (allowed: string, isSecret?: true): Shape<string> =>
  text(
    { parse: (given) => given.trim() || undefined, allowed },
    { pattern: '\\S', ...(isSecret && { isSecret }) },
  );

/** A glob pattern for names; `meaning` says which names, and which wildcard matches any text. */
export const globText = (meaning: string): Shape<string> =>
  text(
    textWith(
      (given) => given !== '' && given.length <= MAX_GLOB_LENGTH,
      `1 to ${MAX_GLOB_LENGTH} characters: ${meaning}`,
    ),
    { minLength: 1, maxLength: MAX_GLOB_LENGTH },
  );

/** Any text without NUL, which cannot be passed to a program. */
export const freeText = (options: { readonly isSecret?: true } = {}): Shape<string> =>
  text(
    textWith((given) => !given.includes('\0'), 'text'),
    options,
  );

/** One of these strings. */
export const choice = <const T extends string>(...values: T[]): Shape<T> =>
  scalar('string', oneOf(...values), { schema: { enum: values } });

export const wholeNumber = (
  minimum: number,
  maximum: number,
  rule = integer(minimum, maximum),
): Shape<number> => scalar('number', rule, { schema: { type: 'integer', minimum, maximum } });

export const trueOrFalse: Shape<boolean> = scalar('boolean', flag, { schema: { type: 'boolean' } });

function scalar<T>(
  type: 'string' | 'number' | 'boolean',
  rule: Rule<T>,
  { schema, isSecret }: ScalarOptions,
) {
  const isFreeText = Object.keys(schema).length === 1 && type === 'string';

  function read(node: FileNode, place: FilePlace) {
    const refuse = (message: string) => report(place, node.line, message);
    const given = node.kind === 'scalar' ? node.value : undefined;
    const isExpanded = typeof given === 'string' && hasVariable(given);
    if (!isExpanded && typeof given !== type) {
      const { allowed } = rule;
      if (given === null)
        return refuse(`There is no value. It must be ${allowed}. Otherwise leave it out.`);
      // Suggests quotes only if the quoted value would be valid.
      if (type === 'string' && given !== undefined && rule.parse(String(given)) !== undefined)
        return refuse(`This is a ${typeof given}, and must be text: put it in double quotes.`);
      const visible = isSecret ? 'The value (not shown)' : quote(given, 100);
      const shown = given === undefined ? nameKind(node) : visible;
      const unquoted = type === 'string' ? '' : ', without quotes';
      return refuse(`${shown} is not valid. It must be ${allowed}${unquoted}.`);
    }
    const expanded = isExpanded
      ? expandVariables(given, place.context.env)
      : ({ kind: 'text', text: String(given) } as const);
    if (expanded.kind === 'problem') return refuse(expanded.message);
    const value = rule.parse(expanded.text);
    if (value !== undefined) return value;
    const quoted = quote(given, 100);
    const visible = isExpanded ? `The value of ${quoted}` : quoted;
    const shown = isSecret ? 'The value given (not shown)' : visible;
    return refuse(describeInvalid(shown, rule, expanded.text));
  }

  return {
    schema: isFreeText ? schema : { anyOf: [schema, WITH_VARIABLE] },
    ...(isSecret && { isSecret }),
    read,
  };
}

// Other programs also expand `$TOKEN`. Postern sends it unchanged, and a server that rejects it does not say why.

/** Matches a whole value, or everything after the scheme in a header. */
const BARE = /^(?:[A-Za-z]+ )?\$[A-Za-z_][A-Za-z0-9_]*$/;

/** The warning does not repeat the value, which may be a secret that begins with `$`. */
const WARNING =
  'This is no variable without braces, and stays as it is. If one is meant, write ${NAME}.';

export const isBareVariable = (given: string): boolean => BARE.test(given);

export const warnOfBareVariable = (shape: Shape<string>): Shape<string> => ({
  ...shape,
  read(node, place) {
    const isBare = node.kind === 'scalar' && isBareVariable(String(node.value));
    if (isBare) place.context.warn(node.line, place.path, WARNING);
    return shape.read(node, place);
  },
});

// Headers in the configuration file, for every request to a server or a guard.

/** RFC 9110 §5.6.2. */
const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** RFC 9110 §5.5: visible characters, spaces and tabs. A line break would begin another header. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const headerValue = text(
  {
    parse: (given) => (VALUE.test(given) ? given.trim() : undefined),
    allowed: 'one line of Latin-1 text',
    explain: (given) =>
      /[\r\n]/.test(given) ? 'It contains a line break, perhaps at its end.' : undefined,
  },
  { isSecret: true },
);

/** Names are converted to lower case. `ownNames` are the headers, in lower case, that Postern itself sets on such requests. */
export function requestHeaders(
  ownNames: ReadonlySet<string>,
): Shape<Readonly<Record<string, string>>> {
  const named = record(warnOfBareVariable(headerValue), {
    allowed: `an object of headers, such as { "Authorization": "Bearer \${TOKEN}" }`,
    names: { pattern: NAME.source },
    // Never repeats an invalid name, since it may be a misplaced token.
    checkName(name) {
      if (!NAME.test(name))
        return 'A header’s name consists of letters, digits and hyphens, without a colon or a space.';
      return ownNames.has(name.toLowerCase()) || isConnectionHeader(name)
        ? `The header ${name} cannot be set: it belongs to the connection, or Postern sets it itself.`
        : undefined;
    },
  });

  return {
    schema: named.schema,
    read(node, place) {
      const given = named.read(node, place);
      if (given === undefined) return undefined;
      const headers = Object.entries(given).map(
        ([name, value]) => [name.toLowerCase(), value] as const,
      );
      const names = headers.map(([name]) => name).filter((name) => NAME.test(name));
      const twice = names.find((name, index) => names.indexOf(name) !== index);
      if (twice !== undefined)
        report(place, node.line, `The header ${twice} is given twice: case does not count.`);
      return createRecordShape(headers);
    },
  };
}
