// §2.1: a session as a Redis hash, and back.
import { checkRecordVersion } from '../record-version.ts';
import type { SessionChanges, SessionRecord } from '../store.ts';
import type { CommandRunner } from './command-runner.ts';

/** Field, value, field, value … as HSET takes them. */
export const toHashFields = (session: SessionRecord | SessionChanges): readonly string[] =>
  Object.entries(session).flatMap(([field, value]) => [field, String(value)]);

export async function readSession(
  commands: CommandRunner,
  key: string,
): Promise<SessionRecord | undefined> {
  const fields = await commands.run((client) => client.hgetall(key));
  return parseSessionHash(Object.entries(fields).flat());
}

/**
 * The session that HGETALL found, undefined when there is none.
 *
 * @throws Error when the hash is not a session: somebody else wrote it.
 */
export function parseSessionHash(flat: unknown): SessionRecord | undefined {
  if (!Array.isArray(flat) || flat.length === 0) return undefined;
  const fields = new Map<string, string>();
  for (let at = 0; at < flat.length; at += 2) fields.set(String(flat[at]), String(flat[at + 1]));
  checkRecordVersion(fields.get('version'), 'A session in Redis');
  const sessionId = fields.get('sessionId');
  const protocolVersion = fields.get('protocolVersion');
  const createdAt = Number(fields.get('createdAt'));
  const lastAccessedAt = Number(fields.get('lastAccessedAt'));
  const userId = fields.get('userId');
  const clientInfo = fields.get('clientInfo');
  const clientCapabilities = fields.get('clientCapabilities');
  const logLevel = fields.get('logLevel');
  if (
    sessionId === undefined ||
    protocolVersion === undefined ||
    Number.isNaN(createdAt + lastAccessedAt)
  ) {
    throw new Error('A session in Redis is damaged');
  }
  return {
    sessionId,
    createdAt,
    lastAccessedAt,
    protocolVersion,
    ...(userId !== undefined && { userId }),
    ...(clientInfo !== undefined && { clientInfo }),
    ...(clientCapabilities !== undefined && { clientCapabilities }),
    ...(logLevel !== undefined && { logLevel }),
  };
}
