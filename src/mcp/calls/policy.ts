// Policies, who may see and use what: each reason why somebody may not is a policy, and policies are asked in the order of a list.

import type { UserContext } from '../../http/endpoint/message.ts';
import type { Turns } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { LockedKind } from '../catalog/approved-items.ts';
import type { ItemKind } from '../protocol/list-kinds.ts';

/** A tool, prompt, resource or template that somebody would see, or use. */
export interface PolicyItem {
  readonly kind: ItemKind;
  /** As clients of `/mcp` see it, at whatever path they are: the name, or the URI or URI template. */
  readonly name: string;
  /** The name of the server behind the gateway; `''` for the built-in catalogue. */
  readonly server: string;
  /** The server's own claim; `{}` where it makes none. */
  readonly annotations: JsonObject;
  /**
   * Set where it stands for all that the server may have, as the tool by which its users log in there (§24.3): how the names of
   * that begin. Who may use something of such a name may use it.
   */
  readonly namesBegin?: string | undefined;
  /** It needs no rule: by itself it does nothing, and what it shows is what its caller may see (§25.3). */
  readonly isOpen?: boolean | undefined;
}

/** The caller. */
export interface PolicyCaller {
  readonly user: UserContext | undefined;
  /** OAuth client ID; undefined where it is not known. */
  readonly clientId: string | undefined;
  /** The view (§25) at whose path the call came; undefined for `/mcp` and the paths of servers. */
  readonly view?: string | undefined;
}

export type Verdict =
  /** `ask` is who has to agree to a call before it runs (§27); in lists it says nothing. */
  | { readonly kind: 'allowed'; readonly ask?: AskWhom | undefined }
  /**
   * For this caller it does not exist. `by` is the policy, as the audit log names it; `rounded` a number of the arguments that it
   * could not look at, since no double holds it.
   */
  | { readonly kind: 'denied'; readonly by: string; readonly rounded?: string }
  /** Only these scopes are missing: it is listed, and its call is 403 `insufficient_scope`. */
  | { readonly kind: 'scopes_missing'; readonly scopes: readonly string[] };

/**
 * §27: `user` is asked in their client where that can show a question, `page` at the gateway's own page always, `operator` at
 * the operators' page. Each beats those before it.
 */
export type AskWhom = 'user' | 'page' | 'operator';

export const ASK_ORDER: readonly (AskWhom | undefined)[] = [undefined, 'user', 'page', 'operator'];

export interface Policy {
  /** Before many items are judged: works out what follows from the caller alone, and gives way to others. */
  prepareFor?(caller: PolicyCaller, work: Turns): Promise<void>;
  /**
   * At once, and without effect. `args` are those of a call, `{}` where it has none; in lists, and of resources, they are
   * undefined, and what depends on them is allowed in lists.
   */
  judge?(item: PolicyItem, caller: PolicyCaller, args: JsonObject | undefined): Verdict;
  /**
   * True if it may let the caller have something of a server, whatever that has. Names of its tools and prompts begin like this;
   * its URIs may be any.
   */
  mayAllowSome?(namesBegin: string, caller: PolicyCaller): boolean;
  /**
   * Why nobody sees what a server says of itself: the rest of a sentence that begins with its name. `said` is an item as the
   * server wrote it, or the text of its instructions. Asked when the server has listed its items, and whenever its instructions are told.
   * Resources and templates come and go: no policy hides them from everybody, but for skills.
   */
  findHidden?(server: string, kind: LockedKind, said: unknown): string | undefined;
}

/** All policies as one. */
export interface Policies extends Required<Policy> {
  /** True if everybody may see and use everything. */
  readonly allowAll: boolean;
  /** True if callers may see different things. */
  readonly dependOnCaller: boolean;
}

const ALLOWED: Verdict = { kind: 'allowed' };

/**
 * In the order in which they are asked: the first that does not allow it decides. A configuration that needs one of them not has
 * undefined in its place.
 */
export function joinPolicies(all: readonly (Policy | undefined)[]): Policies {
  const policies = all.filter((policy) => policy !== undefined);
  return {
    allowAll: policies.length === 0,
    dependOnCaller: policies.some(({ judge }) => judge !== undefined),
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
