// §18.5: `when`, an expression of the Common Expression Language (CEL).

import { type CelInput, celEnv, isCelError, parse, plan } from '@bufbuild/cel';
import { RE2JS } from '@bufbuild/re2';
import type { PolicyCaller } from '../../../mcp/calls/policy.ts';
import { readExact } from '../../../platform/noted-json.ts';
import { quote } from '../../../platform/text.ts';
import { readScopes } from '../named-facts.ts';
import type { Lookup, RuledItem } from '../rules.ts';
import {
  type Bounds,
  type CelValue,
  inspectExpression,
  lookUp,
  RoundedNumber,
  type VariableName,
} from './inspect-expression.ts';
import { rewriteExpression, STRICT_FUNCTIONS } from './rewrite-expression.ts';

export interface Condition {
  readonly looksAtArgs: boolean;
  readonly looksAtTool: boolean;
  /** Computes what depends on the caller only; otherwise `evaluate` does so for the first item. */
  bindCaller(caller: PolicyCaller): void;
  /** The used part of `user`; undefined if none. */
  readonly ofUser: Lookup | undefined;
  /** True if it uses the server's annotations of a tool. */
  readonly looksAtAnnotations: boolean;
  /**
   * Undefined if the expression fails, or is neither `true` nor `false`. Without `item`, or a user, parts that use them fail, so
   * `false` holds for any of them.
   */
  evaluate(item: RuledItem | undefined, caller: PolicyCaller): boolean | undefined;
  /** A number among the arguments that it uses, but no double can represent, so that it fails. */
  findRounded(item: RuledItem): string | undefined;
}

/** Maximum length of an expression, in characters. */
const MAX_LENGTH = 2000;
/** Size of a compiled regular expression, and characters of a matched text. */
const MAX_PATTERN_STEPS = 250;
const MAX_MATCHED_LENGTH = 1024;

/** Bounds: callers choose arguments, servers choose annotations; claims are signed by the provider. */
const FROM_ANYBODY: Bounds = { values: 500, characters: 16_384 };
const FROM_PROVIDER: Bounds = { values: 5000, characters: 131_072 };

/** The condition, or its problems. */
export function compileCondition(
  text: string,
): Condition | { readonly problems: readonly string[] } {
  if (text.length > MAX_LENGTH)
    return { problems: [`It is too long. An expression has at most ${MAX_LENGTH} characters.`] };
  const parsed = parseExpression(text);
  if (typeof parsed === 'string') return { problems: [parsed] };
  const { lookups, patterns, problems } = inspectExpression(parsed.expr);
  const matchers = new Map(patterns.map((pattern) => [pattern, compilePattern(pattern)]));
  const found = [...problems, ...[...matchers.values()].filter((it) => typeof it === 'string')];
  if (found.length > 0) return { problems: found };

  const callerParts = rewriteExpression(parsed.expr);
  const re2 = {
    compile(pattern: string) {
      const matcher = matchers.get(pattern);
      if (matcher === undefined || typeof matcher === 'string')
        throw new Error('A pattern that was not written.');
      return matcher;
    },
  };
  const env = celEnv({ re2, funcs: STRICT_FUNCTIONS });
  const runPlan = plan(env, parsed);
  const entries = [...lookups];
  const ofTool = lookups.get('tool');
  const ofItem = entries.filter(([name]) => !isOfCaller(name));
  const ofArgs = entries.filter(([name]) => name === 'args');
  const ofCaller = entries.filter(([name]) => isOfCaller(name));
  const plannedParts = callerParts.map(({ name, expression }) => ({
    name,
    evaluate: plan(env, expression),
  }));
  /** Caches what depends on the caller only, within one request. */
  const known = new WeakMap<PolicyCaller, Bindings | undefined>();

  function bindCaller(caller: PolicyCaller) {
    if (!known.has(caller)) known.set(caller, computeBindings(caller));
    return known.get(caller);
  }

  /** Undefined if the value exceeds the bounds. */
  function computeBindings(caller: PolicyCaller): Bindings | undefined {
    try {
      const variables = bindVariables(ofCaller, undefined, caller);
      const bound: Record<string, CelInput> = { ...variables };
      for (const { name, evaluate } of plannedParts) {
        const value = evaluate(variables);
        // A part that failed is left unbound: expressions that use it fail.
        if (!isCelError(value)) bound[name] = value;
      }
      return bound;
    } catch {
      return undefined;
    }
  }

  return {
    looksAtArgs: lookups.has('args'),
    looksAtTool: ofTool !== undefined,
    ofUser: lookups.get('user'),
    looksAtAnnotations: ofTool === 'all' || ofTool?.has('annotations') === true,
    bindCaller: (caller) => void bindCaller(caller),
    findRounded(item) {
      try {
        bindVariables(ofArgs, item, NOBODY);
        return undefined;
      } catch (error) {
        return error instanceof RoundedNumber ? error.text : undefined;
      }
    },
    evaluate(item, caller) {
      try {
        const boundCaller = bindCaller(caller);
        if (boundCaller === undefined) return undefined;
        const bound = { ...boundCaller, ...bindVariables(ofItem, item, caller) };
        const value = runPlan(bound);
        return typeof value === 'boolean' ? value : undefined;
      } catch {
        return undefined;
      }
    },
  };
}

const NOBODY: PolicyCaller = { user: undefined, clientId: undefined };

type Bindings = Readonly<Record<string, CelInput>>;

const isOfCaller = (name: VariableName) => name === 'user' || name === 'client';

/** The problem of invalid CEL. */
function parseExpression(text: string) {
  try {
    return parse(text);
  } catch (error) {
    const message = error instanceof Error ? error.message : '';
    const [, line, column, reason] = /^<input>:(\d+):(\d+): (.*)$/s.exec(message) ?? [];
    return reason === undefined
      ? 'It is not CEL, or it is nested too deeply.'
      : `It is not CEL: line ${line}, character ${column}: ${reason}.`;
  }
}

interface Matcher {
  test(text: string): boolean;
}

/** RE2: linear time for any pattern. The problem of an invalid pattern. */
function compilePattern(pattern: string): Matcher | string {
  try {
    const compiled = RE2JS.compile(pattern);
    if (compiled.re2().prog.numInst() > MAX_PATTERN_STEPS)
      return `The pattern ${quote(pattern)} is too large. Repeat fewer times.`;
    return {
      test(text) {
        if (text.length > MAX_MATCHED_LENGTH) throw new Error('A text that is too long to match.');
        return compiled.test(text);
      },
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'it is not understood';
    return `The pattern ${quote(pattern)} is not an RE2 regular expression: ${reason}.`;
  }
}

function bindVariables(
  lookups: readonly (readonly [VariableName, Lookup])[],
  item: RuledItem | undefined,
  caller: PolicyCaller,
): Readonly<Record<string, CelValue>> {
  const bound: Record<string, CelValue> = {};
  for (const [name, lookup] of lookups) {
    const { read, bounds } = VARIABLES[name];
    const value = read(item, caller);
    // Unbound variables make the expression fail.
    if (value !== undefined) bound[name] = lookUp(value, lookup, bounds);
  }
  return bound;
}

const VARIABLES: Readonly<
  Record<
    VariableName,
    {
      readonly bounds: Bounds;
      read(item: RuledItem | undefined, caller: PolicyCaller): object | undefined;
    }
  >
> = {
  user: {
    bounds: FROM_PROVIDER,
    read(_item, { user }) {
      if (user === undefined) return undefined;
      const { sub, email, emailVerified: email_verified, name, groups, claims } = user;
      // An unverified address may belong to another user.
      const own = email_verified === false ? undefined : email;
      const scopes = readScopes(user);
      return { sub, email: own, email_verified, name, groups, scopes, claims };
    },
  },
  client: {
    bounds: FROM_ANYBODY,
    read: (_item, { clientId }) => (clientId === undefined ? undefined : { id: clientId }),
  },
  tool: {
    bounds: FROM_ANYBODY,
    read: (item) =>
      item?.kind === 'tool'
        ? { name: item.name, server: item.server, annotations: item.annotations }
        : undefined,
  },
  args: { bounds: FROM_ANYBODY, read: (item) => item?.args && readExact(item.args) },
};
