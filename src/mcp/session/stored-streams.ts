// §15.1: event logs in the shared store, for the replica where the client resumes a stream; it is notified of news.

import { pause } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createBudgets, releaseInAll, reserveInAll } from '../../store/budgets.ts';
import { buildStreamBytesKey, buildStreamLogKey } from '../../store/keys.ts';
import { readVersioned, writeVersioned } from '../../store/records.ts';
import type { KeptStream, SaveResult } from './kept-stream.ts';
import { KEPT_MS, SESSION_BYTES, type StreamLog } from './resumable-events.ts';
import type { McpReplicas } from './sessions.ts';

const TTL_SECONDS = KEPT_MS / 1000;

const MEBIBYTE = 1_048_576;
/** Bytes in the store of one user's streams, and of all: a user with a full budget takes no space from others. */
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 256 * MEBIBYTE;

/** Debounce of writes for a reader on another replica, in milliseconds; longer for a long log. */
const NEWS_MS = 50;
const MS_PER_BYTE = 0.002;

type StreamAddress = Pick<KeptStream, 'sessionId' | 'name'>;

export type StoredStreams = ReturnType<typeof createStoredStreams>;

export function createStoredStreams(
  { config, store, getSeal, clock, log }: Runtime,
  replicas: McpReplicas,
) {
  const { keyPrefix } = config.mcp.sessions;
  const saving = new Set<Promise<unknown>>();

  const buildKey = ({ sessionId, name }: StreamAddress) =>
    buildStreamLogKey(keyPrefix, sessionId, name);

  const listBudgets = createBudgets(
    (owner) => buildStreamBytesKey(keyPrefix, owner),
    USER_BYTES,
    ALL_BYTES,
  );

  /** Replaces the log written before. */
  async function write(stream: KeptStream): Promise<SaveResult> {
    // It has been evicted in the meantime.
    if (stream.isForgotten) return 'no_room';
    stream.isUnsaved = false;
    try {
      const key = buildKey(stream);
      const seal = await getSeal();
      const kept = stream.toLog();
      const events = kept.events.map(({ text, isNotification }) => [text, isNotification ? 1 : 0]);
      const sealed = seal.seal(key, writeVersioned({ ...kept, events }));
      const entry = { name: key, bytes: sealed.length };
      const budgets = listBudgets(stream.user);
      const before = { name: key, bytes: stream.storedBytes };
      if (before.bytes > 0) await releaseInAll(store, budgets, before);
      if (!(await reserveInAll(store, budgets, entry, TTL_SECONDS))) {
        // The bytes written before were released.
        if (before.bytes > 0) await store.delete(key);
        stream.storedBytes = 0;
        return 'no_room';
      }
      await store.set(key, sealed, TTL_SECONDS);
      stream.storedBytes = entry.bytes;
      return 'saved';
    } catch (cause) {
      stream.isUnsaved = true;
      log.warn(
        'The events of a resumable stream could not be written to the store: only this replica has them.',
        { cause },
      );
      return 'failed';
    }
  }

  /** One write at a time: later events are written by the next one. Never rejects. */
  function save(stream: KeptStream): Promise<SaveResult> {
    if (stream.saving !== undefined && !stream.isUnsaved) return stream.saving;
    const before = stream.saving ?? Promise.resolve();
    const work = before
      .then(() => (stream.isUnsaved || stream.storedBytes === 0 ? write(stream) : 'saved'))
      .finally(() => {
        saving.delete(work);
        if (stream.saving === work) stream.saving = undefined;
      });
    stream.saving = work;
    saving.add(work);
    return work;
  }

  function tellReader(
    { sessionId, name }: StreamAddress,
    replica: string,
    news: 'news' | 'gone' | 'taken',
  ) {
    replicas
      .send({ about: 'resumed', sessionId, stream: name, news }, replica)
      // Best effort: the reader tries again.
      .catch((cause: unknown) => log.debug('Another replica was not told of a stream.', { cause }));
  }

  /** Writes the log, and notifies the replica that reads it. */
  async function saveForReader(stream: KeptStream): Promise<SaveResult> {
    const saved = await save(stream);
    if (stream.readBy !== undefined && saved !== 'failed')
      tellReader(stream, stream.readBy, saved === 'saved' ? 'news' : 'gone');
    return saved;
  }

  return {
    async read(stream: StreamAddress): Promise<StreamLog | undefined> {
      const key = buildKey(stream);
      const sealed = await store.get(key);
      const text = sealed && (await getSeal()).open(key, sealed);
      if (!text) return undefined;
      // Written by a replica, perhaps of a later version.
      const { firstPosition, events, hasEnded, lostPosition } = readVersioned<JsonObject>(
        text,
        'The log of a stream',
      );
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
    },
    save,
    saveForReader,
    /** Schedules a write of new events. */
    scheduleNews(stream: KeptStream): void {
      if (stream.saving !== undefined) return;
      const bytes = Math.min(stream.storedBytes, SESSION_BYTES);
      stream.saving = pause(clock, NEWS_MS + bytes * MS_PER_BYTE).then(() => {
        stream.saving = undefined;
        return saveForReader(stream);
      });
    },
    tellReader,
    /** Its client resumes it here, or on a third replica. */
    releaseReader(stream: KeptStream): void {
      if (stream.readBy !== undefined) tellReader(stream, stream.readBy, 'taken');
      stream.readBy = undefined;
    },
    /** Resolves once all writes have ended. */
    async finish(): Promise<void> {
      while (saving.size > 0) await Promise.allSettled(saving);
    },
  };
}
