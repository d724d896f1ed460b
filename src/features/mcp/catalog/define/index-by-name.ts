import { DefinitionError } from '../../../../core/errors/definition-error.ts';
import { describeType } from './describe-type.ts';

/**
 * A map of the entries by name, in their order.
 *
 * @throws DefinitionError when two share a name, or what was given are no entries.
 */
export function indexByName<Entry extends { readonly description: object }>(
  kind: string,
  entries: readonly Entry[] = [],
  getName: (entry: Entry) => string,
): ReadonlyMap<string, Entry> {
  if (!Array.isArray(entries)) {
    throw new DefinitionError(
      `createLocalCatalog: the ${kind}s are ${describeType(entries)}; they must be a list.`,
    );
  }
  const byName = new Map<string, Entry>();
  for (const entry of entries) {
    if (typeof entry?.description !== 'object') {
      throw new DefinitionError(
        `createLocalCatalog: a ${kind} in the list was not made by a define function.`,
      );
    }
    const name = getName(entry);
    if (byName.has(name)) {
      throw new DefinitionError(`There are two ${kind}s with the name ${name}.`);
    }
    byName.set(name, entry);
  }
  return byName;
}
