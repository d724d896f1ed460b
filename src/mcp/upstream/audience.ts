// §18.4: who is told the same by a server.

import { hash } from 'node:crypto';
import { nameOwner } from '../../store/owner.ts';
import { GATEWAY_CALLER, type UpstreamCaller } from './upstream.ts';

/** A name for each user and client where the server can tell them apart (`isPersonal`), else one for all. */
export type NameAudience = (caller: UpstreamCaller) => string;

export const createNameAudience = (isPersonal: boolean): NameAudience =>
  isPersonal ? nameCaller : () => EVERYBODY;

export const EVERYBODY = '';

/**
 * An account of a server is one audience, whoever uses it. Users choose their names: as a hash none can be taken for the
 * gateway itself, and all are of one length.
 */
const nameCaller: NameAudience = (caller) =>
  caller === GATEWAY_CALLER
    ? 'gateway'
    : (caller.connectionId ??
      hash(
        'sha256',
        JSON.stringify([caller.user && nameOwner(caller.user), caller.clientId]),
        'base64url',
      ));
