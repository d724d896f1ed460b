// §18.5: who may use what.

import type { Turns } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { AskWhom, PolicyCaller, PolicyItem } from '../policy.ts';
import type { NamedFacts } from './when/inspect-expression.ts';

/** One predicate decides list, call, get, read, completion, templates and subscriptions. */
export interface Rules {
  /** What the rules name of users. */
  readonly namedFacts: NamedFacts;
  /** Before many items are decided on: works out what follows from the caller alone, and gives way to others. */
  prepareFor(caller: RuleCaller, work: Turns): Promise<void>;
  /** At once, and without effect. */
  decide(item: RuledItem, caller: RuleCaller): RuleDecision;
  /** See `Policy`. */
  mayAllowSome(namesBegin: string, caller: RuleCaller): boolean;
}

export interface CompiledRules extends Rules {
  /** The same rules, which know nothing of callers of these. */
  withOwnMemory(): Rules;
}

/** What may be seen, or used with these arguments. */
export interface RuledItem extends PolicyItem {
  /**
   * Of a call: `{}` where it has none. Undefined in lists, where a rule that looks at them counts as fulfilled.
   * Resources have none: such a rule allows none.
   */
  readonly args: JsonObject | undefined;
}

export type RuleCaller = PolicyCaller;

export type RuleDecision =
  | {
      readonly kind: 'allowed';
      /** `place` of the rule that says so; absent without rules. */
      readonly rule?: string;
      /** In a list: arguments of the call decide whether it is. */
      readonly isByArgs?: boolean;
      /** Who has to agree to a call before it runs (§27). */
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
