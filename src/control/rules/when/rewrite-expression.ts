// Functions that the gateway understands otherwise than the library, put into an expression in place of what stands there; and what
// depends on the caller alone, taken out of it: that is the same for each of ten thousand tools.

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
import { type Expression, type FunctionCall, readPath } from './inspect-expression.ts';

type Kind = Expression['exprKind'];

/** A part of an expression that depends on the caller alone. */
interface CallerPart {
  /** The variable that stands in its place. */
  readonly name: string;
  readonly expression: Expression;
}

/** In place. */
export function rewriteExpression(root: Expression): readonly CallerPart[] {
  rewriteOperators(root);
  return takeCallerParts(root);
}

function rewriteOperators(expression: Expression) {
  for (const part of listParts(expression)) rewriteOperators(part);
  const { exprKind: kind } = expression;
  if (kind.case === 'selectExpr' && kind.value.testOnly && kind.value.operand !== undefined) {
    const { operand, field } = kind.value;
    expression.exprKind = toCall(HAS, [operand, createText(expression.id, field)]);
  } else if (kind.case === 'callExpr') {
    kind.value.function = chooseFunction(kind.value);
  } else if (kind.case === 'comprehensionExpr' && kind.value.iterRange !== undefined) {
    const { iterRange } = kind.value;
    kind.value.iterRange = { ...iterRange, exprKind: toCall(LIST, [iterRange]) };
  }
}

function chooseFunction({ function: name, args: [, container] }: FunctionCall) {
  if (name === '@in' && container !== undefined) {
    // For an argument, the caller could send an object in place of a list, and nothing would be in it.
    const [variable, ...members] = readPath(container) ?? [];
    const mayBeObject =
      variable === 'args' ? members.length === 0 : variable === 'user' || variable === 'tool';
    if (mayBeObject) return IN_ANY;
  }
  return STRICT_OPERATORS.get(name) ?? name;
}

function takeCallerParts(root: Expression): readonly CallerPart[] {
  const taken: CallerPart[] = [];

  function take(expression: Expression): void {
    const { case: kind } = expression.exprKind;
    // A member that is read costs no more than the variable would.
    if ((kind === 'callExpr' || kind === 'comprehensionExpr') && isOfCaller(expression)) {
      const name = `@caller${taken.length}`;
      taken.push({ name, expression: { ...expression } });
      expression.exprKind = {
        case: 'identExpr',
        value: { $typeName: 'cel.expr.Expr.Ident', name },
      };
    } else {
      for (const part of listParts(expression)) take(part);
    }
  }

  take(root);
  return taken;
}

/** True if it names what the caller is, and nothing else. */
function isOfCaller(expression: Expression) {
  const names = [...listNames(expression, [])];
  return names.length > 0 && names.every((name) => name === 'user' || name === 'client');
}

/** Variables that it does not bind itself. */
function* listNames(expression: Expression, bound: readonly string[]): Iterable<string> {
  const { exprKind: kind } = expression;
  if (kind.case === 'identExpr' && !bound.includes(kind.value.name)) yield kind.value.name;
  const inside =
    kind.case === 'comprehensionExpr' ? [...bound, kind.value.iterVar, kind.value.accuVar] : bound;
  for (const part of listParts(expression)) yield* listNames(part, inside);
}

function listParts({ exprKind: kind }: Expression): readonly Expression[] {
  return listPlaces(kind).filter((part) => part !== undefined);
}

function listPlaces(kind: Kind): readonly (Expression | undefined)[] {
  if (kind.case === 'selectExpr') return [kind.value.operand];
  if (kind.case === 'listExpr') return kind.value.elements;
  if (kind.case === 'callExpr') return [kind.value.target, ...kind.value.args];
  if (kind.case !== 'comprehensionExpr') return [];
  const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value;
  return [iterRange, accuInit, loopCondition, loopStep, result];
}

const toCall = (name: string, args: FunctionCall['args']): Kind => ({
  case: 'callExpr',
  value: { $typeName: 'cel.expr.Expr.Call', function: name, args },
});

const createText = (id: bigint, text: string): Expression => ({
  $typeName: 'cel.expr.Expr',
  id,
  exprKind: {
    case: 'constExpr',
    value: { $typeName: 'cel.expr.Constant', constantKind: { case: 'stringValue', value: text } },
  },
});

// `has`, `==`, `!=`, `in` and loops, for values of one kind. As CEL defines them, values of unlike kinds are unequal, and loops and
// `in` look at the names of an object. The caller chooses the kind, and a server may read "true" as true: so `args.force != true`
// would hold for what forces. Here what compares unlike kinds fails, and with it the expression. All numbers are of one kind.

/** Keyed by the operator that each stands for. No expression can name them: `@` is no part of a name. */
const STRICT_OPERATORS: ReadonlyMap<string, string> = new Map([
  ['_==_', '@equals'],
  ['_!=_', '@differs'],
  ['@in', '@among'],
]);

/** True if an object has a member; also one that is `null`, which the library takes for missing. Of what is no object it fails. */
const HAS = '@has';
/** `in` of what is always an object, or chosen by nobody who calls: of objects by their names. */
const IN_ANY = '@contains';
/** The list that a loop goes over. */
const LIST = '@list';

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

const hasKey = (object: { get(key: string): unknown }, name: string) =>
  object.get(name) !== undefined;

/** Undefined where the values are of unlike kinds, or something in them is. */
type Comparison = boolean | undefined;

function expectAlike(comparison: Comparison) {
  if (comparison === undefined) throw new Error('Values of unlike kinds were compared.');
  return comparison;
}

function compare(one: CelValue, other: CelValue): Comparison {
  if (isCelList(one)) return isCelList(other) ? compareLists(one, other) : undefined;
  if (isCelMap(one)) return isCelMap(other) ? compareObjects(one, other) : undefined;
  const [number, otherNumber] = [readNumber(one), readNumber(other)];
  if (number !== undefined && otherNumber !== undefined) {
    // Integers and doubles by their value. What is no number, such as 0.0/0.0, is like nothing.
    return Number.isNaN(number) || Number.isNaN(otherNumber)
      ? undefined
      : !(number < otherNumber) && !(number > otherNumber);
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

function readNumber(value: CelValue) {
  if (typeof value === 'number' || typeof value === 'bigint') return value;
  return isCelUint(value) ? value.value : undefined;
}
