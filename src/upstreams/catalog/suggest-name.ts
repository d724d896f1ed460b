// §7.1: what a caller may have meant by a name that nobody has: of what this caller sees, and nothing else.

import { createTurns, type Turns } from '../../platform/clock.ts';
import { createJudgeLikeness, type JudgeLikeness } from '../../platform/nearest-name.ts';
import { LIST_KINDS } from '../../protocol/list-kinds.ts';
import { JUDGED_AT_ONCE } from './list-page.ts';
import type { Entry } from './prepare-list.ts';
import type { ServedPath } from './served-path.ts';
import type { SuggestName, Who } from './view.ts';

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

export function createSuggestName({ view, access, clock }: ServedPath): SuggestName {
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
    const show = (entry: Entry) => (view.shown === 'own' ? entry.ownName : entry.name);
    // What is listed may be refused for its arguments.
    const isMeant = (entry: Entry) => show(entry) !== name && isVisible(entry, who);
    const nearest = await searchAfterOthers(() => findNearest(entries, { judge, isMeant, work }));
    return nearest && show(nearest);
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
