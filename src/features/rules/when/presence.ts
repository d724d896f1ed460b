// `has(x.y)` and `'y' in x`, as CEL defines them. The library takes a member that is `null` for one that is missing, and
// finds none in what is no object; so `!has(args.force)` would hold for arguments that the server reads otherwise.
import { CelScalar, celFunc, mapType } from '@bufbuild/cel';
import type { Expression } from './expression.ts';

/** No expression can name it: `@` is no part of a name. */
const HAS = '@has';
const OBJECT = mapType(CelScalar.DYN, CelScalar.DYN);

/** For anything but an object `HAS` fails. */
export const PRESENCE_FUNCTIONS = [
  celFunc(HAS, [OBJECT, CelScalar.STRING], CelScalar.BOOL, (object, name) => hasKey(object, name)),
  celFunc('@in', [CelScalar.STRING, OBJECT], CelScalar.BOOL, (name, object) =>
    hasKey(object, name),
  ),
];

const hasKey = (object: { get(key: string): unknown }, name: string): boolean =>
  object.get(name) !== undefined;

/** Has the expression ask by `PRESENCE_FUNCTIONS`, in place. */
export function replaceHas(expression: Expression | undefined): void {
  if (expression === undefined) return;
  const { exprKind: kind } = expression;
  for (const part of listParts(kind)) replaceHas(part);
  if (kind.case !== 'selectExpr' || !kind.value.testOnly || kind.value.operand === undefined)
    return;
  const { operand, field } = kind.value;
  expression.exprKind = {
    case: 'callExpr',
    value: {
      $typeName: 'cel.expr.Expr.Call',
      function: HAS,
      args: [operand, createText(expression.id, field)],
    },
  };
}

function listParts(kind: Expression['exprKind']): readonly (Expression | undefined)[] {
  if (kind.case === 'selectExpr') return [kind.value.operand];
  if (kind.case === 'listExpr') return kind.value.elements;
  if (kind.case === 'callExpr') return [kind.value.target, ...kind.value.args];
  if (kind.case !== 'comprehensionExpr') return [];
  const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value;
  return [iterRange, accuInit, loopCondition, loopStep, result];
}

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
