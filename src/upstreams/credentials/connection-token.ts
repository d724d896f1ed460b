// §24.4: the token of a connection goes with the requests that were begun by it, and by no other.
import type { ConnectionServer } from '../../connections/connection.ts';
import type { ActiveAccess, ConnectionParts } from '../../connections/connections.ts';
import { createLogins, type Logins, toLoginError } from '../connect/logins.ts';
import { CredentialError, type LoginAccess, type UpstreamCaller } from '../upstream.ts';
import { type GetToken, type NoteRefusal, readToken } from './credential-type.ts';

/** The gateway itself has none: what it asks without a connection, anybody may ask. */
export const createGetConnectionToken = ({ getAccess }: Logins): GetToken =>
  function getConnectionToken(caller) {
    if (caller.connectionId === undefined) return undefined;
    const access = getAccess(caller);
    return access instanceof Promise
      ? access.then((later) => takeToken(later, caller))
      : takeToken(access, caller);
  };

function takeToken(access: LoginAccess, { connectionId }: UpstreamCaller): string {
  if (access.kind !== 'active') throw toLoginError(access);
  // The session at the server is another account's.
  if (access.connectionId !== connectionId) throw new CredentialError(OTHER_ACCOUNT);
  return access.token;
}

const OTHER_ACCOUNT = 'its user has just connected another account; call again';

export function createNoteConnectionRefusal(
  server: ConnectionServer,
  parts: ConnectionParts | undefined,
): NoteRefusal {
  const { findOwner } = createLogins(server, parts);

  return async function noteRefusal(caller, headers, refusal, isRefusedItself) {
    const { connectionId } = caller;
    const owner = findOwner(caller);
    if (parts === undefined || owner === undefined || connectionId === undefined) return false;
    const used: ActiveAccess = { kind: 'active', token: readToken(headers), connectionId };
    const access = await parts.connections.noteRefusal(owner, server, used, refusal, () =>
      isRefusedItself().catch(() => false),
    );
    return takeToken(access, caller) !== used.token;
  };
}
