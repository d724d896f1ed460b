// Policies: each is a reason to deny a caller an item. They are asked in order.

import type { UserContext } from '../../http/endpoint/message.ts';
import type { Turns } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { LockedKind } from '../catalog/approved-items.ts';
import type { ItemKind } from '../protocol/list-kinds.ts';

/** A tool, prompt, resource or template to be seen or used. */
export interface PolicyItem {
  readonly kind: ItemKind;
  /** The name, URI or URI template on `/mcp`, for calls on all paths. */
  readonly name: string;
  /** The name of the server behind the gateway; `''` for the built-in catalogue. */
  readonly server: string;
  /** The server's own claims about the item; `{}` if there are none. */
  readonly annotations: JsonObject;
  /**
   * Set for an item that stands for all items of a server, such as the tool for logging in to it (§24.3): the prefix of their
   * names. A caller who may use any item with this prefix may use it.
   */
  readonly namesBegin?: string | undefined;
  /** Needs no rule: it only shows what its caller may see (§25.3). */
  readonly isOpen?: boolean | undefined;
}

/** The caller. */
export interface PolicyCaller {
  readonly user: UserContext | undefined;
  /** OAuth client ID; undefined if unknown. */
  readonly clientId: string | undefined;
  /** The view (§25) whose path was called; undefined for `/mcp` and the paths of servers. */
  readonly view?: string | undefined;
}

export type Verdict =
  /** `ask` names who has to approve a call before it runs (§27); without meaning in lists. */
  | { readonly kind: 'allowed'; readonly ask?: AskWhom | undefined }
  /**
   * Does not exist for this caller. `by` names the policy in the audit log; `rounded` is a number among the arguments that could
   * not be compared, because no double can represent it.
   */
  | { readonly kind: 'denied'; readonly by: string; readonly rounded?: string }
  /** Only scopes are missing: it is listed, and a call is rejected with 403 `insufficient_scope`. */
  | { readonly kind: 'scopes_missing'; readonly scopes: readonly string[] };

/**
 * §27: `user` is asked in the client if it can show a form, `page` always on the gateway's own page, `operator` on the operators'
 * page. Each takes precedence over those before it.
 */
export type AskWhom = 'user' | 'page' | 'operator';

export const ASK_ORDER: readonly (AskWhom | undefined)[] = [undefined, 'user', 'page', 'operator'];

export interface Policy {
  /** Called before many items are judged: computes what depends on the caller only, yielding to other work. */
  prepareFor?(caller: PolicyCaller, work: Turns): Promise<void>;
  /**
   * Synchronous and without effect. `args` are the arguments of a call, `{}` without any; undefined in lists, where items that
   * depend on them are allowed, and for resources.
   */
  judge?(item: PolicyItem, caller: PolicyCaller, args: JsonObject | undefined): Verdict;
  /** As long as it is the same object, `judge` decides the same about an item of a list. */
  findMemory?(caller: PolicyCaller): object;
  /**
   * True if it may allow the caller any item of a server: tools and prompts with this prefix, and any URI.
   */
  mayAllowSome?(namesBegin: string, caller: PolicyCaller): boolean;
  /**
   * The reason for hiding a server's item or instructions from all callers: the rest of a sentence that begins with its name.
   * `said` is the item as the server wrote it, or the text of its instructions. Called when the server has listed its items, and
   * whenever its instructions are sent. Resources and templates are never hidden from all callers, except skills.
   */
  findHidden?(server: string, kind: LockedKind, said: unknown): string | undefined;
}

/** All policies as one. */
export interface Policies extends Required<Omit<Policy, 'findMemory'>> {
  /** True if all callers may see and use everything. */
  readonly allowAll: boolean;
  /** True if callers may see different entries. */
  readonly dependOnCaller: boolean;
  /** See `Policy`; undefined if that is not known. */
  findMemory(caller: PolicyCaller): object | undefined;
}

export const ALLOWED: Verdict = { kind: 'allowed' };

/**
 * In the order of evaluation: the first denial wins. Undefined stands for a policy that the configuration does not need.
 */
export function joinPolicies(all: readonly (Policy | undefined)[]): Policies {
  const policies = all.filter((policy) => policy !== undefined);
  const [judging, ...others] = policies.filter(({ judge }) => judge !== undefined);
  return {
    allowAll: policies.length === 0,
    dependOnCaller: judging !== undefined,
    findMemory: (caller) => (others.length === 0 ? judging?.findMemory?.(caller) : undefined),
    async prepareFor(caller, work) {
      for (const policy of policies) await policy.prepareFor?.(caller, work);
    },
    judge(item, caller, args) {
      let allowed: Verdict = ALLOWED;
      for (const { judge } of policies) {
        const verdict = judge?.(item, caller, args);
        if (verdict === undefined) continue;
        if (verdict.kind !== 'allowed') return verdict;
        // Only the rules ask.
        if (verdict.ask !== undefined) allowed = verdict;
      }
      return allowed;
    },
    mayAllowSome: (namesBegin, caller) =>
      policies.every(({ mayAllowSome }) => mayAllowSome?.(namesBegin, caller) !== false),
    findHidden(server, kind, said) {
      for (const { findHidden } of policies) {
        const reason = findHidden?.(server, kind, said);
        if (reason !== undefined) return reason;
      }
      return undefined;
    },
  };
}
