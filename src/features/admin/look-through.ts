// §22.2: finds what is of a person in a list. Names and e-mail addresses are sealed, so there is no index: the list is looked
// through, as far as one request may go.
import type { Clock } from '../../core/clock.ts';
import type { Page, PageRequest } from '../../core/store/store.ts';
import { createTurns } from '../../core/turns.ts';

const PAGE = 50;
/** So many pages are looked through for one request, and so many items found; the last page may bring some more. */
const MAX_PAGES = 40;
const ENOUGH = 50;

/** `next` is where to look on. */
export async function lookThrough<Item>(
  readPage: (request: PageRequest) => Promise<Page<Item>>,
  isMeant: (item: Item) => boolean,
  { from, clock }: { readonly from: PageRequest['from']; readonly clock: Clock },
): Promise<Page<Item>> {
  const work = createTurns(clock);
  const found: Item[] = [];
  let place = from;
  for (let page = 0; page < MAX_PAGES && found.length < ENOUGH; page += 1) {
    const { items, next } = await readPage({ from: place, limit: PAGE });
    found.push(...items.filter(isMeant));
    place = next;
    if (next === undefined) break;
    if (work.isOver()) await work.next();
  }
  return { items: found, next: place };
}
