// §2.1: a session as a Redis hash, and back.
import { checkRecordVersion } from '../record-version.ts';
import type { SessionRecord } from '../store.ts';

/** Field, value, field, value … as HSET takes them. */
export const toHashFields = (session: SessionRecord): readonly string[] =>
  Object.entries(session).flatMap(([field, value]) =>
    value === undefined ? [] : [field, String(value)],
  );

/** The fields that are read, in the order in which `parseSessionFields` takes their values. */
export const SESSION_FIELDS = [
  'sessionId',
  'userId',
  'lastAccessedAt',
  'createdAt',
  'protocolVersion',
  'clientInfo',
  'clientCapabilities',
  'logLevel',
  'server',
  'version',
] as const;

/** For operators; calls do not read it. */
export const PERSON_FIELD = 'person';

/**
 * The session that HMGET of `SESSION_FIELDS` found, undefined when there is none.
 *
 * @throws Error when the hash is not a session: somebody else wrote it.
 */
export function parseSessionFields(values: readonly unknown[]): SessionRecord | undefined {
  const [
    sessionId,
    userId,
    lastAccessedAt,
    createdAt,
    protocolVersion,
    clientInfo,
    clientCapabilities,
    logLevel,
    server,
    version,
  ] = values;
  if (typeof sessionId !== 'string' || typeof protocolVersion !== 'string') {
    if (values.every((value) => value === null)) return undefined;
    throw new Error('A session in Redis is damaged');
  }
  checkRecordVersion(readString(version), 'A session in Redis');
  const record = {
    sessionId,
    createdAt: readTime(createdAt),
    lastAccessedAt: readTime(lastAccessedAt),
    protocolVersion,
    userId: readString(userId),
    clientInfo: readString(clientInfo),
    clientCapabilities: readString(clientCapabilities),
    logLevel: readString(logLevel),
    server: readString(server),
  };
  if (Number.isNaN(record.createdAt + record.lastAccessedAt)) {
    throw new Error('A session in Redis is damaged');
  }
  return record;
}

const readString = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;

/** Epoch milliseconds; NaN where there are none. */
const readTime = (value: unknown): number => (value === null ? Number.NaN : Number(value));
