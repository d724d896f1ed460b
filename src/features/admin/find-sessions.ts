// §22.2: sessions of people, by user ID, e-mail or name. These are sealed, so there is no index: sessions are looked through,
// as many as one request may take.

import type { Clock } from '../../core/clock.ts';
import type { ListedSession, PagePlace, PageRequest, Store } from '../../core/store/store.ts';
import { createTurns } from '../../core/turns.ts';
import { matchesPerson, type People, type Person } from './people.ts';

export interface PersonsSession {
  readonly listed: ListedSession;
  readonly person: Person;
}

export interface FoundSessions {
  readonly sessions: readonly PersonsSession[];
  /** Where to look on. */
  readonly next: PagePlace | undefined;
}

export interface FindSessionsDeps {
  readonly store: Pick<Store, 'listSessions'>;
  readonly people: People;
  readonly clock: Clock;
}

const PAGE = 50;
/** So many pages are looked through for one request, and so many sessions found; the last page may bring some more. */
const MAX_PAGES = 40;
const ENOUGH = 50;

export async function findSessions(
  text: string,
  from: PageRequest['from'],
  { store, people, clock }: FindSessionsDeps,
): Promise<FoundSessions> {
  const work = createTurns(clock);
  const sessions: PersonsSession[] = [];
  let place = from;
  for (let page = 0; page < MAX_PAGES && sessions.length < ENOUGH; page += 1) {
    const { items, next } = await store.listSessions({ from: place, limit: PAGE });
    const named = await addPeople(items, people);
    sessions.push(
      ...named.filter(({ listed, person }) => matchesPerson(text, listed.record.userId, person)),
    );
    place = next;
    if (next === undefined) break;
    if (work.isOver()) await work.next();
  }
  return { sessions, next: place };
}

export const addPeople = (
  items: readonly ListedSession[],
  people: People,
): Promise<readonly PersonsSession[]> =>
  Promise.all(
    items.map(async (listed) => ({
      listed,
      person: await people.open(listed.record.person, listed.record.sessionId),
    })),
  );
