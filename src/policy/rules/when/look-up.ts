// What an expression looks at, as values of CEL: only that, and only so much.
import { isObject } from '../../../platform/json.ts';
import type { Lookup } from './inspect-expression.ts';

/** How much may be looked at. */
export interface Bounds {
  /** Objects, lists, texts, numbers and so on. */
  readonly values: number;
  /** In all texts and names together. */
  readonly characters: number;
}

/** What a value of JSON becomes: an object only has the members that it has itself. */
export type CelValue = string | number | boolean | null | CelValue[] | Map<string, CelValue>;

/** @throws Error where there is more than the bounds allow. */
export function lookUp(value: unknown, lookup: Lookup, bounds: Bounds): CelValue {
  let values = bounds.values;
  let characters = bounds.characters;

  function countText(text: string): void {
    characters -= text.length;
    if (characters < 0) failBounds();
  }

  function select(source: unknown, wanted: Lookup): CelValue {
    if (wanted === 'all' || !isObject(source)) return convert(source);
    const members = new Map<string, CelValue>();
    for (const [name, inside] of wanted) {
      if (!Object.hasOwn(source, name)) continue;
      const member = source[name];
      if (member !== undefined) members.set(name, select(member, inside));
    }
    return members;
  }

  function convert(source: unknown): CelValue {
    values -= 1;
    if (values < 0) failBounds();
    if (typeof source === 'string') {
      countText(source);
      return source;
    }
    // Of 1e400 a server would get null, which nothing was decided about.
    if (typeof source === 'number' && !Number.isFinite(source)) failBounds();
    if (typeof source === 'number' || typeof source === 'boolean' || source === null) return source;
    if (Array.isArray(source)) return source.map(convert);
    if (!isObject(source)) throw new Error('A value that JSON does not have.');
    const members = new Map<string, CelValue>();
    for (const [name, member] of Object.entries(source)) {
      countText(name);
      members.set(name, convert(member));
    }
    return members;
  }

  return select(value, lookup);
}

function failBounds(): never {
  throw new Error('More than an expression may look at.');
}
