// `has`, `==`, `!=`, `in` and loops, for values of one kind. As CEL defines them, values of unlike kinds are unequal, and loops and
// `in` look at the names of an object. The caller chooses the kind, and a server may read "true" as true: so `args.force != true`
// would hold for what forces. Here what compares unlike kinds fails, and with it the expression. All numbers are of one kind.
import {
  type CelList,
  type CelMap,
  CelScalar,
  type CelValue,
  celFunc,
  isCelList,
  isCelMap,
  isCelUint,
  listType,
  mapType,
} from '@bufbuild/cel';

/** By the operator that each stands for. No expression can name them: `@` is no part of a name. */
export const STRICT_OPERATORS: ReadonlyMap<string, string> = new Map([
  ['_==_', '@equals'],
  ['_!=_', '@differs'],
  ['@in', '@among'],
]);

/** Whether an object has a member; also one that is `null`, which the library takes for missing. Of what is no object it fails. */
export const HAS = '@has';
/** `in` of what is always an object, or chosen by nobody who calls: of objects by their names. */
export const IN_ANY = '@contains';
/** What a loop goes over. */
export const LIST = '@list';

const { BOOL, DYN, STRING } = CelScalar;
const LIST_TYPE = listType(DYN);
const OBJECT = mapType(DYN, DYN);

export const STRICT_FUNCTIONS = [
  celFunc(HAS, [OBJECT, STRING], BOOL, (object, name) => hasKey(object, name)),
  celFunc('@equals', [DYN, DYN], BOOL, (one, other) => expectAlike(compare(one, other))),
  celFunc('@differs', [DYN, DYN], BOOL, (one, other) => !expectAlike(compare(one, other))),
  celFunc('@among', [DYN, LIST_TYPE], BOOL, (value, list) => expectAlike(findIn(value, list))),
  celFunc(IN_ANY, [DYN, LIST_TYPE], BOOL, (value, list) => expectAlike(findIn(value, list))),
  celFunc(IN_ANY, [STRING, OBJECT], BOOL, (name, object) => hasKey(object, name)),
  celFunc(LIST, [LIST_TYPE], LIST_TYPE, (list) => list),
];

const hasKey = (object: { get(key: string): unknown }, name: string): boolean =>
  object.get(name) !== undefined;

/** Undefined where the values are of unlike kinds, or something in them is. */
type Comparison = boolean | undefined;

function expectAlike(comparison: Comparison): boolean {
  if (comparison === undefined) throw new Error('Values of unlike kinds were compared.');
  return comparison;
}

function compare(one: CelValue, other: CelValue): Comparison {
  if (isCelList(one)) return isCelList(other) ? compareLists(one, other) : undefined;
  if (isCelMap(one)) return isCelMap(other) ? compareObjects(one, other) : undefined;
  const [number, otherNumber] = [readNumber(one), readNumber(other)];
  if (number !== undefined && otherNumber !== undefined) {
    return compareNumbers(number, otherNumber);
  }
  if (one === null || other === null) return one === other ? true : undefined;
  const isScalar = typeof one === 'string' || typeof one === 'boolean';
  return isScalar && typeof one === typeof other ? one === other : undefined;
}

/** Also where one is longer: what they have in common must be alike. */
function compareLists(one: CelList, other: CelList): Comparison {
  let isEqual = one.size === other.size;
  for (let index = 0; index < Math.min(one.size, other.size); index += 1) {
    const comparison = compare(one.get(index) ?? null, other.get(index) ?? null);
    if (comparison === undefined) return undefined;
    isEqual &&= comparison;
  }
  return isEqual;
}

function compareObjects(one: CelMap, other: CelMap): Comparison {
  let isEqual = one.size === other.size;
  for (const [name, value] of one) {
    const otherValue = other.get(name);
    const comparison = otherValue === undefined ? false : compare(value, otherValue);
    if (comparison === undefined) return undefined;
    isEqual &&= comparison;
  }
  return isEqual;
}

/** One that is equal is enough; else all must be of its kind. */
function findIn(value: CelValue, list: CelList): Comparison {
  let found: Comparison = false;
  for (const item of list) {
    const comparison = compare(value, item);
    if (comparison === true) return true;
    if (comparison === undefined) found = undefined;
  }
  return found;
}

function readNumber(value: CelValue): number | bigint | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return value;
  return isCelUint(value) ? value.value : undefined;
}

/** Integers and doubles by their value. What is no number, such as 0.0/0.0, is like nothing. */
function compareNumbers(one: number | bigint, other: number | bigint): Comparison {
  if (Number.isNaN(one) || Number.isNaN(other)) return undefined;
  return !(one < other) && !(one > other);
}
