// What somebody may have meant by a name that nothing has.
import { findNearestName } from '../../../../src/platform/nearest-name.ts';
import type { JsonObject } from './json.ts';
import { nameOf } from './state.ts';
import { splitName } from './tool-groups.ts';

/** Also of those that are known by the name that their server has for them: `read_file` for `files__read_file`. */
export function findNearestItem(
  wanted: string,
  items: readonly JsonObject[],
): JsonObject | undefined {
  const byName = new Map(items.map((item) => [splitName(nameOf(item)).ownName, item]));
  for (const item of items) byName.set(nameOf(item), item);
  const nearest = findNearestName(wanted, [...byName.keys()]);
  return nearest === undefined ? undefined : byName.get(nearest);
}
