// §18.5: the interface of rules to the rest of the gateway: their part of the configuration file, and their decisions.
import type { AskWhom, PolicyCaller, PolicyItem } from '../../mcp/calls/policy.ts';
import type { Turns } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';

/** The rules in the configuration file. */
export interface RulesConfig {
  /** Without any, all callers may use everything. */
  readonly rules: readonly RuleConfig[];
  /** `"rules": "everyone"`: explicitly none. */
  readonly meansNoRules: boolean;
  /** `"allowFewerProtections": true`: the file may protect less than the previous one. */
  readonly allowsFewer?: true;
}

/** Allows some callers to use some items. Rules only ever add permissions. */
export interface RuleConfig {
  /** The callers; all members must match. */
  readonly who: 'everyone' | RuleSubject;
  /** A CEL expression that must also be true. */
  readonly when: string | undefined;
  /** Globs for names as clients see them: of tools, or after `prompt:` or `resource:`. */
  readonly may: readonly string[];
  /** The approver of calls (§27); undefined without one. */
  readonly ask?: AskWhom | undefined;
  /** Its position, for messages: `postern.yaml:12, rules[0]`. */
  readonly place: string;
}

export interface RuleSubject {
  /** One is enough, as in each of these lists. */
  readonly groups?: readonly string[];
  readonly scopes?: readonly string[];
  /** The exact value of a claim, or a list of possible values. */
  readonly claims?: JsonObject;
  /** Globs for OAuth client IDs. */
  readonly clients?: readonly string[];
  /** View names (§25). */
  readonly views?: readonly string[];
}

/** One predicate decides list, call, get, read, completion, templates and subscriptions. */
export interface Rules {
  /** Facts of users that the rules name. */
  readonly namedFacts: NamedFacts;
  /** Called before many items are decided: computes what depends on the caller only, yielding to other work. */
  prepareFor(caller: PolicyCaller, work: Turns): Promise<void>;
  /** Synchronous and without effect. */
  decide(item: RuledItem, caller: PolicyCaller): RuleDecision;
  /** See `Policy`. */
  findMemory(caller: PolicyCaller): object;
  /** See `Policy`. */
  mayAllowSome(namesBegin: string, caller: PolicyCaller): boolean;
  /** The same rules with an empty cache. */
  withOwnMemory(): Rules;
}

/** An item to be seen, or used with these arguments. */
export interface RuledItem extends PolicyItem {
  /**
   * The arguments of a call, `{}` without any. Undefined in lists, where conditions on arguments count as true. Resources have
   * none: such conditions allow none.
   */
  readonly args: JsonObject | undefined;
}

export type RuleDecision =
  | {
      readonly kind: 'allowed';
      /** The `place` of the rule that allows it; absent without rules. */
      readonly rule?: string;
      /** In a list: depends on the arguments of the call. */
      readonly isByArgs?: boolean;
      /** The approver of the call (§27). */
      readonly ask?: AskWhom;
      /** The `place` of the rule that asks. */
      readonly askRule?: string;
      /** In a list: the approval depends on the arguments of the call. */
      readonly isAskedByArgs?: boolean;
    }
  /**
   * Does not exist for this caller. `rounded` is a number among the arguments that a rule would have to compare, but no double
   * can represent.
   */
  | { readonly kind: 'denied'; readonly rounded?: string }
  /** Only scopes are missing: it is listed, and a call is rejected with 403 `insufficient_scope`. */
  | { readonly kind: 'scopes_missing'; readonly scopes: readonly string[]; readonly rule?: string };

/** The used part of a variable: all of it, or parts of these members. */
export type Lookup = 'all' | Map<string, Lookup>;

/** The members of `user` that rules name. A rule about all claims names none. */
export type NamedFacts = ReadonlyMap<string, Lookup>;
