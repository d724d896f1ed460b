// §22.2: open sessions and callers without one, by their people.
import { type Clock, createTurns } from '../../platform/clock.ts';
import { isObject, type JsonObject, parseObject } from '../../platform/json.ts';
import type { Page, PageRequest } from '../../store/page.ts';
import type { ListedSession, Sessions } from '../../store/store.ts';
import { matchesPerson, type People, type Person, type PersonIndex } from './people.ts';
import {
  type AdminPage,
  type AdminPageRequest,
  type AdminPlace,
  readShort,
  renderNext,
  renderTime,
} from './read-request.ts';
import type { RecentCaller, RecentCallers } from './recent-callers.ts';

export interface SessionSources {
  readonly store: Pick<Sessions, 'listSessions' | 'countSessions'>;
  readonly clock: Clock;
  readonly people: People;
  readonly personIndex: Pick<PersonIndex, 'find'>;
  readonly recentCallers: Pick<RecentCallers, 'list'>;
}

export const createSessionLists = (sources: SessionSources) => ({
  /** `owner` for those of one user. */
  async listSessions(request: PageRequest, owner: string | undefined) {
    return renderSessions(sources, readSessions(sources, request, owner));
  },
  /** Those of people whose user ID, e-mail or name the text is, or is a part of. */
  async findSessions({ from }: AdminPageRequest, text: string) {
    const isMeant = ({ listed, person }: PersonsSession) =>
      matchesPerson(text, listed.record.userId, person);
    const find = async () => {
      const { clock } = sources;
      // A cursor names a list of the address, or none while all sessions are looked through.
      if (from === undefined || from.list !== undefined) {
        const { items, next } = await readSessionsOfAddress(sources, text, from);
        const meant = items.filter(isMeant);
        if (meant.length > 0 || next !== undefined || from !== undefined)
          return { items: meant, next };
      }
      return lookThrough((request) => readSessions(sources, request), isMeant, { from, clock });
    };
    return renderSessions(sources, find());
  },
  /** Users who called without a session. */
  async listCallers(request: PageRequest) {
    return renderCallers(await sources.recentCallers.list(request));
  },
  async findCallers({ from }: PageRequest, text: string) {
    const isMeant = ({ user, person }: RecentCaller) => matchesPerson(text, user, person);
    const { clock } = sources;
    return renderCallers(await lookThrough(sources.recentCallers.list, isMeant, { from, clock }));
  },
});

interface PersonsSession {
  readonly listed: ListedSession;
  readonly person: Person;
}

async function readSessions(
  { store, people }: Pick<SessionSources, 'store' | 'people'>,
  request: PageRequest,
  owner?: string,
): Promise<Page<PersonsSession>> {
  const { items, next } = await store.listSessions(request, owner);
  const named = items.map(async (listed) => ({
    listed,
    person: await people.open(listed.record.person, listed.record.sessionId),
  }));
  return { items: await Promise.all(named), next };
}

/** Of those whose e-mail address this is: the last ones of each. */
async function readSessionsOfAddress(
  sources: SessionSources,
  text: string,
  from: AdminPlace | undefined,
): Promise<AdminPage<PersonsSession>> {
  if (!text.includes('@')) return { items: [], next: undefined };
  const { users, next } = await sources.personIndex.find(text, from);
  const pages = await Promise.all(
    users.map((user) => readSessions(sources, { from: undefined, limit: SESSIONS_OF_USER }, user)),
  );
  return { items: pages.flatMap(({ items }) => items), next };
}

const SESSIONS_OF_USER = 50;

const renderCallers = (page: Page<RecentCaller>): JsonObject => ({
  callers: page.items.map(({ user, person, lastSeenAt }) => ({ user, ...person, lastSeenAt })),
  ...renderNext(page),
});

async function renderSessions(
  { store }: Pick<SessionSources, 'store'>,
  reading: Promise<AdminPage<PersonsSession>>,
): Promise<JsonObject> {
  const [page, active] = await Promise.all([reading, store.countSessions()]);
  return { sessions: page.items.map(describeSession), active, ...renderNext(page) };
}

function describeSession({ listed, person }: PersonsSession): JsonObject {
  const { record, expiresAt } = listed;
  const { sessionId: id, userId: user, server, protocolVersion } = record;
  return {
    id,
    user,
    ...person,
    server,
    protocolVersion,
    client: readClientInfo(record.clientInfo),
    createdAt: renderTime(record.createdAt),
    lastUsedAt: renderTime(record.lastAccessedAt),
    expiresAt: renderTime(expiresAt),
  };
}

/** What the client says of itself. */
function readClientInfo(text: string | undefined): JsonObject | undefined {
  const info = text === undefined ? undefined : parseObject(text);
  if (!isObject(info)) return undefined;
  return {
    name: readShort(info.name),
    title: readShort(info.title),
    version: readShort(info.version),
  };
}

// §22.2: finds what is of a person in a list. Names and e-mail addresses are sealed, so there is no index: the list is looked
// through, as far as one request may go.

const PAGE = 50;
/** So many pages are looked through for one request, and so many items found; the last page may bring some more. */
const MAX_PAGES = 40;
const ENOUGH = 50;

/** `next` is where to look on. */
async function lookThrough<Item>(
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
