// §15.1: what is kept of a stream goes to the store, and a replica at which it is read is told when there is more.

import type { Runtime } from '../../runtime/runtime.ts';
import { type KeptStream, type SaveResult, SESSION_BYTES } from './kept-accounts.ts';
import type { McpReplicas } from './replica-message.ts';
import type { StoredStreams, StreamLog, StreamName } from './stored-streams.ts';

export interface KeptSaving {
  /** One write at a time; what comes meanwhile is written by the next. Never rejects. */
  save(stream: KeptStream): Promise<SaveResult>;
  /** Writes it, and says so to the replica at which it is read. */
  saveForReader(stream: KeptStream): void;
  /** There is more: soon, with what comes until then. */
  scheduleNews(stream: KeptStream): void;
  tellGone(address: StreamAddress, replica: string): void;
  /** Its client has come back to this replica, or to a third one. */
  releaseReader(stream: KeptStream): void;
  /** Resolves once nothing is under way. */
  finish(): Promise<void>;
}

interface StreamAddress {
  readonly sessionId: string;
  readonly stream: string;
}

/** How soon what is read at another replica is written: a long log not so often. */
const NEWS_MS = 50;
const MS_PER_BYTE = 0.002;

export function createKeptSaving(
  { clock, log }: Runtime,
  stored: StoredStreams,
  replicas: McpReplicas,
): KeptSaving {
  const saving = new Set<Promise<unknown>>();

  function releaseReader(stream: KeptStream): void {
    if (stream.readBy !== undefined) tellReader(toAddress(stream), stream.readBy, 'taken');
    stream.readBy = undefined;
  }

  function scheduleNews(stream: KeptStream): void {
    if (stream.saving !== undefined) return;
    const bytes = Math.min(stream.storedBytes, SESSION_BYTES);
    const { promise, resolve } = createWait();
    clock.after(NEWS_MS + bytes * MS_PER_BYTE, resolve);
    stream.saving = promise.then(() => {
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
      const bytes = await stored.write(stream, toLog(stream), stream.storedBytes);
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
    saveForReader(stream) {
      void save(stream).then((saved) => tellNews(stream, saved));
    },
    scheduleNews,
    tellGone: (address, replica) => tellReader(address, replica, 'gone'),
    releaseReader,
    async finish() {
      while (saving.size > 0) await Promise.allSettled(saving);
    },
  };
}

const toAddress = ({ sessionId, name }: StreamName): StreamAddress => ({
  sessionId,
  stream: name,
});

export const toLog = ({ firstPosition, events, endedAt, lostPosition }: KeptStream): StreamLog => ({
  firstPosition,
  events,
  hasEnded: endedAt !== undefined,
  lostPosition,
});

function createWait() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
