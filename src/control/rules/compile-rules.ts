import type { PolicyCaller } from '../../mcp/calls/policy.ts';
import type { ItemKind } from '../../mcp/protocol/list-kinds.ts';
import { canBegin, compileGlob } from '../../platform/glob.ts';
import { isObject, isScalar, type JsonObject } from '../../platform/json.ts';
import { nameFacts, readScopes } from './named-facts.ts';
import type { RuleConfig, RuleDecision, RuledItem, RuleSubject } from './rules.ts';
import type { Condition } from './when/condition.ts';

/** One rule by itself. */
export type CompiledRule = ReturnType<typeof compileRule>;

/** The language of conditions is loaded where there is one. */
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

/** Undefined where no rule has a condition. */
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

/** For conditions that look at the user and the client alone. */
const ANYTHING: RuledItem = {
  kind: 'resource',
  name: '',
  server: '',
  annotations: {},
  args: undefined,
};

function compileRule({ who, may, place, ask }: RuleConfig, condition: Condition) {
  const { fits: mayUse, fitsSome, hasKind } = compileMay(may);
  const { fits, scopes } = compileWho(who);
  const { looksAtArgs, looksAtTool, looksAtAnnotations, evaluate } = condition;
  const allowed: RuleDecision = { kind: 'allowed', rule: place };
  // One of them is enough: the client is told the first.
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
    who,
    may,
    place,
    ask,
    looksAtTool,
    /** True if arguments of the call decide, by `holds`. */
    looksAtArgs,
    looksAtAnnotations,
    namedFacts: nameFacts(who, condition.ofUser),
    /** Its decision for the caller on all that it is about, by `who` alone. */
    address(caller: PolicyCaller) {
      if (!fits(caller, false)) return DENIED;
      return hasScope(caller) ? allowed : missing;
    },
    /** True if it is about the caller, by `who` alone; what is not known of them counts as fulfilled. */
    mayAddress: (caller: PolicyCaller) => fits(caller, true) && hasScope(caller),
    /**
     * Goes by the text that patterns are compared with. There is nothing at a read that a condition on arguments could look
     * at.
     */
    isAbout: ({ kind }: RuledItem, text: string) =>
      !(looksAtArgs && kind === 'resource') && mayUse(kind, text),
    /**
     * True if it may hold for something whose name begins so, whatever that is. A condition that looks at the tool or its
     * arguments may.
     */
    mayHoldFor: (namesBegin: string, item: RuledItem, caller: PolicyCaller) =>
      fitsSome(namesBegin) && mayHoldSomewhere(item, caller),
    /** The same of all that a server may have, resources included. */
    mayAllowSome: (namesBegin: string, caller: PolicyCaller) =>
      (hasKind('resource') || fitsSome(namesBegin)) && mayHoldSomewhere(ANYTHING, caller),
    bindCaller: condition.bindCaller,
    /** A number of the arguments at which its condition looks, and which no double holds. */
    findRounded: condition.findRounded,
    /** True if its condition is fulfilled; one that fails is not. */
    holds,
    /**
     * True if its condition is false whatever is not known: `item` where not all of it is, and the user of `caller`. One that fails
     * is not: nobody gets around a question by arguments that it cannot be applied to.
     */
    isRefuted: (item: RuledItem | undefined, caller: PolicyCaller) =>
      evaluate(item, caller) === false,
  };
}

// `who`: the callers that a rule is about.

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
        // An address that may be somebody else's is none.
        !(namesEmail && user.emailVerified === false) &&
        hasClaims(user.claims, claims),
    );
  }
  // Nobody who is not logged in can ask for a scope.
  if (scopes !== undefined) tests.push(({ user }) => user !== undefined);
  if (views !== undefined) tests.push(({ view }) => view !== undefined && views.includes(view));
  const globs = clients?.map(compileGlob);
  // Nobody is meant by nothing.
  const isEmpty = who !== 'everyone' && tests.length === 0 && globs === undefined;

  return {
    /** All but the scopes: those a client can ask for. A client that is not known may be any if `ifUnknown` is true. */
    fits(caller: PolicyCaller, ifUnknown: boolean) {
      if (isEmpty || !tests.every((test) => test(caller))) return false;
      const { clientId } = caller;
      if (globs === undefined) return true;
      return clientId === undefined ? ifUnknown : globs.some((matches) => matches(clientId));
    },
    /** One of them is enough; undefined where none is needed. */
    scopes,
  };
}

/** Each member that the rule names is there, and its own: nothing is inherited, and no name is a path. */
function hasClaims(claims: JsonObject, wanted: JsonObject): boolean {
  const names = Object.keys(wanted);
  return (
    names.length > 0 &&
    names.every((name) => Object.hasOwn(claims, name) && hasValue(claims[name], wanted[name]))
  );
}

/** A claim that is a list has each of its values. */
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

/** `prompt:…` and `resource:…` are about those, all else about tools. */
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
    /** True if one of the patterns fits an item of that kind, by the text that it is compared by. */
    fits: (kind: ItemKind, text: string) =>
      parsed.some((one) => one.kind === kind && one.matches(text)),
    hasKind: (kind: ItemKind) => parsed.some((one) => one.kind === kind),
    /** True if one of them fits some tool or prompt whose name begins so. */
    fitsSome: (namesBegin: string) => ofNames.some(({ glob }) => canBegin(glob, namesBegin)),
  };
}
