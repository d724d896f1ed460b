// §24: finds the connection for requests to a server that users log in to themselves.
import type { UserContext } from '../../http/endpoint/message.ts';
import { type ConnectionTokens, readBearer } from '../../mcp/upstream/connection-ports.ts';
import type {
  ActiveAccess,
  ConnectionOwner,
  ConnectionPorts,
  ConnectionServer,
} from '../../mcp/upstream/connections.ts';
import {
  ConnectionNeeded,
  CredentialError,
  type LoginAccess,
  type UpstreamCaller,
  type UpstreamLogins,
} from '../../mcp/upstream/upstream.ts';

export type Logins = Omit<UpstreamLogins, 'noteChange' | 'peekConnectionId'>;

/** `parts` is undefined if users cannot connect. */
export function createLogins(server: ConnectionServer, parts: ConnectionPorts | undefined): Logins {
  const isShared = server.auth.owner === 'shared';

  function findOwner({ user }: UpstreamCaller) {
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

const toOwner = ({ sub, issuer }: UserContext): ConnectionOwner => ({ sub, issuer });

const NOBODY: LoginAccess = {
  kind: 'impossible',
  reason: 'each user logs in to it, which requires a running gateway with OAUTH_MODE=broker',
};

const UNKNOWN: LoginAccess = {
  kind: 'impossible',
  reason: 'each user logs in to it, and this caller has not logged in here',
};

const MACHINE: LoginAccess = {
  kind: 'impossible',
  reason:
    'each user logs in to it in a browser, and a client that logs in as itself has none; only the operator of this service can change that ("owner": "shared")',
};

/** Explains why nothing is sent. */
export function toLoginError(access: Exclude<LoginAccess, { kind: 'active' }>): CredentialError {
  return access.kind === 'unavailable' || access.kind === 'impossible'
    ? new CredentialError(access.reason)
    : new ConnectionNeeded({ why: access.reason, scopes: access.scopes });
}

// §24.4: a connection's token is sent only with requests that began with that connection.

export const createConnectionTokens = (parts: ConnectionPorts): ConnectionTokens => ({
  createGetToken(server) {
    const { getAccess } = createLogins(server, parts);
    return async function getConnectionToken(caller) {
      // The gateway itself has no connection: it sends only requests that any caller may send.
      return caller.connectionId === undefined
        ? undefined
        : takeToken(await getAccess(caller), caller);
    };
  },
  createReplaceRefusedToken(server) {
    const { findOwner } = createLogins(server, parts);
    return async function replaceRefusedToken(caller, headers, refusal, isRefusedItself) {
      const { connectionId } = caller;
      const owner = findOwner(caller);
      if (owner === undefined || connectionId === undefined) return false;
      const used: ActiveAccess = { kind: 'active', token: readBearer(headers), connectionId };
      const access = await parts.connections.replaceRefusedToken(owner, server, used, {
        ...refusal,
        isRefusedItself: () => isRefusedItself().catch(() => false),
      });
      return takeToken(access, caller) !== used.token;
    };
  },
});

function takeToken(access: LoginAccess, { connectionId }: UpstreamCaller) {
  if (access.kind !== 'active') throw toLoginError(access);
  // The session at the server belongs to another account.
  if (access.connectionId !== connectionId) throw new CredentialError(OTHER_ACCOUNT);
  return access.token;
}

const OTHER_ACCOUNT = 'its user has just connected another account; call again';
