// §18.2: a path that is served, with all that answers for it.

import { GatewayError } from '../errors/gateway-error.ts';
import { URL_REQUIRED } from '../mcp/calls/client-answers.ts';
import type { GuardedItem, GuardPoint } from '../mcp/calls/guards.ts';
import type { OwnCatalog } from '../mcp/catalog/own-catalog.ts';
import type { CallerContext, IdentifiedCaller } from '../mcp/catalog/served-catalog.ts';
import { ALL_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import type { ConnectUser } from '../mcp/upstream/connection-ports.ts';
import type { RelayCall } from '../mcp/upstream/server-request.ts';
import { type Clock, createTurns } from '../platform/clock.ts';
import { isObject, type JsonObject } from '../platform/json.ts';
import type { ChangeHub, MissedLists } from './change-hub.ts';
import type { LinkedResources } from './linked-resources.ts';
import type { Plan } from './plan.ts';
import type { Entry } from './prepare-list.ts';
import { type ItemAccess, JUDGED_AT_ONCE, type View, type Who } from './view.ts';

export interface ServedPath {
  readonly view: View;
  /** That of `/mcp`, whose names are those of all paths but of a server's own. */
  readonly joined: View;
  readonly access: ItemAccess;
  readonly relayCall: RelayCall;
  readonly connectUser: ConnectUser;
  readonly links: LinkedResources;
  readonly hub: ChangeHub;
  readonly missedLists: MissedLists;
  readonly clock: Clock;
  getPlan(): Plan;
}

/** The gateway's own catalogue; undefined where this path does not serve it. */
export const findBuiltIn = ({ view, getPlan }: ServedPath): OwnCatalog | undefined =>
  view.hasBuiltIn() ? getPlan().builtIn?.catalog : undefined;

/** True of a server's own error where a guard looks at what it says there: nobody has looked at that one. */
export const isUnseen = ({ guards }: Plan, point: GuardPoint, thrown: unknown): boolean =>
  thrown instanceof GatewayError &&
  thrown.failure.jsonRpc !== undefined &&
  // An error that asks the user to open a page is a question, too.
  (guards?.looksAt(point) === true ||
    (thrown.failure.jsonRpc.code === URL_REQUIRED && guards?.looksAt('elicitation') === true));

/** §26: true if the guards let a URI go to its server, with what else is asked. They cannot change it. */
export async function guardUri(
  { getPlan }: Pick<ServedPath, 'getPlan'>,
  point: GuardPoint,
  item: GuardedItem,
  {
    user,
    clientId,
    view,
    trace = {},
    relay,
  }: IdentifiedCaller & Partial<Pick<CallerContext, 'trace' | 'relay'>>,
  more: JsonObject = {},
): Promise<boolean> {
  const guard = getPlan().guards?.find(point, item);
  if (guard === undefined) return true;
  const value: JsonObject = { uri: item.name, ...more };
  const verdict = await guard.judge({
    value,
    caller: { user, clientId, view, requestId: undefined, trace },
    signal: relay?.signal,
    findProblem: (changed) =>
      isObject(changed) && changed.uri === value.uri && changed.cursor === value.cursor
        ? undefined
        : 'a URI cannot be changed',
  });
  return verdict.kind !== 'refused';
}

/** True if the caller sees one of these: they are listed kind by kind, until one is found. */
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

/** Lists have nothing of servers that are down. */
export function createIsVisible({ view, access }: ServedPath, who: Who): (entry: Entry) => boolean {
  const isSomeDown = isAnyDown(view);
  return (entry) =>
    !(isSomeDown && view.findServer(entry.server)?.isDown() === true) && access.mayList(entry, who);
}

export const isAnyDown = (view: View): boolean =>
  view.listServers().some((server) => server.isDown());
