// §5.11: claims that the settings name, wherever the provider has them.
import type { JsonObject } from '../platform/json.ts';
import { isObject, isStringArray } from '../platform/json.ts';

/** A name as it stands first, with its dots or as a URL; then a path, such as `realm_access.roles`. */
export function findClaim(claims: JsonObject, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let found: unknown = claims;
  for (const step of name.split('.')) {
    if (!isObject(found) || !Object.hasOwn(found, step)) return undefined;
    found = found[step];
  }
  return found;
}

/** Of the claim that has them; one group may stand there as a text. */
export function readGroups(claims: JsonObject, groupsClaim: string): readonly string[] | undefined {
  const found = findClaim(claims, groupsClaim);
  if (typeof found === 'string' && found !== '') return [found];
  return isStringArray(found) ? found : undefined;
}
