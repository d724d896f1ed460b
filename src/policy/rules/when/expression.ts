// The syntax tree of an expression, as far as it is read here.
import type { parse } from '@bufbuild/cel';

export type Expression = NonNullable<ReturnType<typeof parse>['expr']>;

type Kind = Expression['exprKind'];
export type FunctionCall = Extract<Kind, { readonly case: 'callExpr' }>['value'];
export type Loop = Extract<Kind, { readonly case: 'comprehensionExpr' }>['value'];

/** A variable, and members of it. */
export type Path = readonly [name: string, ...members: string[]];

/** `user.claims['a b']` as `user`, `claims`, `a b`; undefined for what is no such path. */
export function readPath({ exprKind: kind }: Expression): Path | undefined {
  if (kind.case === 'identExpr') return [kind.value.name];
  if (kind.case === 'selectExpr') return extendPath(kind.value.operand, kind.value.field);
  if (kind.case !== 'callExpr' || kind.value.function !== '_[_]') return undefined;
  const [operand, index] = kind.value.args;
  const member = index && readText(index);
  return member === undefined ? undefined : extendPath(operand, member);
}

function extendPath(operand: Expression | undefined, member: string): Path | undefined {
  const path = operand && readPath(operand);
  return path && [...path, member];
}

export function readText({ exprKind: kind }: Expression): string | undefined {
  const constant = kind.case === 'constExpr' ? kind.value.constantKind : undefined;
  return constant?.case === 'stringValue' ? constant.value : undefined;
}
