// Texts, numbers and flags, by the same rules as settings.

import { isConnectionHeader } from '../../../platform/http-client/connection.ts';
import type { JsonObject } from '../../../platform/json.ts';
import { quote } from '../../../platform/text.ts';
import { anyText, describeInvalid, flag, integer, oneOf, type Rule } from '../../rules.ts';
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

interface ScalarOptions {
  /** JSON Schema of what `rule` takes. */
  readonly schema: JsonObject;
  /** Never shown, not even when it is wrong. */
  readonly isSecret?: true | undefined;
}

/** A value that holds a variable is a text, whatever it becomes. */
const WITH_VARIABLE = { type: 'string', pattern: '\\$\\{' } as const;

export const text = <T>(rule: Rule<T>, options: ScalarOptions): Shape<T> =>
  scalar('string', rule, options);

/** Any text that has no NUL, which no program could be given. */
export const freeText = ({ isSecret }: { readonly isSecret?: true } = {}): Shape<string> =>
  scalar(
    'string',
    {
      parse: (given) => (given.includes('\0') ? undefined : anyText.parse(given)),
      allowed: 'text',
    },
    { schema: { type: 'string' }, isSecret },
  );

/** One of these texts. */
export const choice = <const T extends string>(...values: T[]): Shape<T> =>
  text(oneOf(...values), { schema: { enum: values } });

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
): Shape<T> {
  const isFreeText = Object.keys(schema).length === 1 && type === 'string';

  function read(node: FileNode, place: FilePlace): T | undefined {
    const given = node.kind === 'scalar' ? node.value : undefined;
    const isExpanded = typeof given === 'string' && hasVariable(given);
    const isShown = !isSecret;
    if (!isExpanded && typeof given !== type)
      return report(place, node.line, describeWrongType(node, type, rule, isShown));
    const expanded = isExpanded
      ? expandVariables(given, place.context.env)
      : ({ kind: 'text', text: String(given) } as const);
    if (expanded.kind === 'problem') return report(place, node.line, expanded.message);
    const value = rule.parse(expanded.text);
    if (value !== undefined) return value;
    const quoted = quote(given, 100);
    const visible = isExpanded ? `What ${quoted} stands for` : quoted;
    const shown = isShown ? visible : 'The value given (not shown)';
    return report(place, node.line, describeInvalid(shown, rule, expanded.text));
  }

  return {
    schema: isFreeText ? schema : { anyOf: [schema, WITH_VARIABLE] },
    ...(isSecret && { isSecret }),
    read,
  };
}

function describeWrongType(
  node: FileNode,
  type: 'string' | 'number' | 'boolean',
  { allowed, parse }: Rule<unknown>,
  isShown: boolean,
): string {
  const given = node.kind === 'scalar' ? node.value : undefined;
  if (given === null) return `There is no value. It must be ${allowed}. Otherwise leave it out.`;
  // If quotes would not help, the message says what is allowed.
  if (type === 'string' && given !== undefined && parse(String(given)) !== undefined)
    return `This is a ${typeof given}, and must be text: put it in double quotes.`;
  const shown =
    given === undefined ? nameKind(node) : isShown ? quote(given, 100) : 'The value (not shown)';
  return `${shown} is not valid. It must be ${allowed}${type === 'string' ? '' : ', without quotes'}.`;
}

// Other programs expand `$TOKEN`, too. Here it is sent as it is, and a server that refuses it does not say why.

/** The whole value, or all after the scheme of a header. */
const BARE = /^(?:[A-Za-z]+ )?\$[A-Za-z_][A-Za-z0-9_]*$/;

/** Does not repeat it: it may be a secret that begins so. */
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

// Headers that the file gives to each request to a server or to a guard.

/** RFC 9110 §5.6.2. */
const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** RFC 9110 §5.5: visible characters, spaces and tabs; no line breaks, which would begin another header. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const headerValue = text(
  {
    parse: (given) => (VALUE.test(given) ? given.trim() : undefined),
    allowed: 'one line of Latin-1 text',
    explain: (given) =>
      /[\r\n]/.test(given) ? 'It contains a line break, perhaps at its end.' : undefined,
  },
  { schema: { type: 'string' }, isSecret: true },
);

/** Names are read in lower case. `ownNames` are those that Postern itself gives to such a request, in lower case. */
export function requestHeaders(
  ownNames: ReadonlySet<string>,
): Shape<Readonly<Record<string, string>>> {
  const named = record(warnOfBareVariable(headerValue), {
    allowed: `an object of headers, such as { "Authorization": "Bearer \${TOKEN}" }`,
    names: { pattern: NAME.source },
    // Never repeats a name that is none: somebody may have put a token there.
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
