// §18.5: one predicate for list, call, get, read, completion, templates and subscriptions.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { JsonObject } from '../../../core/json.ts';
import { quote } from '../../../core/quote.ts';
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
  mayList(kind: ListKind, entry: Pick<Entry, 'name' | 'server' | 'annotations'>, who: Who): boolean;
  /** @throws GatewayError as for what is unknown, or `insufficient_scope`. */
  checkUse(kind: ListKind, item: UsedItem, who: Who, args?: JsonObject): void;
  /** Whether its changes may be told. */
  mayRead(found: FoundResource, who: Who): boolean;
}

/** `asked` is the name or URI in the client's words. */
export interface UsedItem {
  readonly asked: string;
  readonly name: string;
  readonly server: string;
  readonly annotations: JsonObject;
}

export function createAccess(getRules: () => Rules | undefined): Access {
  return {
    prepareFor: async (who, work) => getRules()?.prepareFor(who.rule, work),
    mayList(kind, { name, server, annotations }, who) {
      const item = { kind: LIST_KINDS[kind].ruled, name, server, annotations, args: undefined };
      return getRules()?.decide(item, who.rule).kind !== 'denied';
    },
    checkUse(kind, { asked, name, server, annotations }, who, args) {
      const rules = getRules();
      if (rules === undefined) return;
      const item = { kind: LIST_KINDS[kind].ruled, name, server, annotations, args };
      const decision = rules.decide(item, who.rule);
      if (decision.kind === 'denied') failUnknown(kind, asked, { deniedBy: 'rules', server });
      if (decision.kind === 'scopes_missing') failForScopes(decision.scopes, server);
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

export const toUsedResource = (asked: string, found: FoundResource): UsedItem => ({
  asked,
  name: found.uri,
  server: found.server,
  annotations: found.annotations,
});

/** Characters of a name that an error shows. */
const MAX_NAME = 200;

/** As the built-in catalogue says it: what is denied looks the same, but in the log. */
export function failUnknown(
  kind: ListKind,
  name: string,
  facts?: { readonly deniedBy: 'rules'; readonly server: string },
): never {
  const shown = LIST_KINDS[kind].ruled === 'resource' ? stripUri(name) : name;
  return fail('invalid_params', {
    ...(facts && { facts }),
    // The log has the details, too.
    details: `Unknown ${LIST_KINDS[kind].noun} ${quote(shown, MAX_NAME)}`,
    ...(kind === 'resources' && { data: { uri: name } }),
  });
}

/** RFC 6750 §3.1. */
const failForScopes = (scopes: readonly string[], server: string): never =>
  fail('insufficient_scope', {
    data: { scopes },
    facts: { deniedBy: 'insufficient_scope', server },
  });
