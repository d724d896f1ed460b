// §22.2: panels of logins, with user, client and time, if the gateway issues its own tokens; and of sessions.
import { fail } from '../../errors/gateway-error.ts';
import type { AdminPanel } from '../../http/endpoint/admin-panel.ts';
import {
  describeGrantPerson,
  type FoundPeople,
  findGrants,
  findOfPerson,
  lookThrough,
  matchesPerson,
  type Person,
  type RecentCaller,
} from '../../http/endpoint/admin-people.ts';
import {
  type AdminPage,
  type AdminPageRequest,
  describeSelection,
  describeUser,
  endById,
  type Issuers,
  isClear,
  readAdminPageRequest,
  readPageRequest,
  readSelectedUser,
  readShort,
  renderNext,
  renderNextOf,
  renderTime,
} from '../../http/endpoint/admin-requests.ts';
import type { AdminTable } from '../../http/endpoint/admin-table.ts';
import { createJsonReply } from '../../http/endpoint/message.ts';
import { isSessionId } from '../../platform/ids.ts';
import { type JsonObject, parseObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { readOwner } from '../../store/keys.ts';
import type { PageRequest } from '../../store/page.ts';
import type { ListedSession } from '../../store/store.ts';
import type { GrantSelection } from '../broker/logouts.ts';
import type { Broker } from '../broker/open-broker.ts';
import { type Grant, isGrantId, type UserIdentity } from '../grants/grant.ts';

/** `broker` is undefined in proxy mode. */
export function createGrantPanels(
  found: FoundPeople,
  broker: Broker | undefined,
): readonly AdminPanel[] {
  const { issuers } = found;
  const grants = broker?.ownTokens.grants;

  const renderGrants = (page: AdminPage<Grant>): JsonObject => ({
    tokens: 'gateway',
    grants: page.items.map((grant) => describeGrant(grant, issuers)),
    ...renderNext(page),
  });

  return [
    {
      method: 'GET',
      path: '/grants',
      table: grants ? GRANTS_TABLE : NO_GRANTS_TABLE,
      async show(query) {
        const text = query.get('person') ?? '';
        if (text !== '') {
          const { from } = readAdminPageRequest(query);
          return grants === undefined
            ? NONE
            : renderGrants(await findGrants(found, grants, { text, from }, GRANTS_OF_USER));
        }
        const request = readPageRequest(query);
        const user = readSelectedUser(query, issuers);
        if (grants === undefined) return NONE;
        if (user === undefined) return renderGrants(await grants.list(request, { kind: 'all' }));
        const all = await grants.listOfUser(user);
        const skip = request.from?.skip ?? 0;
        const end = skip + request.limit;
        return {
          ...renderGrants({ items: all.slice(skip, end), next: undefined }),
          ...renderNextOf(all.length, end),
        };
      },
    },
    endById('/grants/:id', {
      action: 'end_grant',
      isId: isGrantId,
      end: async (id) => (await broker?.ends.endGrant(id, 'operator')) !== undefined,
      notFound: 'grant_not_found',
    }),
    // The audit log has one line for the request, and one for each login.
    {
      method: 'DELETE',
      path: '/grants',
      prepare({ request }) {
        const query = new URLSearchParams(request.query);
        return {
          action: 'end_grants',
          target: describeSelection(query),
          async run(note) {
            const selection = readGrantSelection(query, issuers);
            if (broker === undefined) return fail('bad_request', { details: NO_GRANTS });
            const { ended, failed } = await broker.ends.endSelectedGrants(
              selection,
              'operator',
              ({ id }) => note({ action: 'end_grant', target: id }),
            );
            if (failed > 0)
              fail('grants_not_ended', {
                details: `Logins that have ended: ${ended}. Still there, because the store failed: ${failed}. Send the request again.`,
              });
            return createJsonReply(200, { ended });
          },
        };
      },
    },
  ];
}

/** @throws GatewayError `bad_request` if the query does not select logins, or has other parameters. */
function readGrantSelection(query: URLSearchParams, issuers: Issuers): GrantSelection {
  if (query.get('all') === 'true' && query.size === 1) return { everybody: true };
  if (isClear(query, OF_GRANTS)) {
    const user = readSelectedUser(query, issuers);
    const client = query.get('client') ?? undefined;
    if (user !== undefined) return { user, ...(client !== undefined && { client }) };
    if (client !== undefined) return { client };
  }
  return fail('bad_request', {
    details:
      'Name the logins to end: user=SUB, client=ID, or both, each once and with a value; or only all=true, for all users. issuer=URL with user=SUB names a user of an issuer other than OIDC_ISSUER.',
  });
}

const OF_GRANTS = new Set(['user', 'issuer', 'client']);

const GRANTS_OF_USER = 50;

const NO_GRANTS =
  'In proxy mode clients have tokens from the provider, which cannot be revoked here. Block the account at the provider.';

const USER_COLUMN = { title: 'User', member: 'user', kind: 'user' } as const;

const GRANTS_TABLE: AdminTable = {
  group: 'people',
  tab: 'Logins',
  title: 'Logins',
  about:
    'The clients that may act for each user. When you end a login, its next call is refused, on every replica.',
  none: 'There are none.',
  rows: 'grants',
  isSearchable: true,
  columns: [
    USER_COLUMN,
    { title: 'Client', member: 'client', kind: 'client', none: 'unnamed' },
    { title: 'Redirects to', member: 'client.redirectHost', none: 'logs in as itself' },
    { title: 'Logged in', member: 'createdAt', kind: 'time' },
    { title: 'Refreshed', member: 'refreshedAt', kind: 'time' },
    { title: 'Checked at the provider', member: 'renewedAt', kind: 'time' },
    { title: 'Provider unreachable since', member: 'renewalFailsSince', kind: 'time' },
    { title: 'For', member: 'resources', kind: 'code' },
  ],
  acts: [
    {
      label: 'Log out',
      question:
        'Log {user} out of {client}? Its next call is refused, and the user has to log in again.',
      answer: 'Log out',
      path: '/grants/{id}',
    },
    {
      label: 'Log out everywhere',
      question:
        'Log {user} out of all clients? Their next calls are refused. To keep the user out, block the account at the provider first.',
      answer: 'Log out everywhere',
      path: '/grants',
      query: ['user', 'issuer'],
    },
  ],
};

const NO_GRANTS_TABLE: AdminTable = {
  group: 'people',
  tab: 'Logins',
  title: 'Logins',
  none: 'In proxy mode clients have access tokens from the provider, which the gateway cannot revoke. To lock out a user, block the account at the provider.',
  rows: 'grants',
  columns: [],
};

/** The issuer of the clients' tokens: nothing is known here about the provider's own. */
const NONE: JsonObject = { tokens: 'provider', grants: [] };

/** Never a token. */
function describeGrant(grant: Grant, issuers: Issuers): JsonObject {
  const { id, user, client, scopes, resources, createdAt, issued, renewedAt } = grant;
  return {
    id,
    ...describeUser(user, issuers),
    ...describeGrantPerson(grant),
    client: { id: client.id, name: readShort(client.name), redirectHost: client.redirectHost },
    scopes,
    resources,
    createdAt: renderTime(createdAt),
    refreshedAt: issued.issuedAt > createdAt ? renderTime(issued.issuedAt) : undefined,
    renewedAt: renewedAt > createdAt ? renderTime(renewedAt) : undefined,
    renewalFailsSince: renderTime(grant.renewalFailedAt),
  };
}

// §22.2: open sessions, and callers without one, by person.

export function createSessionPanels(
  { store, clock }: Runtime,
  found: FoundPeople,
  endSession: (id: string) => Promise<boolean>,
): readonly AdminPanel[] {
  const { issuers, people, recentCallers } = found;

  async function readSessions(request: PageRequest, user?: UserIdentity) {
    const { items, next } = await store.listSessions(request, user);
    const named = items.map(async (listed) => ({
      listed,
      person: await people.open(listed.record.person, listed.record.sessionId),
    }));
    return { items: await Promise.all(named), next };
  }

  /** Finds people by a part of their user ID, e-mail or name. */
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

  return [
    {
      method: 'GET',
      path: '/sessions',
      table: SESSIONS_TABLE,
      async show(query) {
        const text = query.get('person') ?? '';
        const reading =
          text === ''
            ? readSessions(readPageRequest(query), readSelectedUser(query, issuers))
            : findSessions(readAdminPageRequest(query), text);
        const [page, active] = await Promise.all([reading, store.countSessions()]);
        const sessions = page.items.map((session) => describeSession(session, issuers));
        return { sessions, active, ...renderNext(page) };
      },
    },
    // Users who called without a session.
    {
      method: 'GET',
      path: '/callers',
      table: CALLERS_TABLE,
      async show(query) {
        const request = readPageRequest(query);
        const text = query.get('person') ?? '';
        const isMeant = ({ user, person }: RecentCaller) => matchesPerson(text, user.sub, person);
        const page = await (text === ''
          ? recentCallers.list(request)
          : lookThrough(recentCallers.list, isMeant, { from: request.from, clock }));
        const callers = page.items.map(({ user, person, lastSeenAt }) => ({
          ...describeUser(user, issuers),
          ...person,
          lastSeenAt,
        }));
        return { callers, ...renderNext(page) };
      },
    },
    endById('/sessions/:id', {
      action: 'end_session',
      isId: isSessionId,
      end: endSession,
      notFound: 'session_to_end_not_found',
    }),
  ];
}

const SESSIONS_TABLE: AdminTable = {
  group: 'people',
  tab: 'Sessions',
  title: 'Sessions',
  none: 'There are none.',
  rows: 'sessions',
  count: 'active',
  isSearchable: true,
  columns: [
    USER_COLUMN,
    { title: 'Client', member: 'client', kind: 'client', none: 'unnamed' },
    { title: 'Server', member: 'server' },
    { title: 'Revision', member: 'protocolVersion' },
    { title: 'Opened', member: 'createdAt', kind: 'time' },
    { title: 'Last used', member: 'lastUsedAt', kind: 'time' },
    { title: 'Ends', member: 'expiresAt', kind: 'time' },
    { title: 'Session ID', member: 'id', kind: 'code' },
  ],
  acts: [
    {
      label: 'End session',
      question:
        'End this session, {user}, {client}? Its client opens another one at its next call, as long as its token is valid.',
      answer: 'End it',
      path: '/sessions/{id}',
    },
  ],
};

const CALLERS_TABLE: AdminTable = {
  group: 'people',
  tab: 'Users',
  title: 'Users',
  about: 'Users active in the last 24 hours (accurate to 5 minutes).',
  none: 'There are none.',
  rows: 'callers',
  isSearchable: true,
  columns: [USER_COLUMN, { title: 'Last seen', member: 'lastSeenAt', kind: 'time' }],
};

interface PersonsSession {
  readonly listed: ListedSession;
  readonly person: Person;
}

/** The last sessions of each person who was searched for. */
const SESSIONS_OF_USER = 50;

function describeSession({ listed, person }: PersonsSession, issuers: Issuers): JsonObject {
  const { record, expiresAt } = listed;
  const { sessionId: id, server, protocolVersion } = record;
  const owner = readOwner(record);
  const info = parseObject(record.clientInfo ?? '');
  return {
    id,
    ...(owner && describeUser(owner, issuers)),
    ...person,
    server,
    protocolVersion,
    // As the client describes itself.
    client: info && {
      name: readShort(info.name),
      title: readShort(info.title),
      version: readShort(info.version),
    },
    createdAt: renderTime(record.createdAt),
    lastUsedAt: renderTime(record.lastAccessedAt),
    expiresAt: renderTime(expiresAt),
  };
}
