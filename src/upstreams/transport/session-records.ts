// Sessions at servers in the store: sealed, so that any replica goes on with them and nobody else can.
import type { Log } from '../../platform/log.ts';
import { hashSha256 } from '../../platform/sha256.ts';
import { buildUpstreamSessionKey } from '../../store/keys.ts';
import type { Seal } from '../../store/seal/seal.ts';
import type { Store } from '../../store/store.ts';

export interface SessionRecords {
  /** Undefined where there is none, or the store cannot say. */
  read(sessionId: string): Promise<string | undefined>;
  /** The record that stands there then: another replica may have been faster. */
  readOrWrite(sessionId: string, text: string): Promise<string>;
  write(sessionId: string, text: string): Promise<void>;
  take(sessionId: string): Promise<string | undefined>;
}

export interface SessionRecordsDeps {
  readonly store: Store;
  readonly getSeal: () => Promise<Seal>;
  readonly keyPrefix: string;
  readonly ttlSeconds: number;
  readonly log: Log;
}

/** Records of one server; `identity` says which: a record must never reach another one. */
export function createSessionRecords(identity: string, deps: SessionRecordsDeps): SessionRecords {
  const { store, getSeal, ttlSeconds, log } = deps;
  const hash = hashSha256(identity);
  const buildKey = (sessionId: string) => buildUpstreamSessionKey(deps.keyPrefix, sessionId, hash);

  async function open(key: string, sealed: string | undefined): Promise<string | undefined> {
    return sealed === undefined ? undefined : (await getSeal()).open(key, sealed);
  }

  /** Without the store each replica has a session of its own: less, but no failed call. */
  async function attempt<Value>(work: Promise<Value>, otherwise: Value): Promise<Value> {
    try {
      return await work;
    } catch (cause) {
      log.warn('A session at an MCP server is not shared with other replicas now', { cause });
      return otherwise;
    }
  }

  async function readOrWrite(key: string, text: string): Promise<string> {
    const sealed = (await getSeal()).seal(key, text);
    const stored = await store.getOrSet(key, sealed, ttlSeconds);
    const standing = stored === sealed ? text : await open(key, stored);
    if (standing !== undefined) return standing;
    await store.set(key, sealed, ttlSeconds);
    return text;
  }

  async function write(key: string, text: string): Promise<void> {
    await store.set(key, (await getSeal()).seal(key, text), ttlSeconds);
  }

  async function read(key: string, sealed: Promise<string | undefined>) {
    return open(key, await sealed);
  }

  return {
    read(sessionId) {
      const key = buildKey(sessionId);
      return attempt(read(key, store.get(key)), undefined);
    },
    readOrWrite: (sessionId, text) => attempt(readOrWrite(buildKey(sessionId), text), text),
    write: (sessionId, text) => attempt(write(buildKey(sessionId), text), undefined),
    take(sessionId) {
      const key = buildKey(sessionId);
      return attempt(read(key, store.getAndDelete(key)), undefined);
    },
  };
}
