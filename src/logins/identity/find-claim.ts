// §13.2: a claim by its name, as settings write it.
import { isObject, type JsonObject } from '../../platform/json.ts';

/**
 * The member of exactly this name comes first, also one with dots, such as a URL. Else the name is a path: what stands before
 * its first dot, and the rest within that by the same rule. Undefined where there is none; nothing is inherited.
 */
export function findClaim(claims: JsonObject, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  const dot = name.indexOf('.');
  if (dot === -1) return undefined;
  const head = name.slice(0, dot);
  const inner = Object.hasOwn(claims, head) ? claims[head] : undefined;
  return isObject(inner) ? findClaim(inner, name.slice(dot + 1)) : undefined;
}
