// RFC 6570, as far as resource templates need it: {name} matches within one segment, one {+name}
// also slashes. Matched by looking for the texts between the variables, in linear time: the URI is
// the caller's, and an expression with several variables could be made to run for minutes.
import { DefinitionError } from '../../../errors/gateway-error.ts';

export interface UriTemplate {
  /** Names of the variables, in order. */
  readonly variables: readonly string[];
  /** The variables of a URI that follows the template, percent-decoded; undefined otherwise. */
  match(uri: string): Readonly<Record<string, string>> | undefined;
}

/** The names of its variables, read by the compiler: `service` and `path` of `x://{service}/{+path}`. */
export type VariableIn<Template extends string> = string extends Template
  ? string
  : Template extends `${string}{${infer Expression}}${infer Rest}`
    ? (Expression extends `+${infer Name}` ? Name : Expression) | VariableIn<Rest>
    : never;

interface Variable {
  readonly name: string;
  /** `{+name}`: takes what the others leave, slashes too. */
  readonly isReserved: boolean;
}

/** @throws DefinitionError when the template has no variable, or one that is not understood. */
export function parseUriTemplate(template: string): UriTemplate {
  const parts = template.split(/(\{[^{}]*\})/);
  // Texts stand at even places, variables between them.
  const texts = parts.filter((_part, index) => index % 2 === 0);
  const variables = parts
    .filter((_part, index) => index % 2 === 1)
    .map((part) => parseVariable(template, part));
  checkTemplate(template, texts, variables);
  const names = variables.map(({ name }) => name);

  return {
    variables: names,
    match(uri) {
      const values = matchValues(uri, texts, variables);
      return values && decodeValues(names, values);
    },
  };
}

function parseVariable(template: string, part: string): Variable {
  const [, plus, name] = /^\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}$/.exec(part) ?? [];
  if (name === undefined) return failTemplate(template, `${part} is not {name} or {+name}`);
  return { name, isReserved: plus === '+' };
}

function checkTemplate(
  template: string,
  texts: readonly string[],
  variables: readonly Variable[],
): void {
  const names = variables.map(({ name }) => name);
  if (names.length === 0) failTemplate(template, 'it has no variable');
  if (new Set(names).size < names.length) failTemplate(template, 'a variable appears twice');
  if (texts.some((text) => /[{}]/.test(text))) failTemplate(template, 'a brace is not matched');
  if (texts.slice(1, -1).includes(''))
    failTemplate(template, 'there must be text between two variables');
  if (variables.filter(({ isReserved }) => isReserved).length > 1) {
    failTemplate(template, 'it may have only one {+name}');
  }
}

/** From the left up to `{+name}`, from the right down to it; each variable as short as can be. */
function matchValues(
  uri: string,
  texts: readonly string[],
  variables: readonly Variable[],
): readonly string[] | undefined {
  const prefix = texts[0] ?? '';
  const suffix = texts.at(-1) ?? '';
  let start = prefix.length;
  let end = uri.length - suffix.length;
  if (start >= end || !uri.startsWith(prefix) || !uri.endsWith(suffix)) return undefined;
  const left: string[] = [];
  const right: string[] = [];
  const reserved = variables.findIndex(({ isReserved }) => isReserved);
  const pivot = reserved === -1 ? variables.length - 1 : reserved;

  for (const text of texts.slice(1, pivot + 1)) {
    const position = uri.indexOf(text, start + 1);
    if (position === -1 || position >= end) return undefined;
    left.push(uri.slice(start, position));
    start = position + text.length;
  }
  for (const text of texts.slice(pivot + 1, -1).reverse()) {
    const position = uri.lastIndexOf(text, end - text.length - 1);
    if (position <= start) return undefined;
    right.unshift(uri.slice(position + text.length, end));
    end = position;
  }
  if (start >= end) return undefined;
  const values = [...left, uri.slice(start, end), ...right];
  return values.every((value, index) => index === reserved || !/[/?#]/.test(value))
    ? values
    : undefined;
}

function decodeValues(
  names: readonly string[],
  values: readonly string[],
): Readonly<Record<string, string>> | undefined {
  try {
    return Object.fromEntries(
      names.map((name, index) => [name, decodeURIComponent(values[index] ?? '')]),
    );
  } catch {
    return undefined;
  }
}

function failTemplate(template: string, reason: string): never {
  throw new DefinitionError(`Resource template ${template}: ${reason}.`);
}
