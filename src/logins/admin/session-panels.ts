// §22.2: open sessions and callers without one, by their people.
import type { AdminPanel } from '../../http/endpoint/admin-panel.ts';
import type { RecentCaller } from '../../http/endpoint/admin-people.ts';
import {
  type FoundPeople,
  findOfPerson,
  lookThrough,
  matchesPerson,
  type Person,
} from '../../http/endpoint/admin-people.ts';
import {
  type AdminPage,
  type AdminPageRequest,
  describeUser,
  endById,
  type Issuers,
  readAdminPageRequest,
  readPageRequest,
  readSelectedUser,
  readShort,
  renderNext,
  renderTime,
} from '../../http/endpoint/admin-requests.ts';
import { isSessionId } from '../../platform/ids.ts';
import { isObject, type JsonObject, parseObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { readOwner } from '../../store/owner.ts';
import type { PageRequest, StoredPage } from '../../store/page.ts';
import type { ListedSession } from '../../store/store.ts';
import type { UserIdentity } from '../grants/grant.ts';

export function createSessionPanels(
  { store, clock }: Runtime,
  found: FoundPeople,
  endSession: (id: string) => Promise<boolean>,
): readonly AdminPanel[] {
  const { issuers, people, recentCallers } = found;

  async function readSessions(
    request: PageRequest,
    user?: UserIdentity,
  ): Promise<StoredPage<PersonsSession>> {
    const { items, next } = await store.listSessions(request, user);
    const named = items.map(async (listed) => ({
      listed,
      person: await people.open(listed.record.person, listed.record.sessionId),
    }));
    return { items: await Promise.all(named), next };
  }

  /** Those of people whose user ID, e-mail or name the text is, or is a part of. */
  const findSessions = ({ from }: AdminPageRequest, text: string) =>
    findOfPerson(
      found,
      { text, from },
      {
        isMeant: ({ listed, person }: PersonsSession) =>
          matchesPerson(text, listed.record.userId, person),
        readPage: (request) => readSessions(request),
        readOfUser: async (user) =>
          (await readSessions({ from: undefined, limit: SESSIONS_OF_USER }, user)).items,
      },
    );

  async function renderSessions(reading: Promise<AdminPage<PersonsSession>>): Promise<JsonObject> {
    const [page, active] = await Promise.all([reading, store.countSessions()]);
    const sessions = page.items.map((session) => describeSession(session, issuers));
    return { sessions, active, ...renderNext(page) };
  }

  async function listCallers({ from, limit }: PageRequest, text: string): Promise<JsonObject> {
    const isMeant = ({ user, person }: RecentCaller) => matchesPerson(text, user.sub, person);
    const page =
      text === ''
        ? await recentCallers.list({ from, limit })
        : await lookThrough(recentCallers.list, isMeant, { from, clock });
    return {
      callers: page.items.map(({ user, person, lastSeenAt }) => ({
        ...describeUser(user, issuers),
        ...person,
        lastSeenAt,
      })),
      ...renderNext(page),
    };
  }

  return [
    {
      method: 'GET',
      path: '/sessions',
      show(query) {
        const text = query.get('person') ?? '';
        const reading =
          text === ''
            ? readSessions(readPageRequest(query), readSelectedUser(query, issuers))
            : findSessions(readAdminPageRequest(query), text);
        return renderSessions(reading);
      },
    },
    // Users who called without a session.
    {
      method: 'GET',
      path: '/callers',
      show: (query) => listCallers(readPageRequest(query), query.get('person') ?? ''),
    },
    endById('/sessions/:id', {
      action: 'end_session',
      isId: isSessionId,
      end: endSession,
      notFound: 'session_to_end_not_found',
    }),
  ];
}

interface PersonsSession {
  readonly listed: ListedSession;
  readonly person: Person;
}

/** Of each of those whose e-mail address was asked for: the last ones. */
const SESSIONS_OF_USER = 50;

function describeSession({ listed, person }: PersonsSession, issuers: Issuers): JsonObject {
  const { record, expiresAt } = listed;
  const { sessionId: id, server, protocolVersion } = record;
  const owner = readOwner(record);
  return {
    id,
    ...(owner && describeUser(owner, issuers)),
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
