// Sessions at servers in the store: sealed, so that any replica goes on with them and nobody else can.

import { hashSha256 } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import { buildUpstreamSessionKey } from '../../store/keys.ts';
import { createSealedValues } from '../../store/seal/sealed-records.ts';
import type { UpstreamRuntime } from '../upstream.ts';

/** Each method throws StoreUnavailable where the store does not answer. */
export interface ServerSessionRecords {
  /** Undefined where there is none. */
  read(sessionId: string): Promise<string | undefined>;
  /** The record that stands there then: another replica may have been faster. */
  readOrWrite(sessionId: string, text: string): Promise<string>;
  /**
   * Writes what `change` makes of the record, or nothing where it makes nothing. It is called again where another replica
   * has changed the record meanwhile. Resolves to what it made last.
   */
  update(
    sessionId: string,
    change: (text: string | undefined) => string | undefined,
  ): Promise<string | undefined>;
  take(sessionId: string): Promise<string | undefined>;
}

/** They outlive the client's session. */
const AN_HOUR_SECONDS = 3600;

/** Records of one server; `identity` says which: a record must never reach another one. */
export function createSessionRecords(
  runtime: Pick<UpstreamRuntime, 'config' | 'store' | 'getSeal'>,
  identity: string,
): ServerSessionRecords {
  const { keyPrefix, ttlSeconds: sessionTtlSeconds } = runtime.config.mcp.sessions;
  const ttlSeconds = sessionTtlSeconds + AN_HOUR_SECONDS;
  const values = createSealedValues(runtime);
  const hash = hashSha256(identity);
  const buildKey = (sessionId: string) => buildUpstreamSessionKey(keyPrefix, sessionId, hash);
  return {
    read: (sessionId) => values.get(buildKey(sessionId)),
    readOrWrite: (sessionId, text) => values.getOrSet(buildKey(sessionId), text, ttlSeconds),
    update: (sessionId, change) => values.update(buildKey(sessionId), ttlSeconds, change),
    take: (sessionId) => values.getAndDelete(buildKey(sessionId)),
  };
}

/**
 * For what can be done without: where the store does not answer, a record counts as absent. Without it each replica has
 * a session of its own at a server: less, but no failed call.
 */
export function createOptionalRecords(
  records: ServerSessionRecords,
  log: Log,
): ServerSessionRecords {
  async function attempt<Value>(work: Promise<Value>, otherwise: Value): Promise<Value> {
    try {
      return await work;
    } catch (cause) {
      log.warn('A session at an MCP server is not shared with other replicas now', { cause });
      return otherwise;
    }
  }

  return {
    read: (sessionId) => attempt(records.read(sessionId), undefined),
    readOrWrite: (sessionId, text) => attempt(records.readOrWrite(sessionId, text), text),
    update: (sessionId, change) => attempt(records.update(sessionId, change), undefined),
    take: (sessionId) => attempt(records.take(sessionId), undefined),
  };
}
