// §15.1: what a stream has sent, in the store: for the replica at which its client comes back.
import { pause } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Budget, releaseInAll, reserveInAll } from '../../store/budgets.ts';
import { buildStreamBytesKey, buildStreamLogKey } from '../../store/keys.ts';
import { readVersioned, writeVersioned } from '../../store/records.ts';
import { type KeptStream, type SaveResult, SESSION_BYTES } from './kept-stream.ts';
import type { StreamLog, StreamName } from './resumable-events.ts';
import type { McpReplicas } from './sessions.ts';

/** For how long an answer waits for its client. */
export const KEPT_MS = 300_000;
const TTL_SECONDS = KEPT_MS / 1000;

const MEBIBYTE = 1_048_576;
/** Bytes in the store of one user's streams, and of all: a user whose budget is full takes nothing of the others'. */
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 256 * MEBIBYTE;

export type StoredStreams = ReturnType<typeof createStoredStreams>;

export function createStoredStreams({ config, store, getSeal }: Runtime) {
  const { keyPrefix } = config.mcp.sessions;

  const buildKey = ({ sessionId, name }: Pick<StreamName, 'sessionId' | 'name'>) =>
    buildStreamLogKey(keyPrefix, sessionId, name);

  const listBudgets = (user: string | undefined): readonly Budget[] => [
    ...(user === undefined ? [] : [{ key: buildBytesKey(hashSha256(user)), maxBytes: USER_BYTES }]),
    { key: buildBytesKey('all'), maxBytes: ALL_BYTES },
  ];
  const buildBytesKey = (owner: string) => buildStreamBytesKey(keyPrefix, owner);

  return {
    /**
     * In place of what was written of the stream before, which took so many bytes. Resolves to those that it takes now;
     * undefined where there is no room.
     */
    async write(
      stream: StreamName,
      log: StreamLog,
      bytesBefore: number,
    ): Promise<number | undefined> {
      const key = buildKey(stream);
      const sealed = (await getSeal()).seal(key, writeVersioned(toRecord(log)));
      const bytes = sealed.length;
      const budgets = listBudgets(stream.user);
      if (bytesBefore > 0) await releaseInAll(store, budgets, { name: key, bytes: bytesBefore });
      if (!(await reserveInAll(store, budgets, { name: key, bytes }, TTL_SECONDS))) {
        // The bytes that were written before count no longer.
        if (bytesBefore > 0) await store.delete(key);
        return undefined;
      }
      await store.set(key, sealed, TTL_SECONDS);
      return bytes;
    },
    async read(stream: Pick<StreamName, 'sessionId' | 'name'>): Promise<StreamLog | undefined> {
      const key = buildKey(stream);
      const sealed = await store.get(key);
      const text = sealed && (await getSeal()).open(key, sealed);
      return text ? parseRecord(text) : undefined;
    },
  };
}

const toRecord = ({ firstPosition, events, hasEnded, lostPosition }: StreamLog) => ({
  firstPosition,
  events: events.map(({ text, isNotification }) => [text, isNotification ? 1 : 0]),
  hasEnded,
  lostPosition,
});

/** Any record that opens was written by a replica, perhaps of a later version. */
function parseRecord(text: string): StreamLog | undefined {
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
}

// The events of a stream of this replica go there, and a replica at which it is read is told when there is more.

interface StreamAddress {
  readonly sessionId: string;
  readonly stream: string;
}

/** Milliseconds until what is read at another replica is written: a long log not so often. */
const NEWS_MS = 50;
const MS_PER_BYTE = 0.002;

export function createKeptSaving(
  { clock, log }: Runtime,
  stored: StoredStreams,
  replicas: McpReplicas,
) {
  const saving = new Set<Promise<unknown>>();

  /** Its client has come back to this replica, or to a third one. */
  function releaseReader(stream: KeptStream): void {
    if (stream.readBy !== undefined) tellReader(toAddress(stream), stream.readBy, 'taken');
    stream.readBy = undefined;
  }

  /** There is more: soon, with what comes until then. */
  function scheduleNews(stream: KeptStream): void {
    if (stream.saving !== undefined) return;
    const bytes = Math.min(stream.storedBytes, SESSION_BYTES);
    stream.saving = pause(clock, NEWS_MS + bytes * MS_PER_BYTE).then(() => {
      stream.saving = undefined;
      return save(stream).then((saved) => {
        tellNews(stream, saved);
        return saved;
      });
    });
  }

  function tellNews(stream: KeptStream, saved: SaveResult): void {
    if (stream.readBy === undefined || saved === 'failed') return;
    tellReader(toAddress(stream), stream.readBy, saved === 'saved' ? 'news' : 'gone');
  }

  function tellReader(
    { sessionId, stream }: StreamAddress,
    replica: string,
    news: 'news' | 'gone' | 'taken',
  ): void {
    replicas
      .send({ about: 'resumed', sessionId, stream, news }, replica)
      // It asks again.
      .catch((cause: unknown) => log.debug('Another replica was not told of a stream.', { cause }));
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

  async function write(stream: KeptStream): Promise<SaveResult> {
    // It has made room meanwhile.
    if (stream.isForgotten) return 'no_room';
    stream.isUnsaved = false;
    try {
      const bytes = await stored.write(stream, stream.toLog(), stream.storedBytes);
      stream.storedBytes = bytes ?? 0;
      return bytes === undefined ? 'no_room' : 'saved';
    } catch (cause) {
      stream.isUnsaved = true;
      log.warn(
        'What a client may come back for could not be written to the store: only this replica has it.',
        { cause },
      );
      return 'failed';
    }
  }

  return {
    save,
    /** Writes it, and says so to the replica at which it is read. */
    saveForReader(stream: KeptStream): void {
      void save(stream).then((saved) => tellNews(stream, saved));
    },
    scheduleNews,
    tellGone: (address: StreamAddress, replica: string) => tellReader(address, replica, 'gone'),
    releaseReader,
    /** Resolves once nothing is under way. */
    async finish(): Promise<void> {
      while (saving.size > 0) await Promise.allSettled(saving);
    },
  };
}

const toAddress = ({ sessionId, name }: StreamName): StreamAddress => ({
  sessionId,
  stream: name,
});
