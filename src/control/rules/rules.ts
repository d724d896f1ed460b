// §18.5: what rules are to the rest of the gateway: their part of the configuration file, and their decisions.
import type { AskWhom, PolicyCaller, PolicyItem } from '../../mcp/calls/policy.ts';
import type { Turns } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';

/** The part of the file about who may use what. */
export interface RulesConfig {
  /** Without any, everybody may use everything. */
  readonly rules: readonly RuleConfig[];
  /** `"rules": "everyone"`: that there are none is meant. */
  readonly meansNoRules: boolean;
  /** `"allowFewerProtections": true`: that the file protects less than the one before is meant. */
  readonly allowsFewer?: true;
}

/** Lets some callers use something. Rules only add up. */
export interface RuleConfig {
  /** The callers that it is about; all that is named must hold. */
  readonly who: 'everyone' | RuleSubject;
  /** A CEL expression that must hold, too. */
  readonly when: string | undefined;
  /** Globs over names as clients see them: of tools, or after `prompt:` or `resource:`. */
  readonly may: readonly string[];
  /** The one who has to agree to a call before it runs (§27); undefined where nobody has to. */
  readonly ask?: AskWhom | undefined;
  /** Its place, for messages: `postern.yaml:12, rules[0]`. */
  readonly place: string;
}

export interface RuleSubject {
  /** One of them is enough, as in each of these lists. */
  readonly groups?: readonly string[];
  readonly scopes?: readonly string[];
  /** A claim's exact value, or a list of those that it may have. */
  readonly claims?: JsonObject;
  /** Globs over OAuth client IDs. */
  readonly clients?: readonly string[];
  /** Names of views (§25). */
  readonly views?: readonly string[];
}

/** One predicate decides list, call, get, read, completion, templates and subscriptions. */
export interface Rules {
  /** Facts of users that the rules name. */
  readonly namedFacts: NamedFacts;
  /** Before many items are decided on: works out what follows from the caller alone, and gives way to others. */
  prepareFor(caller: PolicyCaller, work: Turns): Promise<void>;
  /** At once, and without effect. */
  decide(item: RuledItem, caller: PolicyCaller): RuleDecision;
  /** See `Policy`. */
  mayAllowSome(namesBegin: string, caller: PolicyCaller): boolean;
  /** The same rules, which know nothing of callers of these. */
  withOwnMemory(): Rules;
}

/** An item to be seen, or used with these arguments. */
export interface RuledItem extends PolicyItem {
  /**
   * The arguments of a call: `{}` where it has none. Undefined in lists, where a rule that looks at them counts as fulfilled.
   * Resources have none: such a rule allows none.
   */
  readonly args: JsonObject | undefined;
}

export type RuleDecision =
  | {
      readonly kind: 'allowed';
      /** `place` of the rule that says so; absent without rules. */
      readonly rule?: string;
      /** In a list: arguments of the call decide whether it is. */
      readonly isByArgs?: boolean;
      /** The one who has to agree to a call before it runs (§27). */
      readonly ask?: AskWhom;
      /** `place` of the rule that asks. */
      readonly askRule?: string;
      /** In a list: arguments of the call decide whether it is asked about. */
      readonly isAskedByArgs?: boolean;
    }
  /**
   * For this caller it does not exist. `rounded` is a number of the arguments at which a rule would have to look, and which no
   * double holds.
   */
  | { readonly kind: 'denied'; readonly rounded?: string }
  /** Only these scopes are missing: it is listed, and its call is 403 `insufficient_scope`. */
  | { readonly kind: 'scopes_missing'; readonly scopes: readonly string[]; readonly rule?: string };

/** The part of a variable that is looked at: all of it, or these members and what of each. */
export type Lookup = 'all' | Map<string, Lookup>;

/** Members of `user` that rules name. A rule that names all claims names none of them. */
export type NamedFacts = ReadonlyMap<string, Lookup>;
