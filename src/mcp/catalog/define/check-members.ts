// Checks what an author writes into a definition: the compiler knows from the types, JavaScript does not.
import { DefinitionError } from '../../../errors/gateway-error.ts';
import { isObject } from '../../../platform/json.ts';
import { findNearestName } from '../../../platform/nearest-name.ts';

/** `text` and `function` are required, `any` is not, or is checked elsewhere. */
type Members = Readonly<Record<string, 'text' | 'function' | 'any'>>;

const TYPE_NAMES = { text: 'a string that is not empty', function: 'a function' } as const;

/**
 * @param kind What is defined: `Tool`.
 * @param nameMember The member by which messages name it.
 * @throws DefinitionError when a member is missing, or there is one that is not known.
 */
export function checkMembers(
  kind: string,
  definition: unknown,
  members: Members,
  nameMember: string | undefined = undefined,
): void {
  if (!isObject(definition)) {
    throw new DefinitionError(
      `${kind}: the definition is ${describeType(definition)}; it must be an object.`,
    );
  }
  const name = nameMember === undefined ? undefined : definition[nameMember];
  const owner = typeof name === 'string' && name !== '' ? `${kind} ${name}` : kind;
  const known = Object.keys(members);
  const unknown = Object.keys(definition).filter((member) => !known.includes(member));

  for (const [member, type] of Object.entries(members)) {
    if (type === 'any' || hasType(definition[member], type)) continue;
    const value = definition[member];
    const state = value === undefined ? 'missing' : value === '' ? 'empty' : describeType(value);
    const near = value === undefined ? findNearestName(member, unknown) : undefined;
    const hint = near === undefined ? '' : ` There is "${near}": did you misspell it?`;
    throw new DefinitionError(
      `${owner}: ${member} is ${state}; it must be ${TYPE_NAMES[type]}.${hint}`,
    );
  }
  const [first] = unknown;
  if (first === undefined) return;
  const near = findNearestName(first, known);
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`;
  throw new DefinitionError(
    `${owner}: unknown member "${first}".${hint} Allowed: ${known.join(', ')}.`,
  );
}

const hasType = (value: unknown, type: 'text' | 'function'): boolean =>
  type === 'function' ? typeof value === 'function' : typeof value === 'string' && value !== '';

/** Names the type of a value, in words for authors: `a string`, `nothing`. */
export function describeType(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
