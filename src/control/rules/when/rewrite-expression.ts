// Rewrites expressions: replaces functions whose semantics differ from the library's, and extracts parts that depend on the caller
// only, which are evaluated once for thousands of tools.

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

/** A part of an expression that depends on the caller only. */
interface CallerPart {
  /** The variable that replaces it. */
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
    // Callers could send an object instead of a list, which would contain nothing.
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
    // Reading a member costs no more than a variable.
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

/** True if it uses only facts about the caller. */
function isOfCaller(expression: Expression) {
  const names = [...listNames(expression, [])];
  return names.length > 0 && names.every((name) => name === 'user' || name === 'client');
}

/** Free variables. */
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

// `has`, `==`, `!=`, `in` and loops for values of one kind. In CEL, values of different kinds are unequal, and loops and `in` use
// the names of an object. The caller chooses the kind, and a server may read "true" as true: `args.force != true` would be true for
// a call that forces. Here comparing different kinds fails, and with it the expression. All numbers are one kind.

/** By the replaced operator. Expressions cannot name them: `@` is not allowed in names. */
const STRICT_OPERATORS: ReadonlyMap<string, string> = new Map([
  ['_==_', '@equals'],
  ['_!=_', '@differs'],
  ['@in', '@among'],
]);

/** True if an object has a member, including `null`, which the library considers missing. Fails for other values. */
const HAS = '@has';
/** `in` for values that are always objects, or not chosen by callers: names of objects count. */
const IN_ANY = '@contains';
/** The list of a loop. */
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

/** Undefined for different kinds, nested values included. */
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
    // Integers and doubles by value. NaN equals nothing.
    return Number.isNaN(number) || Number.isNaN(otherNumber)
      ? undefined
      : !(number < otherNumber) && !(number > otherNumber);
  }
  if (one === null || other === null) return one === other ? true : undefined;
  const isScalar = typeof one === 'string' || typeof one === 'boolean';
  return isScalar && typeof one === typeof other ? one === other : undefined;
}

/** Even if one is longer: the common part must be of the same kinds. */
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

/** One equal entry is enough; otherwise all must be of its kind. */
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
