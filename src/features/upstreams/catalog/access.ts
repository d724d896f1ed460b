// §18.5: one predicate for list, call, get, read, completion, templates and subscriptions.
import { failUnknown } from '../../../core/errors/fail-unknown.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { JsonObject } from '../../../core/json.ts';
import { stripUri } from '../../../core/strip-uri.ts';
import type { Turns } from '../../../core/turns.ts';
import type { Rules } from '../../rules/rules.ts';
import type { Entry } from './entry.ts';
import { LIST_KINDS, type ListKind } from './list-kinds.ts';
import type { FoundResource, Who } from './view.ts';

export interface Access {
  /** Before many entries are asked about. */
  prepareFor(who: Who, work: Turns): Promise<void>;
  /** What only a scope is missing for is listed. */
  mayList(kind: ListKind, entry: UsedItem, who: Who): boolean;
  /** What may not be used is unknown to its caller. @throws GatewayError `insufficient_scope`. */
  mayUse(kind: ListKind, item: UsedItem, who: Who, args?: JsonObject): boolean;
  /** Whether its changes may be told. */
  mayRead(found: FoundResource, who: Who): boolean;
}

/** By the name that clients of `/mcp` see. */
export type UsedItem = Pick<Entry, 'name' | 'server' | 'annotations'>;

export function createAccess(getRules: () => Rules | undefined): Access {
  return {
    prepareFor: async (who, work) => getRules()?.prepareFor(who.rule, work),
    mayList(kind, { name, server, annotations }, who) {
      const item = { kind: LIST_KINDS[kind].ruled, name, server, annotations, args: undefined };
      return getRules()?.decide(item, who.rule).kind !== 'denied';
    },
    mayUse(kind, { name, server, annotations }, who, args) {
      const rules = getRules();
      if (rules === undefined) return true;
      const item = { kind: LIST_KINDS[kind].ruled, name, server, annotations, args };
      const decision = rules.decide(item, who.rule);
      if (decision.kind === 'scopes_missing') failForScopes(decision.scopes, server);
      return decision.kind !== 'denied';
    },
    mayRead(found, who) {
      const { server, annotations } = found;
      const item = {
        kind: 'resource',
        name: found.uri,
        server,
        annotations,
        args: undefined,
      } as const;
      return (getRules()?.decide(item, who.rule).kind ?? 'allowed') === 'allowed';
    },
  };
}

export const toUsedResource = (found: FoundResource): UsedItem => ({
  name: found.uri,
  server: found.server,
  annotations: found.annotations,
});

/** As the built-in catalogue says it: what is denied looks the same, but in the log. */
export function failUnknownItem(
  kind: ListKind,
  name: string,
  { deniedAt, nearest }: { readonly deniedAt?: string; readonly nearest?: string | undefined } = {},
): never {
  const { ruled, noun } = LIST_KINDS[kind];
  return failUnknown({
    noun,
    name: ruled === 'resource' ? stripUri(name) : name,
    nearest,
    ...(deniedAt !== undefined && { facts: { deniedBy: 'rules', server: deniedAt } }),
    ...(kind === 'resources' && { data: { uri: name } }),
  });
}

/** RFC 6750 §3.1. */
const failForScopes = (scopes: readonly string[], server: string): never =>
  fail('insufficient_scope', {
    data: { scopes },
    facts: { deniedBy: 'insufficient_scope', server },
  });
