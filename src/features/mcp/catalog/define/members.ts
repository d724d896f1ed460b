// What an author may write into a definition: the compiler knows from the types, JavaScript does not.
import { DefinitionError } from '../../../../core/errors/definition-error.ts';
import { isObject } from '../../../../core/json.ts';
import { findNearestName } from '../../../../core/nearest-name.ts';
import { kindOf } from './kind.ts';

/** `text` and `function` are required, `any` is not, or is checked elsewhere. */
export type Members = Readonly<Record<string, 'text' | 'function' | 'any'>>;

const MUST_BE = { text: 'a string that is not empty', function: 'a function' } as const;

/**
 * @param kind What is defined: `Tool`.
 * @param nameIn The member by which messages name it.
 * @throws DefinitionError when a member is missing, or there is one that is not known.
 */
export function checkMembers(
  kind: string,
  given: unknown,
  members: Members,
  nameIn: string | undefined = undefined,
): void {
  if (!isObject(given)) {
    throw new DefinitionError(`${kind}: there is ${kindOf(given)}; it must be an object.`);
  }
  const name = nameIn === undefined ? undefined : given[nameIn];
  const owner = typeof name === 'string' && name !== '' ? `${kind} ${name}` : kind;
  const known = Object.keys(members);
  const unknown = Object.keys(given).filter((member) => !known.includes(member));

  for (const [member, must] of Object.entries(members)) {
    if (must === 'any' || isFit(given[member], must)) continue;
    const value = given[member];
    const state = value === undefined ? 'missing' : value === '' ? 'empty' : kindOf(value);
    const near = value === undefined ? findNearestName(member, unknown) : undefined;
    const hint = near === undefined ? '' : ` There is "${near}": is it misspelt?`;
    throw new DefinitionError(
      `${owner}: ${member} is ${state}; it must be ${MUST_BE[must]}.${hint}`,
    );
  }
  const [first] = unknown;
  if (first === undefined) return;
  const near = findNearestName(first, known);
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`;
  throw new DefinitionError(
    `${owner}: there is no member "${first}".${hint} Allowed are ${known.join(', ')}.`,
  );
}

const isFit = (value: unknown, must: 'text' | 'function'): boolean =>
  must === 'function' ? typeof value === 'function' : typeof value === 'string' && value !== '';
