// §24: what was read of connections a moment ago, so that most calls wait for nothing. Bounded: it does not grow with users.
import { createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ConnectionServer } from '../connection.ts';
import type { ActiveAccess } from '../connections.ts';
import { type ConnectionRecord, isForServer } from '../records/connection-record.ts';
import type { Place } from '../records/place.ts';

/** Of all users and servers; tokens have 16 KiB at most, and 2 KiB mostly. */
const MAX_KNOWN = 4000;
const KNOWN_MS = 30_000;
const FORGOTTEN_MS = 60_000;
const RENEWED_BEFORE_MS = 60_000;

export interface KnownAccess {
  /** Only what is for this server. */
  get(place: Place, server: Pick<ConnectionServer, 'url'>): ActiveAccess | undefined;
  /** To be taken before a record is read, and given to `note`: what was forgotten meanwhile is not known again by it. */
  beginReading(): number;
  note(place: Place, record: ConnectionRecord, since: number): ActiveAccess;
  forget(place: Place): void;
}

interface Known {
  readonly access: ActiveAccess;
  readonly record: ConnectionRecord;
}

export function createKnownAccess(clock: Clock): KnownAccess {
  const known = createExpiringMap<Known>(MAX_KNOWN, clock.now);
  let forgets = 0;
  /** Which of all it was; for longer than anything is read. */
  const forgotten = createExpiringMap<number>(MAX_KNOWN, clock.monotonic);

  return {
    get({ hash }, server) {
      const found = known.get(hash);
      return found !== undefined && isForServer(found.record, server) ? found.access : undefined;
    },
    beginReading: () => forgets,
    note({ hash }, record, since) {
      const access = toAccess(record);
      if ((forgotten.get(hash) ?? 0) > since) return access;
      known.set(
        hash,
        { access, record },
        Math.min(clock.now() + KNOWN_MS, findRenewalTime(record)),
      );
      return access;
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
