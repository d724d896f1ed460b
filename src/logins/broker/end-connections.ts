// §24.6: CONNECTIONS_END_WITH_LOGOUT: whose logins all end, of theirs the connections to servers end, too.
import type { Connections } from '../../mcp/upstream/connections.ts';
import type { Log } from '../../platform/log.ts';
import { createWorkQueue } from '../../platform/work-queue.ts';
import { withoutDefault } from '../../store/owner.ts';
import { nameUser, type UserIdentity } from '../grants/grant.ts';
import { hashUser } from '../grants/token-codec.ts';
import type { GrantSelection } from './logouts.ts';

/**
 * Of the users whom the selection is about, and those whose logins ended by it. Nobody waits for it: servers may be slow,
 * or down, and the logout has happened. What fails is told in the log.
 */
export type EndConnections = (
  selection: GrantSelection,
  ended: readonly { readonly user: UserIdentity | undefined }[],
) => void;

export interface EndConnectionsDeps {
  readonly connections: Pick<Connections, 'endOfUser'>;
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
  readonly log: Log;
}

/** Users at a time: each may have a connection to every server, all of which are asked. */
const MAX_RUNNING = 4;
/** Where everybody is logged out. */
const MAX_WAITING = 10_000;

export function createEndConnections({
  connections,
  issuer,
  log,
}: EndConnectionsDeps): EndConnections {
  const queue = createWorkQueue({
    maxRunning: MAX_RUNNING,
    maxWaiting: MAX_WAITING,
    createRefusal: () => new Error('Too many users were logged out at once'),
  });

  async function endOf(user: UserIdentity): Promise<void> {
    const owner = withoutDefault(user, issuer);
    try {
      const { failed } = await queue.run(() => connections.endOfUser(owner, 'logout'));
      if (failed > 0) log.warn(NOT_REVOKED, { ...nameUser(user), failed });
    } catch (cause) {
      log.error(NOT_ENDED, { ...nameUser(user), cause });
    }
  }

  return function endConnections(selection, ended) {
    for (const user of selectUsers(selection, ended)) void endOf(user);
  };
}

const NOT_REVOKED =
  'A user was logged out, and their connections were deleted, but not every server could be told. Tokens there stay valid until they expire, or until the user ends them at the server.';
const NOT_ENDED =
  'A user was logged out, but their connections to servers could not be ended. End them on the page for operators (/admin).';

/** One client that is logged out, or all logins by it, is no end of a user. */
function selectUsers(
  selection: GrantSelection,
  ended: Parameters<EndConnections>[1],
): Iterable<UserIdentity> {
  const { kind } = selection;
  if (kind === 'client' || (kind === 'user' && selection.client !== undefined)) return [];
  const named = kind === 'all' ? undefined : selection.user;
  const users = [named, ...ended.map(({ user }) => user)].filter((user) => user !== undefined);
  return new Map(users.map((user) => [hashUser(user), user])).values();
}
