// §15.1: what a stream has sent, in the store: for the replica at which its client comes back, which is told when there is more.

import { pause } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createBudgets, releaseInAll, reserveInAll } from '../../store/budgets.ts';
import { buildStreamBytesKey, buildStreamLogKey } from '../../store/keys.ts';
import { readVersioned, writeVersioned } from '../../store/records.ts';
import { type KeptStream, type SaveResult, SESSION_BYTES } from './kept-stream.ts';
import type { StreamLog } from './resumable-events.ts';
import type { McpReplicas } from './sessions.ts';

/** For how long an answer waits for its client. */
export const KEPT_MS = 300_000;
const TTL_SECONDS = KEPT_MS / 1000;

const MEBIBYTE = 1_048_576;
/** Bytes in the store of one user's streams, and of all: a user whose budget is full takes nothing of the others'. */
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 256 * MEBIBYTE;

/** Milliseconds until what is read at another replica is written: a long log not so often. */
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

  /** In place of what was written of it before. */
  async function write(stream: KeptStream): Promise<SaveResult> {
    // It has made room meanwhile.
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
        // The bytes that were written before count no longer.
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
        'What a client may come back for could not be written to the store: only this replica has it.',
        { cause },
      );
      return 'failed';
    }
  }

  /** One write at a time; what comes meanwhile is written by the next. Never rejects. */
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
  ): void {
    replicas
      .send({ about: 'resumed', sessionId, stream: name, news }, replica)
      // It asks again.
      .catch((cause: unknown) => log.debug('Another replica was not told of a stream.', { cause }));
  }

  /** Writes it, and says so to the replica at which it is read. */
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
      // Any record that opens was written by a replica, perhaps of a later version.
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
    /** There is more: soon, with what comes until then. */
    scheduleNews(stream: KeptStream): void {
      if (stream.saving !== undefined) return;
      const bytes = Math.min(stream.storedBytes, SESSION_BYTES);
      stream.saving = pause(clock, NEWS_MS + bytes * MS_PER_BYTE).then(() => {
        stream.saving = undefined;
        return saveForReader(stream);
      });
    },
    tellReader,
    /** Its client has come back to this replica, or to a third one. */
    releaseReader(stream: KeptStream): void {
      if (stream.readBy !== undefined) tellReader(stream, stream.readBy, 'taken');
      stream.readBy = undefined;
    },
    /** Resolves once nothing is under way. */
    async finish(): Promise<void> {
      while (saving.size > 0) await Promise.allSettled(saving);
    },
  };
}
