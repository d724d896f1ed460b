// §22.2: open sessions and callers without one, by their people.
import type { UserIdentity } from '../../grants/grant.ts';
import type { Clock } from '../../platform/clock.ts';
import { isObject, type JsonObject, parseObject } from '../../platform/json.ts';
import { readOwner } from '../../store/owner.ts';
import type { Page, PageRequest } from '../../store/page.ts';
import type { ListedSession, Sessions } from '../../store/store.ts';
import { findOfPerson, lookThrough } from './find-of-person.ts';
import { matchesPerson, type People, type Person, type PersonIndex } from './people.ts';
import {
  type AdminPage,
  type AdminPageRequest,
  describeUser,
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
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
}

export const createSessionLists = (sources: SessionSources) => ({
  /** `user` for those of one user. */
  async listSessions(request: PageRequest, user: UserIdentity | undefined) {
    return renderSessions(sources, readSessions(sources, request, user));
  },
  /** Those of people whose user ID, e-mail or name the text is, or is a part of. */
  async findSessions({ from }: AdminPageRequest, text: string) {
    const isMeant = ({ listed, person }: PersonsSession) =>
      matchesPerson(text, listed.record.userId, person);
    const found = findOfPerson(
      sources,
      { text, from },
      {
        isMeant,
        readPage: (request) => readSessions(sources, request),
        readOfUser: async (user) =>
          (await readSessions(sources, { from: undefined, limit: SESSIONS_OF_USER }, user)).items,
      },
    );
    return renderSessions(sources, found);
  },
  /** Users who called without a session. */
  async listCallers(request: PageRequest) {
    return renderCallers(await sources.recentCallers.list(request), sources);
  },
  async findCallers({ from }: PageRequest, text: string) {
    const isMeant = ({ user, person }: RecentCaller) => matchesPerson(text, user.sub, person);
    const { clock } = sources;
    const found = await lookThrough(sources.recentCallers.list, isMeant, { from, clock });
    return renderCallers(found, sources);
  },
});

interface PersonsSession {
  readonly listed: ListedSession;
  readonly person: Person;
}

async function readSessions(
  { store, people }: Pick<SessionSources, 'store' | 'people'>,
  request: PageRequest,
  user?: UserIdentity,
): Promise<Page<PersonsSession>> {
  const { items, next } = await store.listSessions(request, user);
  const named = items.map(async (listed) => ({
    listed,
    person: await people.open(listed.record.person, listed.record.sessionId),
  }));
  return { items: await Promise.all(named), next };
}

/** Of each of those whose e-mail address was asked for: the last ones. */
const SESSIONS_OF_USER = 50;

const renderCallers = (
  page: Page<RecentCaller>,
  sources: Pick<SessionSources, 'issuer'>,
): JsonObject => ({
  callers: page.items.map(({ user, person, lastSeenAt }) => ({
    ...describeUser(user, sources),
    ...person,
    lastSeenAt,
  })),
  ...renderNext(page),
});

async function renderSessions(
  sources: Pick<SessionSources, 'store' | 'issuer'>,
  reading: Promise<AdminPage<PersonsSession>>,
): Promise<JsonObject> {
  const [page, active] = await Promise.all([reading, sources.store.countSessions()]);
  const sessions = page.items.map((session) => describeSession(session, sources));
  return { sessions, active, ...renderNext(page) };
}

function describeSession(
  { listed, person }: PersonsSession,
  sources: Pick<SessionSources, 'issuer'>,
): JsonObject {
  const { record, expiresAt } = listed;
  const { sessionId: id, server, protocolVersion } = record;
  const owner = readOwner(record);
  return {
    id,
    ...(owner && describeUser(owner, sources)),
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
