// §5.11: logins end, whoever says so, one or many: here at once, and at the provider as far as that can be told.

import type { RevokeTokens } from '../../http/oauth-client/provider-api.ts';
import type { Connections } from '../../mcp/upstream/connections.ts';
import { createTurns } from '../../platform/clock.ts';
import { createWorkQueue } from '../../platform/work-queue.ts';
import { withoutDefault } from '../../store/owner.ts';
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

/** A login that has ended here, or came to nothing. */
export interface EndedLogin extends Pick<Grant, 'provider'> {
  /** Undefined where it never became known who logged in. */
  readonly user: UserIdentity | undefined;
}

/** The most that may be under way, so that there is room for who ends a login and waits. */
const MAX_TOLD = 8;
/** There is no end to logins that are refused; tokens of those for which there is no room here die of age. */
const MAX_WAITING = 10_000;
/** So many of one selection wait for their turn at a time, so that there is room for others. */
const MAX_TOLD_AT_ONCE = 100;
/** A grant that is refreshed while the list is read moves to its front: it is read again until it has none. */
const MAX_PASSES = 10;
/** The store fails for all of them by the same reason. */
const MAX_LOGGED = 10;

/** `connections` are undefined where there are none. */
export function createLoginEnds(
  runtime: BrokerRuntime,
  grants: Grants,
  revoke: RevokeTokens,
  machineClients: MachineClients,
  connections: Connections | undefined,
) {
  const { clock, log, oauth } = runtime;
  const { issuer, quirks } = oauth.provider;
  const logouts = createLogouts(runtime);
  const queue = createWorkQueue({
    maxRunning: MAX_TOLD,
    maxWaiting: MAX_WAITING,
    createRefusal: () => new Error('Too many logins have ended that the provider was not told of'),
  });
  const endConnections =
    connections && oauth.tokens.endsConnections
      ? createEndConnections(runtime, connections)
      : undefined;
  endOutdatedGrants(runtime, grants, machineClients, (id) => endHere(id, 'configuration'));

  /** RFC 7009: as far as that can be told. Never rejects, and never says what came of it. */
  async function tellProvider({ user, provider }: EndedLogin) {
    // From before a change of OIDC_ISSUER: no provider is sent the tokens of another.
    if (user !== undefined && user.issuer !== issuer) return;
    // The provider may take the end of one login for the end of all of its user: the other clients must not be logged out by it.
    if (quirks.revokesAllOfUser) {
      if (user === undefined) return;
      // A login that cannot be looked up may be shared. Its tokens die of age.
      const others = await grants.listOfUser(user).catch(() => undefined);
      if (others === undefined || others.length > 0) return;
    }
    await revoke(provider);
  }

  /** In turn, for what nobody waits for: there may be thousands, and the provider may be slow. */
  const tellProviderInTurn = ({ user, provider }: EndedLogin) =>
    queue.run(() => tellProvider({ user, provider })).catch(() => {});

  /** Every grant that is ended ends here, with one line of the log, and without a word to the provider. */
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
    tell: (ended: EndedLogin) => Promise<void> | undefined = tellProvider,
  ) {
    // Before it ends: where the store fails, whoever asked finds it still there.
    const meant = isMeant(by) ? await grants.find(id) : undefined;
    if (meant !== undefined) await logouts.noteOfOne(meant);
    const ended = await endHere(id, by);
    if (ended !== undefined) await tell(ended);
    return ended;
  }

  async function listIds(selection: GrantSelection): Promise<readonly string[]> {
    const { user, session } = selection;
    const ofUser: GrantOwner = user === undefined ? { kind: 'all' } : { kind: 'user', user };
    const owner = session === undefined ? ofUser : ({ kind: 'session', session } as const);
    const belongs = createFilter(selection);
    const turns = createTurns(clock);
    const ids: string[] = [];
    // The user of each has to be read; without that those end, too, that cannot be read here.
    const pages =
      belongs === undefined
        ? readPages((request) => grants.listIds(request, owner))
        : readPages(async (request) => {
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
    tellProvider,
    tellProviderInTurn,
    /** Resolves to what has ended; undefined where another was faster, or there was none. */
    endGrant: (id: string, by: GrantEndedBy) => endGrant(id, by),
    /** Likewise. Nobody waits until the provider knows. */
    endGrantSoon: (id: string, by: GrantEndedBy) =>
      endGrant(id, by, (ended) => void tellProviderInTurn(ended)),
    /**
     * Ends many at once: those that are there, and what is under way to become one (`Logouts`). The provider is told of them afterwards,
     * and nobody waits for it: it may be down, and there may be thousands. That one cannot be ended stops no other.
     *
     * @returns how many have ended, how many are still there, because the store failed, and the mark of what begins after it.
     */
    async endSelectedGrants(
      selection: GrantSelection,
      by: GrantEndedBy,
      noteEnd: (grant: Grant) => void,
    ) {
      // Before the list is read: what is not in it yet finds the note.
      const logoutMark = await logouts.note(selection, by);
      // Not their claims: there may be all that the gateway has, and the provider may be slow.
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
        // Also of those that had ended when the store failed.
        void tellOfAll(ended);
        endConnections?.(selection, ended);
      }
      for (const [grant, cause] of [...failures].slice(0, MAX_LOGGED)) {
        log.error('A login could not be ended.', { grant, cause });
      }
      return { ended: ended.length, failed: failures.size, logoutMark };
    },
  };

  async function tellOfAll(ended: readonly EndedLogin[]) {
    for (let at = 0; at < ended.length; at += MAX_TOLD_AT_ONCE) {
      await Promise.all(ended.slice(at, at + MAX_TOLD_AT_ONCE).map(tellProviderInTurn));
    }
  }
}

/** §21.1: the line for a login that somebody has ended. */
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

/** Says which of the list are meant; undefined for all of it. */
function createFilter({ user, client, session }: GrantSelection) {
  if (client === undefined && session === undefined) return undefined;
  return (grant: Grant) =>
    (client === undefined || grant.client.id === client) &&
    // Another session may have taken its place meanwhile, and the list have kept it.
    (session === undefined ||
      (grant.sid === session.sid &&
        (user === undefined || hashUser(grant.user) === hashUser(user))));
}

// §24.6: CONNECTIONS_END_WITH_LOGOUT: whose logins all end, of theirs the connections to servers end, too.

/** Users at a time: each may have a connection to every server, all of which are asked. */
const MAX_USERS_AT_ONCE = 4;
/** For when everybody is logged out. */
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
   * Ends those of the users whom the selection is about, and those whose logins ended by it. Nobody waits for it: servers may be slow,
   * or down, and the logout has happened. What fails is told in the log.
   */
  return function endConnections(
    { user: named, client }: GrantSelection,
    ended: readonly EndedLogin[],
  ) {
    // One client that is logged out, or all logins by it, is no end of a user.
    if (client !== undefined) return;
    const users = [named, ...ended.map(({ user }) => user)].filter((user) => user !== undefined);
    const each = new Map(users.map((user) => [hashUser(user), user]));
    for (const user of each.values()) void endOf(user);
  };
}

const NOT_REVOKED =
  'A user was logged out, and their connections were deleted, but not every server could be told. Tokens there stay valid until they expire, or until the user ends them at the server.';
const NOT_ENDED =
  'A user was logged out, but their connections to servers could not be ended. End them on the page for operators (/admin).';

// §13.6: a client of the configuration file that was removed or changed is out by what each replica knows of the file. What it has
// open ends here, also for users whose assertions it brought (§13.7), and its grants leave the lists. What is of the client as this
// replica knows it stays: other replicas load the file at other times.

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
      log.warn('The tokens of clients that were changed are listed until they expire.', {
        clients: ids,
        cause,
      });
    for (const id of ids) endOfItself(id).catch(warn);
    // Clients that bring assertions have grants of users, which only the list of all has.
    if (oauth.idJag.isEnabled && ids.length > 0) endOfUsers(ids).catch(warn);
  });
}
