import type { PolicyCaller } from '../../mcp/calls/policy.ts';
import type { ItemKind } from '../../mcp/protocol/list-kinds.ts';
import { canBegin, compileGlob } from '../../platform/glob.ts';
import { isObject, isScalar, type JsonObject } from '../../platform/json.ts';
import { nameFacts, readScopes } from './named-facts.ts';
import type { RuleConfig, RuleDecision, RuledItem, RuleSubject } from './rules.ts';
import type { Condition } from './when/condition.ts';

/** A single compiled rule. */
export type CompiledRule = ReturnType<typeof compileRule>;

/** Loads the condition language only if a rule has a condition. */
export async function compileRules(
  configs: readonly RuleConfig[],
): Promise<readonly CompiledRule[]> {
  const compileCondition = await loadConditions(configs);
  return configs.map((config) => {
    if (config.when === undefined) return compileRule(config, ALWAYS);
    const condition = compileCondition?.(config.when);
    return compileRule(
      config,
      condition === undefined || 'problems' in condition ? NEVER : condition,
    );
  });
}

/** Undefined without conditions. */
export async function loadConditions(configs: readonly RuleConfig[]) {
  if (configs.every(({ when }) => when === undefined)) return undefined;
  return (await import('./when/condition.ts')).compileCondition;
}

const NOTHING = {
  looksAtArgs: false,
  looksAtTool: false,
  looksAtAnnotations: false,
  ofUser: undefined,
  bindCaller: () => {},
  findRounded: () => undefined,
};
const ALWAYS: Condition = { ...NOTHING, evaluate: () => true };
const NEVER: Condition = { ...NOTHING, evaluate: () => undefined };

const DENIED: RuleDecision = { kind: 'denied' };

/** Replaces the item in conditions about user and client only. */
const ANYTHING: RuledItem = {
  kind: 'resource',
  name: '',
  server: '',
  annotations: {},
  args: undefined,
};

function compileRule({ who, may, place, ask }: RuleConfig, condition: Condition) {
  const { fits: mayUse, ...names } = compileMay(may);
  const { fitsSome, hasKind } = names;
  const { fits, scopes } = compileWho(who);
  const { looksAtArgs, looksAtTool, looksAtAnnotations, evaluate } = condition;
  const allowed: RuleDecision = { kind: 'allowed', rule: place };
  // One is enough: the client only learns about the first.
  const missing: RuleDecision = {
    kind: 'scopes_missing',
    scopes: scopes?.slice(0, 1) ?? [],
    rule: place,
  };
  const holds = (item: RuledItem, caller: PolicyCaller) => evaluate(item, caller) === true;
  const mayHoldSomewhere = (item: RuledItem, caller: PolicyCaller) =>
    looksAtTool || looksAtArgs || holds(item, caller);
  function hasScope(caller: PolicyCaller) {
    if (scopes === undefined) return true;
    const granted = readScopes(caller.user);
    return scopes.some((scope) => granted.includes(scope));
  }

  return {
    ...names,
    who,
    place,
    ask,
    looksAtTool,
    /** True if the decision depends on the call's arguments, via `holds`. */
    looksAtArgs,
    looksAtAnnotations,
    namedFacts: nameFacts(who, condition.ofUser),
    /** The decision for the caller, based on `who` only. */
    address(caller: PolicyCaller) {
      if (!fits(caller, false)) return DENIED;
      return hasScope(caller) ? allowed : missing;
    },
    /** True if it applies to the caller, based on `who` only; unknown facts count as matching. */
    mayAddress: (caller: PolicyCaller) => fits(caller, true) && hasScope(caller),
    /**
     * Matches the text that patterns are compared with. Reads have no arguments: conditions on them never match.
     */
    isAbout: ({ kind }: RuledItem, text: string) =>
      !(looksAtArgs && kind === 'resource') && mayUse(kind, text),
    /**
     * True if it may match any item with this prefix. A condition on the tool or its arguments may.
     */
    mayHoldFor: (namesBegin: string, item: RuledItem, caller: PolicyCaller) =>
      fitsSome(namesBegin) && mayHoldSomewhere(item, caller),
    /** The same for any item of a server, resources included. */
    mayAllowSome: (namesBegin: string, caller: PolicyCaller) =>
      (hasKind('resource') || fitsSome(namesBegin)) && mayHoldSomewhere(ANYTHING, caller),
    bindCaller: condition.bindCaller,
    /** A number among the arguments that its condition uses, but no double can represent. */
    findRounded: condition.findRounded,
    /** True if its condition is true; an error counts as false. */
    holds,
    /**
     * True if its condition is false for any value of unknown facts: of `item` if incomplete, and of the user of `caller`. An error
     * counts as not false: arguments that break a condition must not avoid an approval.
     */
    isRefuted: (item: RuledItem | undefined, caller: PolicyCaller) =>
      evaluate(item, caller) === false,
  };
}

// `who`: the callers that a rule applies to.

export function compileWho(who: RuleConfig['who']) {
  const { groups, scopes, claims, clients, views }: RuleSubject = who === 'everyone' ? {} : who;
  const tests: ((caller: PolicyCaller) => boolean)[] = [];
  if (groups !== undefined)
    tests.push(({ user }) => user?.groups?.some((group) => groups.includes(group)) === true);
  if (claims !== undefined) {
    const namesEmail = Object.hasOwn(claims, 'email');
    tests.push(
      ({ user }) =>
        user !== undefined &&
        // An unverified address may belong to another user.
        !(namesEmail && user.emailVerified === false) &&
        hasClaims(user.claims, claims),
    );
  }
  // Anonymous callers cannot request scopes.
  if (scopes !== undefined) tests.push(({ user }) => user !== undefined);
  if (views !== undefined) tests.push(({ view }) => view !== undefined && views.includes(view));
  const globs = clients?.map(compileGlob);
  // Fails closed: an empty `who` matches no caller.
  const isEmpty = who !== 'everyone' && tests.length === 0 && globs === undefined;

  return {
    /** All members but scopes, which a client can request. An unknown client matches if `ifUnknown` is true. */
    fits(caller: PolicyCaller, ifUnknown: boolean) {
      if (isEmpty || !tests.every((test) => test(caller))) return false;
      const { clientId } = caller;
      if (globs === undefined) return true;
      return clientId === undefined ? ifUnknown : globs.some((matches) => matches(clientId));
    },
    /** One is enough; undefined if none is needed. */
    scopes,
  };
}

/** Compares own members only: nothing is inherited, and names are not paths. */
function hasClaims(claims: JsonObject, wanted: JsonObject): boolean {
  const names = Object.keys(wanted);
  return (
    names.length > 0 &&
    names.every((name) => Object.hasOwn(claims, name) && hasValue(claims[name], wanted[name]))
  );
}

/** If the claim is a list, one matching element is enough. */
function hasValue(claim: unknown, wanted: unknown): boolean {
  if (isObject(wanted)) return isObject(claim) && hasClaims(claim, wanted);
  const allowed: readonly unknown[] = Array.isArray(wanted) ? wanted : [wanted];
  const values: readonly unknown[] = Array.isArray(claim) ? claim : [claim];
  return values.some((value) => isScalar(value) && allowed.includes(value));
}

// `may`: the patterns of a rule.

interface Pattern {
  readonly kind: ItemKind;
  readonly glob: string;
}

/** `prompt:…` and `resource:…`; all other patterns apply to tools. */
export function parsePattern(pattern: string): Pattern {
  const [, kind, glob] = /^(prompt|resource):(.*)$/s.exec(pattern) ?? [];
  if (glob === undefined) return { kind: 'tool', glob: pattern };
  return { kind: kind === 'prompt' ? 'prompt' : 'resource', glob };
}

export function compileMay(patterns: readonly string[]) {
  const parsed = patterns.map(parsePattern).map(({ kind, glob }) => ({
    kind,
    glob,
    matches: compileGlob(glob),
  }));
  const ofNames = parsed.filter(({ kind }) => kind !== 'resource');
  return {
    /** True if a pattern matches the text of an item of that kind. */
    fits: (kind: ItemKind, text: string) =>
      parsed.some((one) => one.kind === kind && one.matches(text)),
    hasKind: (kind: ItemKind) => parsed.some((one) => one.kind === kind),
    /** True if a pattern may match a tool or prompt with this prefix. */
    fitsSome: (namesBegin: string) => ofNames.some(({ glob }) => canBegin(glob, namesBegin)),
  };
}
