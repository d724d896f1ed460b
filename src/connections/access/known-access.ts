// §24: what was read of connections a moment ago, so that most calls wait for nothing. Bounded: it does not grow with users.

import type { ConnectionServer } from '../../mcp/upstream/connection.ts';
import type { ActiveAccess } from '../../mcp/upstream/connections.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ConnectionRecord } from '../records/connection-record.ts';
import type { ConnectionPlace } from '../records/place.ts';

/** Of all users and servers; tokens have 16 KiB at most, and 2 KiB mostly. */
const MAX_KNOWN = 4000;
const KNOWN_MS = 30_000;
const FORGOTTEN_MS = 60_000;
const RENEWED_BEFORE_MS = 60_000;
/** A token that is good for so long can still be used while another is on its way, or cannot be had. */
export const RESERVE_MS = 5000;

interface Known extends Pick<ConnectionServer, 'url' | 'auth'> {
  readonly access: ActiveAccess;
}

export interface KnownAccess {
  /** For the server as it was configured when it was noted: with another it may be another. */
  get(place: ConnectionPlace, server: ConnectionServer): ActiveAccess | undefined;
  /** To be taken before a record is read, and given to `note`: what was forgotten meanwhile is not known again by it. */
  beginReading(): number;
  note(
    place: ConnectionPlace,
    server: ConnectionServer,
    record: ConnectionRecord,
    since: number,
  ): ActiveAccess;
  /** The same of one whose renewal has failed: for so long, while it is good. */
  noteForNow(
    place: ConnectionPlace,
    server: ConnectionServer,
    record: ConnectionRecord,
    since: number,
    forMs: number,
  ): ActiveAccess;
  forget(place: ConnectionPlace): void;
}

export function createKnownAccess(clock: Clock): KnownAccess {
  const known = createExpiringMap<Known>(MAX_KNOWN, clock.now);
  let forgets = 0;
  /** Which of all it was; for longer than anything is read. */
  const forgotten = createExpiringMap<number>(MAX_KNOWN, clock.monotonic);

  function noteUntil(
    { hash }: ConnectionPlace,
    { url, auth }: ConnectionServer,
    record: ConnectionRecord,
    since: number,
    until: number,
  ): ActiveAccess {
    const access = toAccess(record);
    if ((forgotten.get(hash) ?? 0) <= since) known.set(hash, { access, url, auth }, until);
    return access;
  }

  return {
    get({ hash }, { url, auth }) {
      const found = known.get(hash);
      return found?.url === url && found.auth === auth ? found.access : undefined;
    },
    beginReading: () => forgets,
    note(place, server, record, since) {
      const until = Math.min(clock.now() + KNOWN_MS, findRenewalTime(record));
      return noteUntil(place, server, record, since, until);
    },
    noteForNow(place, server, record, since, forMs) {
      const { expiresAt = Number.POSITIVE_INFINITY } = record;
      const until = Math.min(clock.now() + forMs, expiresAt - RESERVE_MS);
      return noteUntil(place, server, record, since, until);
    },
    forget({ hash }) {
      known.delete(hash);
      forgets += 1;
      forgotten.set(hash, forgets, clock.monotonic() + FORGOTTEN_MS);
    },
  };
}

export const toAccess = ({ accessToken, id }: ConnectionRecord): ActiveAccess => ({
  kind: 'active',
  token: accessToken,
  connectionId: id,
});

/** A minute before its end; where the whole life of a token is short, in its middle: else each call would renew it. */
export function findRenewalTime({ expiresAt, tokenAt }: ConnectionRecord): number {
  if (expiresAt === undefined) return Number.POSITIVE_INFINITY;
  return expiresAt - Math.min(RENEWED_BEFORE_MS, (expiresAt - tokenAt) / 2);
}
