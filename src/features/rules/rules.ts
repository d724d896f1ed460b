// §18.5: who may use what.
import type { JsonObject } from '../../core/json.ts';
import type { UserContext } from '../../core/user-context.ts';

/** One predicate decides list, call, get, read, completion, templates and subscriptions. */
export interface Rules {
  /** Whether any rule looks at the OAuth client, which then has to be known. */
  readonly needClient: boolean;
  /** At once, and without effect. */
  decide(item: RuledItem, caller: RuleCaller): RuleDecision;
}

export interface RuledItem {
  readonly kind: 'tool' | 'prompt' | 'resource';
  /** As clients see it: the name, or the URI or URI template. */
  readonly name: string;
  /** Of the server behind the gateway; `''` for the built-in catalogue. */
  readonly server: string;
  /** The server's own claim. */
  readonly annotations: JsonObject;
  /** Of a call; undefined in lists, where a rule that looks at them counts as fulfilled. */
  readonly args: JsonObject | undefined;
}

export interface RuleCaller {
  readonly user: UserContext | undefined;
  readonly clientId: string | undefined;
}

export type RuleDecision =
  | { readonly kind: 'allowed' }
  /** For this caller it does not exist. */
  | { readonly kind: 'denied' }
  /** Only these scopes are missing: it is listed, and its call is 403 `insufficient_scope`. */
  | { readonly kind: 'scopes_missing'; readonly scopes: readonly string[] };
