// What the gateway understands otherwise than the library, put into an expression in place of what stands there; and what
// depends on the caller alone, taken out of it: that is the same for each of ten thousand tools.
import { type Expression, type FunctionCall, readPath } from './expression.ts';
import { HAS, IN_ANY, LIST, STRICT_OPERATORS } from './strict-functions.ts';

type Kind = Expression['exprKind'];

/** A part of an expression that depends on the caller alone. */
export interface CallerPart {
  /** The variable that stands in its place. */
  readonly name: string;
  readonly expression: Expression;
}

/** In place. */
export function rewriteExpression(root: Expression): readonly CallerPart[] {
  rewriteOperators(root);
  return takeCallerParts(root);
}

function rewriteOperators(expression: Expression): void {
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

function chooseFunction({ function: name, args: [, container] }: FunctionCall): string {
  if (name === '@in' && container !== undefined && mayBeObject(container)) return IN_ANY;
  return STRICT_OPERATORS.get(name) ?? name;
}

/** Of an argument, the caller could send an object in place of a list, and nothing would be in it. */
function mayBeObject(container: Expression): boolean {
  const [variable, ...members] = readPath(container) ?? [];
  return variable === 'args' ? members.length === 0 : variable === 'user' || variable === 'tool';
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

/** Whether it names what the caller is, and nothing else. */
function isOfCaller(expression: Expression): boolean {
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
    value: {
      $typeName: 'cel.expr.Constant',
      constantKind: { case: 'stringValue', value: text },
    },
  },
});
