// §18.2: one served path: everything that its functions share, and access by the policies.

import { fail, GatewayError } from '../errors/gateway-error.ts';
import { URL_REQUIRED } from '../mcp/calls/client-answers.ts';
import type { GuardedItem, GuardPoint } from '../mcp/calls/guards.ts';
import type { Policies, PolicyItem } from '../mcp/calls/policy.ts';
import type { Cursor } from '../mcp/catalog/catalog.ts';
import type { OwnCatalog } from '../mcp/catalog/own-catalog.ts';
import type { CallerContext, IdentifiedCaller } from '../mcp/catalog/served-catalog.ts';
import { ALL_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import type { ConnectUser } from '../mcp/upstream/connection-ports.ts';
import type { RelayCall } from '../mcp/upstream/server-request.ts';
import { type Clock, createTurns, type Turns } from '../platform/clock.ts';
import { isObject, type JsonObject } from '../platform/json.ts';
import type { createChangeHub, createMissedLists } from './change-hub.ts';
import type { createLinkedResources } from './linked-resources.ts';
import type { Plan, ServedPlan, Who } from './plan.ts';
import type { Entry } from './prepare-list.ts';
import type { FoundResource, View } from './view.ts';

export interface ServedPath {
  readonly view: View;
  /** The view of `/mcp`, whose names are used on all paths except a server's own. */
  readonly joined: View;
  readonly access: ReturnType<typeof createAccess>;
  readonly relayCall: RelayCall;
  readonly connectUser: ConnectUser;
  readonly links: ReturnType<typeof createLinkedResources>;
  readonly hub: ReturnType<typeof createChangeHub>;
  readonly missedLists: ReturnType<typeof createMissedLists>;
  readonly clock: Clock;
  readonly served: ServedPlan;
}

/** The gateway's own catalogue; undefined if this path does not serve it. */
export const findBuiltIn = ({ view, served }: ServedPath): OwnCatalog | undefined =>
  view.hasBuiltIn() ? served.current.builtIn?.catalog : undefined;

/** True for an error from the server itself if a guard checks results at this point: no guard has seen the error yet. */
export const isUnseen = ({ guards }: Plan, point: GuardPoint, thrown: unknown): boolean =>
  thrown instanceof GatewayError &&
  thrown.failure.jsonRpc !== undefined &&
  // An error that sends the user to a page is also a server-initiated request.
  (guards?.looksAt(point) === true ||
    (thrown.failure.jsonRpc.code === URL_REQUIRED && guards?.looksAt('elicitation') === true));

/** §26: true if the guards let a request about a URI through to its server. They cannot change it. */
export async function guardUri(
  { served }: Pick<ServedPath, 'served'>,
  point: GuardPoint,
  item: GuardedItem & { readonly cursor?: Cursor },
  {
    user,
    clientId,
    view,
    trace = {},
    relay,
  }: IdentifiedCaller & Partial<Pick<CallerContext, 'trace' | 'relay'>>,
): Promise<boolean> {
  const guard = served.current.guards?.find(point, item);
  if (guard === undefined) return true;
  const { name: uri, cursor } = item;
  const value: JsonObject = { uri, ...(cursor !== undefined && { cursor }) };
  const verdict = await guard.judge({
    value,
    caller: { user, clientId, view, id: undefined, trace },
    signal: relay?.signal,
    findProblem: (changed) =>
      isObject(changed) && changed.uri === value.uri && changed.cursor === value.cursor
        ? undefined
        : 'a URI cannot be changed',
  });
  return verdict.kind !== 'refused';
}

/** True if the caller sees any entry. Lists one kind after the other until one is found. */
export async function seesSome(
  { access, clock }: ServedPath,
  who: Who,
  list: (kind: ListKind) => Promise<readonly Entry[]>,
): Promise<boolean> {
  const work = createTurns(clock);
  await access.prepareFor(who, work);
  for (const kind of ALL_KINDS) {
    for (const [index, entry] of (await list(kind)).entries()) {
      if (index % JUDGED_AT_ONCE === 0 && work.isOver()) await work.next();
      if (access.mayList(entry, who)) return true;
    }
  }
  return false;
}

/** Entries of servers that are down are left out of lists. */
export function createIsVisible({ view, access }: ServedPath, who: Who): (entry: Entry) => boolean {
  const isSomeDown = isAnyDown(view);
  return (entry) =>
    !(isSomeDown && view.findServer(entry.server)?.isDown() === true) && access.mayList(entry, who);
}

export const isAnyDown = (view: View): boolean =>
  view.listServers().some((server) => server.isDown());

// §18.5: a single predicate for list, call, get, read, completion, templates and subscriptions.

export const createAccess = (served: ServedPlan) => ({
  /** Must be called before many entries are judged. */
  prepareFor: (who: Who, work: Turns) => served.current.policies.prepareFor(who.policy, work),
  /** Also true if the caller only lacks a scope; for a skill, if that is so for all of its files. */
  mayList(entry: Entry, who: Who): boolean {
    const { judge } = served.current.policies;
    const mayList = (item: PolicyItem) => judge(item, who.policy, undefined).kind !== 'denied';
    return entry.files === undefined ? mayList(entry) : entry.files.every(mayList);
  },
  /** True if clients may be notified when the resource changes. */
  mayRead: (found: FoundResource, who: Who): boolean =>
    served.current.policies.judge(toItem(found), who.policy, undefined).kind === 'allowed',
});

/** Number of entries to judge before a turn may end: an entry takes a few microseconds per condition. */
export const JUDGED_AT_ONCE = 16;

/** Facts for the log; undefined if the caller may use the item. @throws GatewayError if a scope is missing. */
export function findDenial(policies: Policies, item: PolicyItem, who: Who) {
  const verdict = policies.judge(item, who.policy, undefined);
  if (verdict.kind === 'allowed') return undefined;
  const { server } = item;
  if (verdict.kind === 'denied') return { deniedBy: verdict.by, server };
  const facts = { deniedBy: 'insufficient_scope', server };
  return fail('insufficient_scope', { data: { scopes: verdict.scopes }, facts });
}

export const toItem = ({ server, uri, annotations }: FoundResource) =>
  ({ kind: 'resource', name: uri, server, annotations }) as const;
