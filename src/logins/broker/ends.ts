// §5.11: ends one or many logins, for any reason: here at once, and at the provider if it supports revocation.

import type { RevokeTokens } from '../../http/oauth-client/provider-api.ts';
import type { Connections } from '../../mcp/upstream/connections.ts';
import { createTurns } from '../../platform/clock.ts';
import { createWorkQueue } from '../../platform/work-queue.ts';
import { withoutDefault } from '../../store/keys.ts';
import { readPages } from '../../store/page.ts';
import type { Audit } from '../../telemetry/audit/audit.ts';
import { type MachineClients, toMachineUser } from '../auth/machine-clients.ts';
import { type Grant, getClientMark, nameUser, type UserIdentity } from '../grants/grant.ts';
import type { GrantOwner, Grants } from '../grants/grants.ts';
import { hashUser } from '../grants/token-codec.ts';
import { describeLogin } from '../request/login-facts.ts';
import { createLogouts, type GrantEndedBy, type GrantSelection, isMeant } from './logouts.ts';
import type { BrokerRuntime } from './runtime.ts';

export type LoginEnds = ReturnType<typeof createLoginEnds>;

/** A login that has ended, or never became a grant. */
export interface EndedLogin extends Pick<Grant, 'provider'> {
  /** Undefined if the user never became known. */
  readonly user: UserIdentity | undefined;
}

/** Limit of concurrent revocations, to leave room for callers that wait for one. */
const MAX_REVOKED = 8;
/** Refused logins are unlimited in number; beyond this limit, their tokens are left to expire. */
const MAX_WAITING = 10_000;
/** Batch size of one selection, to leave room for others. */
const MAX_REVOKED_AT_ONCE = 100;
/** A grant that is refreshed while the list is read moves to the front: the list is read again until a pass does not end any. */
const MAX_PASSES = 10;
/** If the store fails, it fails for all of them in the same way. */
const MAX_LOGGED = 10;

export function createLoginEnds(
  runtime: BrokerRuntime,
  grants: Grants,
  revoke: RevokeTokens,
  machineClients: MachineClients,
) {
  const { clock, log, oauth } = runtime;
  const { connections } = runtime.servers;
  const { issuer, quirks } = oauth.provider;
  const logouts = createLogouts(runtime);
  const queue = createWorkQueue({
    maxRunning: MAX_REVOKED,
    maxWaiting: MAX_WAITING,
    createRefusal: () => new Error('Too many logins have ended that the provider was not told of'),
  });
  const endConnections =
    connections && oauth.tokens.endsConnections
      ? createEndConnections(runtime, connections)
      : undefined;
  endOutdatedGrants(runtime, grants, machineClients, (id) => endHere(id, 'configuration'));

  /** RFC 7009: best effort. Never rejects, and does not report the outcome. */
  async function revokeAtProvider({ user, provider }: EndedLogin) {
    // From before a change of OIDC_ISSUER: no provider is sent the tokens of another.
    if (user !== undefined && user.issuer !== issuer) return;
    // The provider may end all logins of the user along with this one, which must not log out the user's other clients.
    if (quirks.revokesAllOfUser) {
      if (user === undefined) return;
      // If the look-up fails, the login may be shared. Its tokens are left to expire.
      const others = await grants.listOfUser(user).catch(() => undefined);
      if (others === undefined || others.length > 0) return;
    }
    await revoke(provider);
  }

  /** Queued, for callers that do not wait: there may be thousands, and the provider may be slow. */
  const revokeAtProviderInTurn = ({ user, provider }: EndedLogin) =>
    queue.run(() => revokeAtProvider({ user, provider })).catch(() => {});

  /** Ends a grant, for all callers: writes one line of the log, and does not contact the provider. */
  async function endHere(id: string, by: GrantEndedBy) {
    const ended = await grants.end(id);
    if (ended !== undefined) {
      const { client, user } = ended;
      const login = { clientId: client.id, clientName: client.name, ...nameUser(user) };
      log.info('Logged out.', { ...describeLogin(login), grant: id, by });
    }
    return ended;
  }

  async function endGrant(
    id: string,
    by: GrantEndedBy,
    revokeTokens: (ended: EndedLogin) => Promise<void> | undefined = revokeAtProvider,
  ) {
    // Before the grant ends: if the store fails, the caller still finds it.
    const meant = isMeant(by) ? await grants.find(id) : undefined;
    if (meant !== undefined) await logouts.noteOfOne(meant);
    const ended = await endHere(id, by);
    if (ended !== undefined) await revokeTokens(ended);
    return ended;
  }

  async function listIds(selection: GrantSelection): Promise<readonly string[]> {
    const { user, session } = selection;
    const ofUser: GrantOwner = user === undefined ? { kind: 'all' } : { kind: 'user', user };
    const owner = session === undefined ? ofUser : ({ kind: 'session', session } as const);
    const belongs = createFilter(selection);
    const turns = createTurns(clock);
    const ids: string[] = [];
    const pages = readPages(async (request) => {
      // Without a filter, grants that cannot be read here end, too.
      if (belongs === undefined) return grants.listIds(request, owner);
      const { items, next } = await grants.list(request, owner);
      return { items: items.filter(belongs).map(({ id }) => id), next };
    });
    for await (const page of pages) {
      ids.push(...page);
      if (turns.isOver()) await turns.next();
    }
    return ids;
  }

  return {
    logouts,
    revokeAtProvider,
    revokeAtProviderInTurn,
    /**
     * Ends the grant, and waits until the provider has been asked to revoke its tokens. Resolves to the ended grant; undefined if
     * it does not exist or another request ended it first.
     */
    endGrant: (id: string, by: GrantEndedBy) => endGrant(id, by),
    /** The same, without waiting for the provider, which is asked in the background. */
    endGrantSoon: (id: string, by: GrantEndedBy) =>
      endGrant(id, by, (ended) => void revokeAtProviderInTurn(ended)),
    /**
     * Ends many at once: existing grants, and logins in progress (`Logouts`). Their tokens are revoked afterwards, without waiting:
     * the provider may be down, and there may be thousands. If one cannot be ended, the rest still are.
     *
     * @returns how many have ended, how many remain because the store failed, and the mark of what begins afterwards.
     */
    async endSelectedGrants(
      selection: GrantSelection,
      by: GrantEndedBy,
      noteEnd: (grant: Grant) => void,
    ) {
      // Before the list is read: a login that is not listed yet finds the record.
      const logoutMark = await logouts.note(selection, by);
      // Without their claims: this may be every grant of the gateway, and the provider may be slow.
      const ended: EndedLogin[] = [];
      const failures = new Map<string, unknown>();
      try {
        for (let pass = 0; pass < MAX_PASSES; pass += 1) {
          failures.clear();
          const endedBefore = ended.length;
          for (const id of await listIds(selection)) {
            const grant = await endHere(id, by).catch((cause) => void failures.set(id, cause));
            if (!grant) continue;
            ended.push({ user: grant.user, provider: grant.provider });
            noteEnd(grant);
          }
          if (ended.length === endedBefore) break;
        }
      } finally {
        // Includes those that ended before the store failed.
        void revokeAllAtProvider(ended);
        endConnections?.(selection, ended);
      }
      for (const [grant, cause] of [...failures].slice(0, MAX_LOGGED)) {
        log.error('A login could not be ended.', { grant, cause });
      }
      return { ended: ended.length, failed: failures.size, logoutMark };
    },
  };

  async function revokeAllAtProvider(ended: readonly EndedLogin[]) {
    for (let at = 0; at < ended.length; at += MAX_REVOKED_AT_ONCE) {
      await Promise.all(ended.slice(at, at + MAX_REVOKED_AT_ONCE).map(revokeAtProviderInTurn));
    }
  }
}

/** §21.1: the audit line of a login that was ended. */
export const auditEnd = (
  audit: Audit | undefined,
  { id: grant, user, client }: Grant,
  action: 'account' | 'make_room' | 'provider',
  ip?: string,
): void =>
  audit?.write(
    { event: 'revocation', ...nameUser(user), client: client.id, grant, ip, action },
    { outcome: 'success' },
  );

/** Filters the grants of a list; undefined if all are selected. */
function createFilter({ user, client, session }: GrantSelection) {
  if (client === undefined && session === undefined) return undefined;
  return (grant: Grant) =>
    (client === undefined || grant.client.id === client) &&
    // The grant may have moved to another session meanwhile, and still be listed.
    (session === undefined ||
      (grant.sid === session.sid &&
        (user === undefined || hashUser(grant.user) === hashUser(user))));
}

// §24.6: CONNECTIONS_END_WITH_LOGOUT: if all logins of a user end, the user's connections to servers end, too.

/** Concurrent users: each may have a connection to every server, all of which are asked. */
const MAX_USERS_AT_ONCE = 4;
/** Enough for a logout of all users. */
const MAX_USERS_WAITING = 10_000;

function createEndConnections({ oauth, log }: BrokerRuntime, connections: Connections) {
  const queue = createWorkQueue({
    maxRunning: MAX_USERS_AT_ONCE,
    maxWaiting: MAX_USERS_WAITING,
    createRefusal: () => new Error('Too many users were logged out at once'),
  });

  async function endOf(user: UserIdentity) {
    const owner = withoutDefault(user, oauth.provider.issuer);
    try {
      const { failed } = await queue.run(() => connections.endOfUser(owner, 'logout'));
      if (failed > 0) log.warn(NOT_REVOKED, { ...nameUser(user), failed });
    } catch (cause) {
      log.error(NOT_ENDED, { ...nameUser(user), cause });
    }
  }

  /**
   * Ends the connections of the selected users, and of those whose logins ended by the selection. Runs in the background: servers
   * may be slow or down, and the logout has happened. Failures go to the log.
   */
  return function endConnections(
    { user: named, client }: GrantSelection,
    ended: readonly EndedLogin[],
  ) {
    // Logging out one client does not end the user's connections.
    if (client !== undefined) return;
    const users = [named, ...ended.map(({ user }) => user)].filter((user) => user !== undefined);
    const each = new Map(users.map((user) => [hashUser(user), user]));
    for (const user of each.values()) void endOf(user);
  };
}

const NOT_REVOKED =
  'A user was logged out, and their connections were deleted, but not every server could be reached to revoke its tokens. They stay valid until they expire, or until the user ends them at the server.';
const NOT_ENDED =
  'A user was logged out, but their connections to servers could not be ended. End them on the page for operators (/admin).';

// §13.6: a client that was removed from the configuration file, or changed there, is refused at once, by each replica's own
// configuration. Its open streams end here, including those for users whose assertions it brought (§13.7), and its grants leave the
// lists. Grants of the client as this replica knows it stay: other replicas load the file at different times.

function endOutdatedGrants(
  { oauth, baseUrl, clock, log }: BrokerRuntime,
  grants: Grants,
  machineClients: MachineClients,
  end: (id: string) => Promise<unknown>,
) {
  const isOutdated = (grant: Grant) =>
    getClientMark(grant) !== machineClients.find(grant.client.id)?.mark;

  async function endOfItself(id: string) {
    const listed = await grants.listOfUser(toMachineUser(id, baseUrl));
    for (const grant of listed.filter(isOutdated)) await end(grant.id);
  }

  async function endOfUsers(ids: readonly string[]) {
    const turns = createTurns(clock);
    const found: string[] = [];
    for await (const page of readPages((request) => grants.list(request, { kind: 'all' }))) {
      const ofThem = page.filter(
        (grant) => grant.assertion?.clientMark !== undefined && ids.includes(grant.client.id),
      );
      found.push(...ofThem.filter(isOutdated).map(({ id }) => id));
      if (turns.isOver()) await turns.next();
    }
    for (const id of found) await end(id);
  }

  machineClients.onChange((ids) => {
    const warn = (cause: unknown) =>
      log.warn('Tokens of changed clients stay in the lists until they expire.', {
        clients: ids,
        cause,
      });
    for (const id of ids) endOfItself(id).catch(warn);
    // Grants by assertion belong to users, so only the list of all has them.
    if (oauth.idJag.isEnabled && ids.length > 0) endOfUsers(ids).catch(warn);
  });
}
