import type { AskWhom, PolicyCaller } from '../../mcp/calls/policy.ts';
import type { NamedFacts, RuleConfig, RuleDecision, RuledItem } from '../../mcp/calls/rules.ts';
import type { ItemKind } from '../../mcp/protocol/list-kinds.ts';
import { canBegin, compileGlob, type MatchGlob } from '../../platform/glob.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { nameFacts, readScopes } from './named-facts.ts';
import type { CompileCondition, Condition } from './when/condition.ts';

/** One rule by itself. */
export interface CompiledRule {
  readonly looksAtTool: boolean;
  /** True if arguments of the call decide, by `holds`. */
  readonly looksAtArgs: boolean;
  readonly looksAtAnnotations: boolean;
  /** Facts of the user that `who` and `when` name. */
  readonly namedFacts: NamedFacts;
  readonly place: string;
  readonly ask: AskWhom | undefined;
  /** Its decision for the caller on all that it is about, by `who` alone. */
  address(caller: PolicyCaller): RuleDecision;
  /** True if it is about the caller, by `who` alone; what is not known of them counts as fulfilled. */
  mayAddress(caller: PolicyCaller): boolean;
  /** Goes by the text that patterns are compared with. */
  isAbout(item: RuledItem, text: string): boolean;
  /**
   * True if it may hold for something whose name begins so, whatever that is. A condition that looks at the tool or its
   * arguments may.
   */
  mayHoldFor(namesBegin: string, item: RuledItem, caller: PolicyCaller): boolean;
  /** The same of all that a server may have, resources included. */
  mayAllowSome(namesBegin: string, caller: PolicyCaller): boolean;
  /** Works out what its condition needs of the caller. */
  bindCaller(caller: PolicyCaller): void;
  /** True if its condition is fulfilled; one that fails is not. */
  holds(item: RuledItem, caller: PolicyCaller): boolean;
  /**
   * The same, but that a condition that fails counts as fulfilled: nobody gets around a question by arguments that
   * it cannot be applied to.
   */
  mayHold(item: RuledItem, caller: PolicyCaller): boolean;
  /** A number of the arguments at which its condition looks, and which no double holds. */
  findRounded(item: RuledItem): string | undefined;
  /** True if its condition is false whatever is not known: `item` where not all of it is, and the user of `caller`. */
  isRefuted(item: RuledItem | undefined, caller: PolicyCaller): boolean;
}

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
export async function loadConditions(
  configs: readonly RuleConfig[],
): Promise<CompileCondition | undefined> {
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

function compileRule({ who, may, place, ask }: RuleConfig, condition: Condition): CompiledRule {
  const { fits: mayUse, fitsSome, hasResources } = compileMay(may);
  const { fits, mayFit, scopes } = compileWho(who);
  const allowed: RuleDecision = { kind: 'allowed', rule: place };
  // One of them is enough: the client is told the first.
  const missing: RuleDecision = {
    kind: 'scopes_missing',
    scopes: scopes?.slice(0, 1) ?? [],
    rule: place,
  };
  const { looksAtArgs, looksAtTool, bindCaller, evaluate } = condition;
  const holds: CompiledRule['holds'] = (item, caller) => evaluate(item, caller) === true;
  const mayHoldSomewhere = (item: RuledItem, caller: PolicyCaller): boolean =>
    looksAtTool || looksAtArgs || holds(item, caller);
  function hasScope(caller: PolicyCaller): boolean {
    if (scopes === undefined) return true;
    const granted = readScopes(caller.user);
    return scopes.some((scope) => granted.includes(scope));
  }

  return {
    place,
    ask,
    looksAtArgs,
    looksAtTool,
    looksAtAnnotations: condition.looksAtAnnotations,
    namedFacts: nameFacts(who, condition.ofUser),
    isRefuted: (item, caller) => evaluate(item, caller) === false,
    address(caller) {
      if (!fits(caller)) return DENIED;
      return hasScope(caller) ? allowed : missing;
    },
    mayAddress: (caller) => mayFit(caller) && hasScope(caller),
    // There is nothing at a read that a condition on arguments could look at.
    isAbout: ({ kind }, text) => !(looksAtArgs && kind === 'resource') && mayUse(kind, text),
    mayHoldFor: (namesBegin, item, caller) =>
      fitsSome(namesBegin) && mayHoldSomewhere(item, caller),
    mayAllowSome: (namesBegin, caller) =>
      (hasResources || fitsSome(namesBegin)) && mayHoldSomewhere(ANYTHING, caller),
    bindCaller,
    findRounded: condition.findRounded,
    holds,
    mayHold: (item, caller) => evaluate(item, caller) !== false,
  };
}

// `who`: the callers that a rule is about.

export interface Subject {
  /** All but the scopes: those a client can ask for. */
  fits(caller: PolicyCaller): boolean;
  /** The same, but that a client that is not known may be any. */
  mayFit(caller: PolicyCaller): boolean;
  /** One of them is enough; undefined where none is needed. */
  readonly scopes: readonly string[] | undefined;
}

export function compileWho(who: RuleConfig['who']): Subject {
  if (who === 'everyone') return { fits: () => true, mayFit: () => true, scopes: undefined };
  const { groups, scopes, claims, clients, views } = who;
  const tests: ((caller: PolicyCaller) => boolean)[] = [];
  if (groups !== undefined) {
    tests.push(({ user }) => user?.groups?.some((group) => groups.includes(group)) === true);
  }
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
  const isEmpty = tests.length === 0 && globs === undefined;
  const fitsRest = (caller: PolicyCaller) => !isEmpty && tests.every((test) => test(caller));

  function fitsClient({ clientId }: PolicyCaller, ifUnknown: boolean): boolean {
    if (globs === undefined) return true;
    return clientId === undefined ? ifUnknown : globs.some((matches) => matches(clientId));
  }

  return {
    fits: (caller) => fitsRest(caller) && fitsClient(caller, false),
    mayFit: (caller) => fitsRest(caller) && fitsClient(caller, true),
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

export const isScalar = (value: unknown): boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

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
  const parsed = patterns.map(parsePattern);
  const globsOf = (wanted: ItemKind): readonly MatchGlob[] =>
    parsed.filter(({ kind }) => kind === wanted).map(({ glob }) => compileGlob(glob));
  const globs: Readonly<Record<ItemKind, readonly MatchGlob[]>> = {
    tool: globsOf('tool'),
    prompt: globsOf('prompt'),
    resource: globsOf('resource'),
  };

  const ofNames = parsed.filter(({ kind }) => kind !== 'resource');
  return {
    /** True if one of the patterns fits an item of that kind, by the text that it is compared by. */
    fits: (kind: ItemKind, text: string) => globs[kind].some((matches) => matches(text)),
    /** True if one of them is about resources. */
    hasResources: ofNames.length < parsed.length,
    /** True if one of them fits some tool or prompt whose name begins so. */
    fitsSome: (namesBegin: string) => ofNames.some(({ glob }) => canBegin(glob, namesBegin)),
  };
}
