// Sessions in lmdb, each until it expires.
import type { Database } from 'lmdb';
import type { Clock } from '../../clock.ts';
import { buildSessionKey } from '../keys.ts';
import type { SessionRecord } from '../store.ts';
import {
  createRecord,
  type ExpiringRecord,
  readExpiry,
  readUnexpired,
} from './expiring-records.ts';
import type { DataFolder } from './folder.ts';

/** What writes is to be called inside a transaction. */
export interface SessionRecords {
  /**
   * Undefined when there is none, or when it has expired.
   *
   * @throws Error when the record is damaged, or of a later version.
   */
  read(id: string): SessionRecord | undefined;
  /** Epoch milliseconds; 0 where there is none, or a damaged one. */
  readExpiry(id: string): number;
  /** Of a session that may have expired, or be damaged. */
  readOwner(id: string): string | undefined;
  put(id: string, session: SessionRecord, expiresAt: number): void;
  remove(id: string): void;
}

export interface SessionRecordsOptions extends Pick<DataFolder, 'root' | 'ensureOpen'> {
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
}

export function openSessionRecords(options: SessionRecordsOptions): SessionRecords {
  const { root, ensureOpen, sessionKeyPrefix, clock } = options;
  const records: Database<ExpiringRecord<SessionRecord>, string> = root.openDB({
    name: 'sessions',
  });
  const buildKey = (id: string) => buildSessionKey(sessionKeyPrefix, id);

  return {
    read(id) {
      ensureOpen();
      return readUnexpired(records, buildKey(id), clock.now());
    },
    readExpiry: (id) => readExpiry(records, buildKey(id)),
    readOwner(id) {
      try {
        return records.get(buildKey(id))?.value.userId;
      } catch {
        return undefined;
      }
    },
    put(id, session, expiresAt) {
      records.put(buildKey(id), createRecord(session, expiresAt));
    },
    remove(id) {
      records.remove(buildKey(id));
    },
  };
}
