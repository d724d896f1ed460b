// RFC 6570, as far as resource templates need it: {name} matches one segment, {+name} also slashes.
import { DefinitionError } from '../../../core/errors/definition-error.ts';

export interface UriTemplate {
  /** Names of the variables, in order. */
  readonly variables: readonly string[];
  /** The variables of a URI that follows the template, percent-decoded; undefined otherwise. */
  match(uri: string): Readonly<Record<string, string>> | undefined;
}

/** @throws DefinitionError when the template has no variable, or one that is not understood. */
export function parseUriTemplate(template: string): UriTemplate {
  const parts = template.split(/(\{[^{}]*\})/);
  const variables: string[] = [];
  const pattern = parts.map((part, at) => {
    if (at % 2 === 0) {
      if (/[{}]/.test(part)) refuse(template, 'a brace has no partner');
      if (part === '' && at > 0 && at < parts.length - 1) {
        refuse(template, 'text must stand between two variables');
      }
      return part.replace(/[\\^$.*+?()[\]|]/g, '\\$&');
    }
    const [, reserved, name] = /^\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}$/.exec(part) ?? [];
    if (name === undefined) refuse(template, `${part} is not {name} or {+name}`);
    if (variables.includes(name)) refuse(template, `${name} stands there twice`);
    variables.push(name);
    return reserved ? '(.+)' : '([^/?#]+)';
  });
  if (variables.length === 0) refuse(template, 'it has no variable');
  const expression = new RegExp(`^${pattern.join('')}$`, 's');

  return {
    variables,
    match(uri) {
      const values = expression.exec(uri)?.slice(1);
      return values && decoded(variables, values);
    },
  };
}

function decoded(
  names: readonly string[],
  values: readonly string[],
): Readonly<Record<string, string>> | undefined {
  try {
    return Object.fromEntries(
      names.map((name, at) => [name, decodeURIComponent(values[at] ?? '')]),
    );
  } catch {
    return undefined;
  }
}

function refuse(template: string, reason: string): never {
  throw new DefinitionError(`Resource template ${template}: ${reason}.`);
}
