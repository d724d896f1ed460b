// §18.2: finds an item by its name, or fails with a suggestion.

import { failUnknownItem, LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { APPS } from '../mcp/protocol/revisions.ts';
import { createTurns } from '../platform/clock.ts';
import type { JsonObject } from '../platform/json.ts';
import { createJudgeLikeness } from '../platform/nearest-name.ts';
import { hasApp, isVisibleTo } from './apps/app-tools.ts';
import { BUILT_IN, type Entry } from './prepare-list.ts';
import { JUDGED_AT_ONCE, type ServedPath } from './served-path.ts';
import { type FoundItem, type FoundResource, toShownName, type View, type Who } from './view.ts';

export type FindItem = ReturnType<typeof createFindItem>;

export function createFindItem(path: ServedPath, resolveResource: View['findResource']) {
  const { view } = path;

  /** `facts` are for the log. @throws GatewayError `invalid_params` always. */
  async function failAsUnknown(
    kind: ListKind,
    name: string,
    who: Who,
    facts?: JsonObject,
  ): Promise<never> {
    // Without lists there is no suggestion.
    const nearest = await suggestName(path, kind, name, who).catch(() => undefined);
    return failUnknownItem(kind, name, { nearest, ...(facts && { facts }) });
  }

  return {
    /** @throws GatewayError `invalid_params` if no server has it. */
    find: async (kind: ListKind, name: string, who: Who): Promise<FoundItem> =>
      (await view.find(kind, name, who)) ??
      (kind === 'tools' ? await findAppTool(path, name, who) : undefined) ??
      failAsUnknown(kind, name, who),
    /** @throws GatewayError `invalid_params` if no server has it. */
    findResource: async (uri: string, who: Who): Promise<FoundResource> =>
      (await resolveResource(uri, who)) ?? failUnknownItem('resources', uri),
    failAsUnknown,
  };
}

// §7.1: the nearest name to an unknown one, among the items that this caller sees.

/** Entries that are compared at most. */
const MAX_COMPARED = 10_000;

/**
 * One search at a time in the whole process: each takes only its turns of the event loop, but many at once would leave
 * little time for other calls.
 */
let lastSearch: Promise<unknown> = Promise.resolve();

/** Undefined if no name is similar. Searches the lists at hand, without waiting for a server. */
async function suggestName(
  { view, access, clock }: ServedPath,
  kind: ListKind,
  name: string,
  who: Who,
): Promise<string | undefined> {
  // URIs are copied, not remembered; and a URI may hold a secret of one call.
  if (LIST_KINDS[kind].ruled === 'resource') return undefined;
  const judge = createJudgeLikeness(name);
  if (judge === undefined) return undefined;
  const work = createTurns(clock);
  const entries = await view.listAtHand(kind, who);
  await access.prepareFor(who, work);
  // The name itself may be listed, and the call refused for its arguments.
  const isMeant = (entry: Entry) =>
    toShownName(view, entry) !== name &&
    view.findServer(entry.server)?.isDown() !== true &&
    access.mayList(entry, who);

  const findNearest = async (): Promise<Entry | undefined> => {
    let nearest: Entry | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const [place, entry] of entries.slice(0, MAX_COMPARED).entries()) {
      if (place % JUDGED_AT_ONCE === 0 && work.isOver()) await work.next();
      // Models leave the prefix out, or write the prefix of another gateway.
      const distance = Math.min(judge(entry.name, least), judge(entry.ownName, least));
      if (distance >= least || !isMeant(entry)) continue;
      nearest = entry;
      least = distance;
    }
    return nearest;
  };

  const searching = lastSearch.then(findNearest);
  lastSearch = searching.catch(() => {});
  const nearest = await searching;
  return nearest && toShownName(view, nearest);
}

// §30.2: apps call tools by the names of their own server: they do not know the names that clients of several servers see.

/** Tools that are searched at most. */
const MAX_LOOKED_AT = 10_000;

/**
 * The tool that an app of a server means, which belongs to the same server. Among all servers with an app that the caller
 * sees, only one may have the name, whether the caller may use it or not: an app's arguments must reach no other server.
 */
async function findAppTool(
  { view, access, clock }: ServedPath,
  name: string,
  who: Who,
): Promise<Entry | undefined> {
  const { extensions } = who.upstream.capabilities;
  if (view.shown === 'own' || extensions?.[APPS] === undefined) return undefined;
  const isMeant = ({ server, ownName, ownItem }: Entry) =>
    server !== BUILT_IN && ownName === name && isVisibleTo('app', ownItem);
  // Fast path: nearly all unknown names end here, before rules are evaluated or servers are waited for.
  if (!(await view.listAtHand('tools', who)).some(isMeant)) return undefined;
  const entries = (await view.list('tools', who)).entries.slice(0, MAX_LOOKED_AT);
  const meant = entries.filter(isMeant);
  const wanted = new Set(meant.map(({ server }) => server));
  const work = createTurns(clock);
  await access.prepareFor(who, work);
  const servers = new Set<string>();
  for (const [at, entry] of entries.entries()) {
    if (at % JUDGED_AT_ONCE === 0 && work.isOver()) await work.next();
    const { server, ownItem } = entry;
    if (!wanted.has(server) || servers.has(server)) continue;
    if (hasApp(ownItem) && access.mayList(entry, who)) servers.add(server);
  }
  const [only, ...others] = meant.filter(({ server }) => servers.has(server));
  return only !== undefined && others.length === 0 && access.mayList(only, who) ? only : undefined;
}
