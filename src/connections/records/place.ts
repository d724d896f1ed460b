// §24: where a connection lies: under its owner and its server, and nowhere else.

import { type ConnectionOwner, nameConnectionOwner } from '../../mcp/upstream/connection.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { withoutDefault } from '../../store/owner.ts';

export interface ConnectionPlace {
  /** Without the default issuer. */
  readonly owner: ConnectionOwner;
  /** Whose user the owner is, also where that is the default one, which may change. Undefined for what is shared. */
  readonly ownerIssuer: string | undefined;
  /** Tells owners apart. */
  readonly ownerName: string;
  readonly server: string;
  /** Of owner and server, for keys. */
  readonly hash: string;
}

/** Of all users and servers. Every call asks where its connection lies, and a hash takes longer than all the rest of it. */
const MAX_REMEMBERED = 4000;

export function createPlaces(defaultIssuer: string | undefined) {
  const remembered = createBoundedMap<string, ConnectionPlace>(MAX_REMEMBERED);

  return function findPlace(given: ConnectionOwner, server: string): ConnectionPlace {
    const owner = given === 'shared' ? given : withoutDefault(given, defaultIssuer);
    const ownerName = nameConnectionOwner(owner);
    const name = JSON.stringify([ownerName, server]);
    const known = remembered.get(name);
    if (known !== undefined) return known;
    const ownerIssuer = given === 'shared' ? undefined : (given.issuer ?? defaultIssuer);
    const place = { owner, ownerIssuer, ownerName, server, hash: hashSha256(name) };
    remembered.set(name, place);
    return place;
  };
}

export type FindPlace = ReturnType<typeof createPlaces>;
