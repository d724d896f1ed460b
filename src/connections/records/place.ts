// §24: where a connection lies: under its owner and its server, and nowhere else.
import { hashSha256 } from '../../platform/ids.ts';
import { nameOwner, withoutDefault } from '../../store/owner.ts';
import type { ConnectionOwner } from '../connection.ts';

export interface Place {
  /** Without the default issuer. */
  readonly owner: ConnectionOwner;
  /** Tells owners apart. */
  readonly ownerName: string;
  readonly server: string;
  /** Of owner and server, for keys. */
  readonly hash: string;
}

/** No user is named so: what `nameOwner` writes as JSON has two parts. */
const SHARED = '["shared"]';

export function createPlaces(defaultIssuer: string | undefined) {
  return function findPlace(given: ConnectionOwner, server: string): Place {
    const owner = given === 'shared' ? given : withoutDefault(given, defaultIssuer);
    const ownerName = nameConnectionOwner(owner);
    return { owner, ownerName, server, hash: hashSha256(JSON.stringify([ownerName, server])) };
  };
}

export type FindPlace = ReturnType<typeof createPlaces>;

export const nameConnectionOwner = (owner: ConnectionOwner): string =>
  owner === 'shared' ? SHARED : nameOwner(owner);
