// §22.2: finds what is of a person in a list.
import type { UserIdentity } from '../../logins/grants/grant.ts';
import { type Clock, createTurns } from '../../platform/clock.ts';
import type { Page, PageRequest } from '../../store/page.ts';
import type { People, PersonIndex } from './people.ts';
import type { AdminPage, AdminPageRequest, Issuers } from './read-request.ts';
import type { RecentCallers } from './recent-callers.ts';

/** Whom operators see, and by what they are found. */
export interface FoundPeople {
  readonly people: People;
  readonly personIndex: PersonIndex;
  readonly recentCallers: RecentCallers;
  readonly issuers: Issuers;
  readonly clock: Clock;
}

/** A list that may have what is of the person. */
export interface SearchedList<Item> {
  readonly isMeant: (item: Item) => boolean;
  readonly readPage: (request: PageRequest) => Promise<Page<Item>>;
  /** What one user has of it. */
  readonly readOfUser: (user: UserIdentity) => Promise<readonly Item[]>;
}

/** By a whole e-mail address at once; else the list is looked through. */
export async function findOfPerson<Item>(
  { personIndex, clock, issuers }: FoundPeople,
  { text, from }: { readonly text: string; readonly from: AdminPageRequest['from'] },
  { isMeant, readPage, readOfUser }: SearchedList<Item>,
): Promise<AdminPage<Item>> {
  // A cursor names a list of the address, or none while all items are looked through.
  if (text.includes('@') && (from === undefined || from.list !== undefined)) {
    const { users, next } = await personIndex.find(text, from);
    const read = users.map((user) =>
      readOfUser({ ...user, issuer: user.issuer ?? issuers.issuer }),
    );
    const items = (await Promise.all(read)).flat().filter(isMeant);
    if (items.length > 0 || next !== undefined || from !== undefined) return { items, next };
  }
  return lookThrough(readPage, isMeant, { from, clock });
}

// Names and e-mail addresses are sealed, so there is no index: the list is looked through, as far as one request may go.

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
