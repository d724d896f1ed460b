// §18.2: what a caller asks for by its name: found, or unknown in words that help.

import { fail } from '../../errors/gateway-error.ts';
import { type Clock, createTurns, type Turns } from '../../platform/clock.ts';
import { createJudgeLikeness, type JudgeLikeness } from '../../platform/nearest-name.ts';
import { failUnknownItem, LIST_KINDS, type ListKind } from '../../protocol/list-kinds.ts';
import type { ResolveResource } from './linked-resources.ts';
import { JUDGED_AT_ONCE } from './list-page.ts';
import type { Entry } from './prepare-list.ts';
import type { Server } from './server.ts';
import type { Access, Found, FoundResource, View, Who } from './view.ts';

export interface FindItem {
  /** @throws GatewayError `invalid_params` where nobody has it. */
  find(kind: ListKind, name: string, who: Who): Found | Promise<Found>;
  /** @throws GatewayError `invalid_params` where nobody has it. */
  findResource(uri: string, who: Who): Promise<FoundResource>;
  /** `facts` are for the log. @throws GatewayError `invalid_params` always. */
  failAsUnknown(
    kind: ListKind,
    name: string,
    who: Who,
    facts?: Readonly<Record<string, unknown>>,
  ): Promise<never>;
}

export interface FindItemDeps extends SuggestNameDeps {
  readonly resolveResource: ResolveResource;
}

export function createFindItem(deps: FindItemDeps): FindItem {
  const { view, resolveResource } = deps;
  const suggestName = createSuggestName(deps);

  const failAsUnknown: FindItem['failAsUnknown'] = async (kind, name, who, facts) => {
    // Where nobody can say what there is, nothing is suggested.
    const nearest = await suggestName(kind, name, who).catch(() => undefined);
    return failUnknownItem(kind, name, { nearest, ...(facts && { facts }) });
  };

  return {
    find(kind, name, who) {
      const finding = view.find(kind, name, who);
      if (finding === undefined) return failAsUnknown(kind, name, who);
      if (!(finding instanceof Promise)) return finding;
      return finding.then((found) => found ?? failAsUnknown(kind, name, who));
    },
    async findResource(uri, who) {
      const found = await resolveResource(uri, who);
      return found ?? failUnknownItem('resources', uri);
    },
    failAsUnknown,
  };
}

/** No result: whether there is such a tool nobody knows, and series of metrics are named after tools. */
export function failAbsent({ name, lists }: Server, who: Who): never {
  const problem = lists.peekProblem(who.upstream);
  const reason = problem === undefined ? '' : ` The reason: ${problem}.`;
  const message = `${name} is not available now; try again in a moment.${reason}`;
  return fail('upstream_error', {
    jsonRpc: { code: -32603, message },
    facts: { server: name },
  });
}

// §7.1: what a caller may have meant by a name that nobody has: of what this caller sees, and nothing else.

interface SuggestNameDeps {
  readonly view: View;
  readonly access: Access;
  readonly clock: Clock;
}

/** Undefined where nothing is like it. Waits for no server: what they have said so far is looked through. */
type SuggestName = (kind: ListKind, name: string, who: Who) => Promise<string | undefined>;

/** So many are compared at most: what comes after them is not suggested. */
const MAX_COMPARED = 10_000;

/**
 * Of the whole process: one search at a time. Each takes only its turns of the event loop, but many at once would leave
 * little between them for everybody else.
 */
let lastSearch: Promise<unknown> = Promise.resolve();

function searchAfterOthers<Result>(search: () => Promise<Result>): Promise<Result> {
  const searching = lastSearch.then(search);
  lastSearch = searching.catch(() => {});
  return searching;
}

function createSuggestName({ view, access, clock }: SuggestNameDeps): SuggestName {
  const isVisible = (entry: Entry, who: Who) =>
    view.findServer(entry.server)?.isDown() !== true && access.mayList(entry, who);

  return async function suggestName(kind, name, who) {
    // URIs are copied and not remembered; and they may hold what only one call was given.
    if (LIST_KINDS[kind].ruled === 'resource') return undefined;
    const judge = createJudgeLikeness(name);
    if (judge === undefined) return undefined;
    const work = createTurns(clock);
    const entries = await view.listAtHand(kind, who);
    await access.prepareFor(who, work);
    const isMeant = (entry: Entry) => isVisible(entry, who);
    const nearest = await searchAfterOthers(() => findNearest(entries, { judge, isMeant, work }));
    return view.shown === 'own' ? nearest?.ownName : nearest?.name;
  };
}

interface Search {
  readonly judge: JudgeLikeness;
  isMeant(entry: Entry): boolean;
  readonly work: Turns;
}

async function findNearest(entries: readonly Entry[], { judge, isMeant, work }: Search) {
  let nearest: Entry | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const [place, entry] of entries.slice(0, MAX_COMPARED).entries()) {
    if (place % JUDGED_AT_ONCE === 0 && work.isOver()) await work.next();
    // Models leave the prefix out, or write that of another gateway.
    const distance = Math.min(judge(entry.name, least), judge(entry.ownName, least));
    if (distance >= least || !isMeant(entry)) continue;
    nearest = entry;
    least = distance;
  }
  return nearest;
}
