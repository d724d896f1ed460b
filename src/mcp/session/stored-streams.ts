// §15.1: what a stream has sent, in the store: for the replica at which its client comes back.

import { hashSha256 } from '../../platform/ids.ts';
import { isObject, parseObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  buildStreamBytesKey,
  buildStreamLogKey,
  checkRecordVersion,
  RECORD_VERSION,
} from '../../store/keys.ts';
import type { ByteEntry } from '../../store/store.ts';

/** An event as it is sent, id and all. */
export interface LoggedEvent {
  readonly text: string;
  /** A notification: a client can do without it, but not without an answer or a question. */
  readonly isNotification: boolean;
}

export interface StreamLog {
  /** Position of the first of `events`. */
  readonly firstPosition: number;
  readonly events: readonly LoggedEvent[];
  readonly hasEnded: boolean;
  /** Position of the last answer or question that fell out; 0 where none did. */
  readonly lostPosition: number;
}

export interface StreamName {
  readonly sessionId: string;
  readonly name: string;
  /** Whose session it is, as `nameOwner` has it; undefined without authentication. */
  readonly user: string | undefined;
}

export interface StoredStreams {
  /**
   * In place of what was written of the stream before, which took so many bytes. Resolves to those that it takes now;
   * undefined where there is no room.
   */
  write(stream: StreamName, log: StreamLog, bytesBefore: number): Promise<number | undefined>;
  read(stream: Pick<StreamName, 'sessionId' | 'name'>): Promise<StreamLog | undefined>;
}

/** For how long an answer waits for its client. */
export const KEPT_MS = 300_000;
const TTL_SECONDS = KEPT_MS / 1000;

const MEBIBYTE = 1_048_576;
/** What lies in the store of one user's streams, and of all: a user whose budget is full takes nothing of the others'. */
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 256 * MEBIBYTE;

export function createStoredStreams({ config, store, getSeal }: Runtime): StoredStreams {
  const { keyPrefix } = config.mcp.sessions;

  const buildKey = ({ sessionId, name }: Pick<StreamName, 'sessionId' | 'name'>) =>
    buildStreamLogKey(keyPrefix, sessionId, name);

  const listBudgets = (user: string | undefined) => [
    ...(user === undefined ? [] : [{ owner: hashSha256(user), maxBytes: USER_BYTES }]),
    { owner: 'all', maxBytes: ALL_BYTES },
  ];

  async function reserve(user: string | undefined, entry: ByteEntry): Promise<boolean> {
    const reserved: string[] = [];
    for (const { owner, maxBytes } of listBudgets(user)) {
      const budget = buildStreamBytesKey(keyPrefix, owner);
      if (!(await store.reserveBytes(budget, entry, { maxBytes, ttlSeconds: TTL_SECONDS }))) {
        await Promise.all(reserved.map((key) => store.releaseBytes(key, entry)));
        return false;
      }
      reserved.push(budget);
    }
    return true;
  }

  async function release(user: string | undefined, entry: ByteEntry): Promise<void> {
    await Promise.all(
      listBudgets(user).map(({ owner }) =>
        store.releaseBytes(buildStreamBytesKey(keyPrefix, owner), entry),
      ),
    );
  }

  return {
    async write(stream, log, bytesBefore) {
      const key = buildKey(stream);
      const sealed = (await getSeal()).seal(key, JSON.stringify(toRecord(log)));
      const bytes = sealed.length;
      if (bytesBefore > 0) await release(stream.user, { name: key, bytes: bytesBefore });
      if (!(await reserve(stream.user, { name: key, bytes }))) {
        // What was written before counts no longer.
        if (bytesBefore > 0) await store.delete(key);
        return undefined;
      }
      await store.set(key, sealed, TTL_SECONDS);
      return bytes;
    },
    async read(stream) {
      const key = buildKey(stream);
      const sealed = await store.get(key);
      const text = sealed && (await getSeal()).open(key, sealed);
      return text ? parseRecord(text) : undefined;
    },
  };
}

const toRecord = ({ firstPosition, events, hasEnded, lostPosition }: StreamLog) => ({
  version: RECORD_VERSION,
  firstPosition,
  events: events.map(({ text, isNotification }) => [text, isNotification ? 1 : 0]),
  hasEnded,
  lostPosition,
});

/** What opens was written by a replica; of a later version it may be. */
function parseRecord(text: string): StreamLog | undefined {
  const record = parseObject(text);
  if (!isObject(record)) return undefined;
  checkRecordVersion(record.version, 'The log of a stream');
  const { firstPosition, events, hasEnded, lostPosition } = record;
  if (typeof firstPosition !== 'number' || !Array.isArray(events)) return undefined;
  return {
    firstPosition,
    events: events.map(([event, isNotification]) => ({
      text: String(event),
      isNotification: isNotification === 1,
    })),
    hasEnded: hasEnded === true,
    lostPosition: typeof lostPosition === 'number' ? lostPosition : 0,
  };
}
