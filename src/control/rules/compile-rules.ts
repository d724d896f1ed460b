import type { AskWhom } from '../../mcp/calls/policy.ts';
import { nameFacts } from './named-facts.ts';
import type { RuleConfig } from './rule-config.ts';
import {
  compileMay,
  compileWho,
  type RuleCaller,
  type RuleDecision,
  type RuledItem,
  readScopes,
} from './rules.ts';
import type { CompileCondition, Condition } from './when/condition.ts';
import type { NamedFacts } from './when/inspect-expression.ts';

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
  address(caller: RuleCaller): RuleDecision;
  /** True if it is about the caller, by `who` alone; what is not known of them counts as fulfilled. */
  mayAddress(caller: RuleCaller): boolean;
  /** Goes by the text that patterns are compared with. */
  isAbout(item: RuledItem, text: string): boolean;
  /**
   * True if it may hold for something whose name begins so, whatever that is. A condition that looks at the tool or its
   * arguments may.
   */
  mayHoldFor(namesBegin: string, item: RuledItem, caller: RuleCaller): boolean;
  /** The same of all that a server may have, resources included. */
  mayAllowSome(namesBegin: string, caller: RuleCaller): boolean;
  /** Works out what its condition needs of the caller. */
  bindCaller(caller: RuleCaller): void;
  /** True if its condition is fulfilled; one that fails is not. */
  holds(item: RuledItem, caller: RuleCaller): boolean;
  /**
   * The same, but that a condition that fails counts as fulfilled: nobody gets around a question by arguments that
   * it cannot be applied to.
   */
  mayHold(item: RuledItem, caller: RuleCaller): boolean;
  /** A number of the arguments at which its condition looks, and which no double holds. */
  findRounded(item: RuledItem): string | undefined;
  /** True if its condition is false whatever is not known: `item` where not all of it is, and the user of `caller`. */
  isRefuted(item: RuledItem | undefined, caller: RuleCaller): boolean;
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
  const mayHoldSomewhere = (item: RuledItem, caller: RuleCaller): boolean =>
    looksAtTool || looksAtArgs || holds(item, caller);
  function hasScope(caller: RuleCaller): boolean {
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
