// §18.5: inspects an expression: the variables that it uses, and its cost. A rule affects all callers: no expression may take
// longer than its length times the size of its input.

import type { parse } from '@bufbuild/cel';
import { JsonNumber } from '../../../platform/exact-json.ts';
import { isObject } from '../../../platform/json.ts';
import { suggestName } from '../../../platform/nearest-name.ts';
import { quote } from '../../../platform/text.ts';
import type { Lookup } from '../rules.ts';

interface Inspection {
  /** The used part of each variable. */
  readonly lookups: ReadonlyMap<VariableName, Lookup>;
  /** Regular expressions that strings are matched with. */
  readonly patterns: readonly string[];
  /** Problems of the expression. */
  readonly problems: readonly string[];
}

export type VariableName = keyof typeof VARIABLES;

/** Known members; `undefined` if the caller or a server names them. */
const VARIABLES = {
  user: ['sub', 'email', 'email_verified', 'name', 'groups', 'scopes', 'claims'],
  client: ['id'],
  tool: ['name', 'server', 'annotations'],
  args: undefined,
} as const;

/** Functions that are linear in their operands. */
const FUNCTIONS = new Set([
  ...['_&&_', '_||_', '!_', '_?_:_', '@not_strictly_false', '_[_]', '@in'],
  ...['_==_', '_!=_', '_<_', '_<=_', '_>_', '_>=_', '_+_', '_-_', '_*_', '_/_', '_%_', '-_'],
  ...['size', 'contains', 'startsWith', 'endsWith', 'matches'],
  ...['string', 'int', 'double', 'bool'],
]);
const FUNCTION_NAMES = [...FUNCTIONS, 'has', 'all', 'exists', 'exists_one'].filter(
  (name) => /^\w+$/.test(name) && !name.startsWith('_'),
);

const MAX_DEPTH = 64;

interface Place {
  /** The variables of the loop around it. */
  readonly loop: readonly string[] | undefined;
  readonly depth: number;
}

export function inspectExpression(root: Expression): Inspection {
  const lookups = new Map<VariableName, Lookup>();
  const patterns: string[] = [];
  const problems = new Set<string>();

  function visit(expression: Expression | undefined, place: Place) {
    if (expression === undefined) return;
    if (place.depth > MAX_DEPTH) {
      problems.add(`It is nested more than ${MAX_DEPTH} levels deep.`);
      return;
    }
    const path = readPath(expression);
    if (path === undefined) visitParts(expression, { ...place, depth: place.depth + 1 });
    else visitPath(path, place);
  }

  function visitParts({ exprKind: kind }: Expression, place: Place) {
    if (kind.case === 'selectExpr') visit(kind.value.operand, place);
    else if (kind.case === 'listExpr') visitAll(kind.value.elements, place);
    else if (kind.case === 'callExpr') visitCall(kind.value, place);
    else if (kind.case === 'comprehensionExpr') visitLoop(kind.value, place);
    else if (kind.case !== 'constExpr')
      problems.add('It builds an object, which conditions cannot.');
  }

  function visitAll(parts: readonly (Expression | undefined)[], place: Place) {
    for (const part of parts) visit(part, place);
  }

  function visitPath([name, ...members]: Path, { loop }: Place): void {
    if (loop?.includes(name)) return;
    if (!isVariable(name)) {
      const known = Object.keys(VARIABLES);
      problems.add(
        `${quote(name)} is unknown.${suggestName(name, known)} There is ${known.join(', ')}.`,
      );
      return;
    }
    if (loop !== undefined && name !== 'user')
      problems.add(
        `It uses ${name} inside all, exists or exists_one. Only their variable, and user, can be used there.`,
      );
    const [member] = members;
    const known: readonly string[] | undefined = VARIABLES[name];
    if (known !== undefined && member !== undefined && !known.includes(member))
      problems.add(
        `${name} has no member ${quote(member)}.${suggestName(member, known)} It has ${known.join(', ')}.`,
      );
    lookups.set(name, addPath(lookups.get(name), members));
  }

  function visitCall(call: FunctionCall, place: Place): void {
    if (!FUNCTIONS.has(call.function)) {
      problems.add(describeUnknownFunction(call));
      return;
    }
    const { target, args } = call;
    if (call.function === 'matches') {
      const pattern = args[0] && readText(args[0]);
      if (target === undefined || args.length !== 1 || pattern === undefined) {
        problems.add("matches needs a literal pattern: text.matches('^a+$').");
      } else patterns.push(pattern);
    }
    visitAll([target, ...args], place);
  }

  function visitLoop(loop: Loop, place: Place): void {
    if (loop.accuInit?.exprKind.case !== 'constExpr') {
      problems.add('It uses map or filter. Use all, exists or exists_one.');
      return;
    }
    if (place.loop !== undefined) {
      problems.add('It nests all, exists or exists_one inside one another.');
      return;
    }
    if (isVariable(loop.iterVar)) problems.add(`${loop.iterVar} cannot be the variable of a loop.`);
    visit(loop.iterRange, place);
    const inside = { ...place, loop: [loop.iterVar, loop.accuVar] };
    visitAll([loop.loopCondition, loop.loopStep, loop.result], inside);
  }

  visit(root, { loop: undefined, depth: 0 });
  return { lookups, patterns, problems: [...problems] };
}

function addPath(lookup: Lookup | undefined, [member, ...rest]: readonly string[]): Lookup {
  if (member === undefined || lookup === 'all') return 'all';
  const members = lookup ?? new Map<string, Lookup>();
  return members.set(member, addPath(members.get(member), rest));
}

const isVariable = (name: string): name is VariableName => Object.hasOwn(VARIABLES, name);

function describeUnknownFunction(call: FunctionCall) {
  const name = call.function;
  const known = FUNCTION_NAMES.join(', ');
  if (FUNCTION_NAMES.includes(name)) return `${name} is not used correctly.`;
  return `${name} cannot be used in conditions.${suggestName(name, FUNCTION_NAMES)} There is ${known}.`;
}

// Values of CEL for an expression: only the used parts, within bounds.

/** Bounds on the input of an expression. */
export interface Bounds {
  /** Objects, lists, strings, numbers and so on. */
  readonly values: number;
  /** In all strings and names together. */
  readonly characters: number;
}

/** Converts JSON for CEL: objects have own members only. */
export type CelValue = string | number | boolean | null | CelValue[] | Map<string, CelValue>;

/** @throws Error beyond the bounds. */
export function lookUp(value: unknown, lookup: Lookup, bounds: Bounds): CelValue {
  let values = bounds.values;
  let characters = bounds.characters;

  function countText(text: string) {
    characters -= text.length;
    if (characters < 0) failBounds();
  }

  function select(source: unknown, wanted: Lookup) {
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
    if (source instanceof JsonNumber) {
      if (source.isDouble()) return source.valueOf();
      // A server that parses it exactly would see a different number than the rule does.
      throw new RoundedNumber(source.text);
    }
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

export class RoundedNumber extends Error {
  override readonly name = 'RoundedNumber';
  readonly text: string;

  constructor(text: string) {
    super('A number that no double holds.');
    this.text = text;
  }
}

function failBounds(): never {
  throw new Error('More than an expression may look at.');
}

// The syntax tree of an expression, as far as it is read here.

export type Expression = NonNullable<ReturnType<typeof parse>['expr']>;

type Kind = Expression['exprKind'];
export type FunctionCall = Extract<Kind, { readonly case: 'callExpr' }>['value'];
type Loop = Extract<Kind, { readonly case: 'comprehensionExpr' }>['value'];

type Path = readonly [name: string, ...members: string[]];

/** Reads `user.claims['a b']` as `user`, `claims`, `a b`; undefined for other expressions. */
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

function readText({ exprKind: kind }: Expression) {
  const constant = kind.case === 'constExpr' ? kind.value.constantKind : undefined;
  return constant?.case === 'stringValue' ? constant.value : undefined;
}
