// §24: by whose connection a server is asked where users log in themselves.
import type { ConnectionOwner, ConnectionServer } from '../../connections/connection.ts';
import type { ConnectionParts } from '../../connections/connections.ts';
import { nameConnectionOwner } from '../../connections/records/place.ts';
import type { UserContext } from '../../endpoint/message.ts';
import {
  ConnectionNeeded,
  CredentialError,
  type LoginAccess,
  type UpstreamCaller,
  type UpstreamLogins,
} from '../upstream.ts';

export type Logins = Omit<UpstreamLogins, 'noteChange' | 'peekConnectionId'>;

/** `parts` are undefined where nobody can connect. */
export function createLogins(server: ConnectionServer, parts: ConnectionParts | undefined): Logins {
  const isShared = server.auth.owner === 'shared';

  function findOwner({ user }: UpstreamCaller): ConnectionOwner | undefined {
    if (isShared) return 'shared';
    return user === undefined || user.grant?.isMachine ? undefined : toOwner(user);
  }

  return {
    findOwner,
    getAccess(caller) {
      const owner = findOwner(caller);
      if (parts === undefined) return NOBODY;
      if (owner === undefined) return caller.user === undefined ? UNKNOWN : MACHINE;
      return parts.connections.getAccess(owner, server);
    },
    async describe(caller) {
      const owner = findOwner(caller);
      return owner && parts?.connections.describe(owner, server);
    },
  };
}

/** Whether the caller's requests go by the connection of this owner. */
export function isCallerOf(
  { findOwner }: Pick<UpstreamLogins, 'findOwner'>,
  caller: UpstreamCaller,
  owner: ConnectionOwner,
): boolean {
  const own = findOwner(caller);
  return own !== undefined && nameConnectionOwner(own) === nameConnectionOwner(owner);
}

const toOwner = ({ sub, issuer }: UserContext): ConnectionOwner => ({ sub, issuer });

const NOBODY: LoginAccess = {
  kind: 'impossible',
  reason: 'each user logs in at it, which takes a running gateway with OAUTH_MODE=broker',
};

const UNKNOWN: LoginAccess = {
  kind: 'impossible',
  reason: 'each user logs in at it, and this caller has not logged in here',
};

const MACHINE: LoginAccess = {
  kind: 'impossible',
  reason:
    'each user logs in at it in a browser, and a client that logs in as itself has none; only the operator of this service can change that ("owner": "shared")',
};

/** Why nothing is sent. */
export function toLoginError(access: Exclude<LoginAccess, { kind: 'active' }>): CredentialError {
  return access.kind === 'unavailable' || access.kind === 'impossible'
    ? new CredentialError(access.reason)
    : new ConnectionNeeded({ why: access.reason, scopes: access.scopes });
}
