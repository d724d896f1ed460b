// §15.1: GET /mcp with Last-Event-ID, on any replica. The replica where a stream began holds its events: on request it writes
// them to the shared store, and announces news.

import { fail } from '../../errors/gateway-error.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner, readOwner } from '../../store/keys.ts';
import type { SessionRecord } from '../../store/store.ts';
import type { OutgoingMessage } from '../protocol/json-rpc.ts';
import { EventQueue } from '../streaming/event-queue.ts';
import type { NotificationStream } from '../streaming/notification-streams.ts';
import type { StreamResponse } from '../streaming/response-stream.ts';
import type { KeptStreams } from './kept-streams.ts';
import {
  type EventId,
  readEventId,
  readJson,
  type StreamLog,
  tagSession,
  toLoss,
  toPrimer,
  toReplay,
  type WrittenStream,
} from './resumable-events.ts';
import type { McpReplicas } from './sessions.ts';
import type { StoredStreams } from './stored-streams.ts';

export interface EarlierStream {
  readonly kind: 'earlier';
  /** To be called when the new stream has replaced it. Never rejects. */
  readMissed(): Promise<Missed>;
}

interface Missed {
  /** JSON-RPC messages. */
  readonly messages: readonly string[];
  /** True if some are lost. */
  readonly isIncomplete: boolean;
}

/** A stream of another replica that is read here. */
interface Reader {
  readonly sessionId: string;
  /** As `nameOwner` has it; undefined without authentication. */
  readonly user: string | undefined;
  readonly stream: WrittenStream;
  readonly queue: EventQueue;
  position: number;
  /** The replica where it began no longer has it. */
  isGone: boolean;
  isOver: boolean;
  /** True if news arrived since the last read of the store. */
  hasNews: boolean;
  /** Wakes the wait for news. */
  wake: () => void;
}

/** Timeout of a request to the replica where a stream began, in milliseconds, and the number of retries. */
const ASK_AGAIN_MS = 1000;
const MAX_SILENCES = 5;
/** Heartbeat while the other replica answers: tells it that the stream is still being read, and makes up for lost news. */
const SIGN_OF_LIFE_MS = 5000;

/** Each reader holds a connection. */
const MAX_PER_SESSION = 50;
/** Event ids can be forged, and sessions opened: one user must not use up the bound of all. */
const MAX_PER_USER = 200;
const MAX_READERS = 2000;

export function createResumptions(
  { store, clock, log }: Runtime,
  kept: KeptStreams,
  stored: StoredStreams,
  replicas: McpReplicas,
) {
  const { isShared } = store;
  const readers = new Map<string, Reader>();

  const toKey = (sessionId: string, stream: string) => `${sessionId} ${stream}`;

  replicas.listen((message) => {
    if (message.about !== 'resumed') return;
    const reader = readers.get(toKey(message.sessionId, message.stream));
    if (reader === undefined) return;
    if (message.news === 'taken') endReader(reader);
    if (message.news === 'gone') reader.isGone = true;
    tellNews(reader);
  });

  function endReader(reader: Reader) {
    if (reader.isOver) return;
    reader.isOver = true;
    reader.queue.end();
    const key = toKey(reader.sessionId, reader.stream.name);
    if (readers.get(key) === reader) readers.delete(key);
    tellNews(reader);
  }

  /** Replaces a reader of the same stream. Undefined without room for another. */
  function openReader(session: SessionRecord, id: EventId, position: number): Reader | undefined {
    const { sessionId, protocolVersion } = session;
    const owner = readOwner(session);
    const user = owner && nameOwner(owner);
    const key = toKey(sessionId, id.name);
    const older = readers.get(key);
    if (older === undefined) {
      const open = [...readers.values()];
      const ofSession = open.filter((one) => one.sessionId === sessionId).length;
      const ofUser = user === undefined ? 0 : open.filter((one) => one.user === user).length;
      const isFull = open.length >= MAX_READERS || ofUser >= MAX_PER_USER;
      if (isFull || ofSession >= MAX_PER_SESSION) return undefined;
    } else {
      endReader(older);
    }
    const reader: Reader = {
      sessionId,
      user,
      stream: { ...id, protocolVersion },
      queue: new EventQueue(() => endReader(reader)),
      position,
      isGone: false,
      isOver: false,
      hasNews: false,
      wake: () => {},
    };
    readers.set(key, reader);
    return reader;
  }

  /** Reads what a replaced stream has sent since, here or elsewhere. */
  async function readMissed(
    session: SessionRecord,
    id: EventId,
    position: number,
  ): Promise<Missed> {
    const own = kept.find(session.sessionId, id.name);
    if (own !== undefined) return toMissed(own.toLog(), position);
    const reader = openReader(session, id, position);
    // There is no room for another reader: the stream counts as lost.
    if (reader === undefined) return toMissed(undefined, position);
    for (let silences = 0; ; ) {
      const { isGone } = reader;
      reader.hasNews = false;
      const streamLog = await read(reader);
      const isLast = isGone || !isShared || reader.isOver || silences === MAX_SILENCES;
      if (isLast || streamLog?.hasEnded) {
        endReader(reader);
        return toMissed(streamLog, position);
      }
      if (!(await ask(reader))) silences += 1;
    }
  }

  /** Never rejects. */
  async function follow(reader: Reader) {
    let silences = 0;
    let mustAsk = true;
    for (;;) {
      const { isGone } = reader;
      reader.hasNews = false;
      const streamLog = await read(reader);
      if (reader.isOver) return;
      if (streamLog !== undefined) {
        const { stream, queue, position } = reader;
        const text = toReplay(stream, streamLog, position);
        if (text !== '') queue.push(text);
        reader.position = streamLog.firstPosition + streamLog.events.length - 1;
        if (streamLog.lostPosition > position || streamLog.hasEnded) return endReader(reader);
      }
      if (isGone || !isShared || silences === MAX_SILENCES) {
        reader.queue.push(toLoss(reader.stream, silences > 0 ? REPLICA_GONE : undefined));
        return endReader(reader);
      }
      const hasHeard: boolean = await (mustAsk
        ? ask(reader)
        : waitForNews(reader, SIGN_OF_LIFE_MS));
      if (mustAsk) silences = hasHeard ? 0 : silences + 1;
      mustAsk = !hasHeard;
    }
  }

  /** False after a timeout. */
  async function ask(reader: Reader): Promise<boolean> {
    const { sessionId, stream } = reader;
    const { ownName: replica } = replicas;
    await replicas
      .send({ about: 'resume', sessionId, stream: stream.name, replica }, stream.replica)
      .catch((cause: unknown) =>
        log.debug('The replica where a stream began could not be contacted.', { cause }),
      );
    return waitForNews(reader, ASK_AGAIN_MS);
  }

  async function read({ sessionId, stream }: Reader): Promise<StreamLog | undefined> {
    try {
      return await stored.read({ sessionId, name: stream.name });
    } catch (cause) {
      log.debug('What a client came back for could not be read from the store.', { cause });
      return undefined;
    }
  }

  /** False after a timeout. */
  function waitForNews(reader: Reader, ms: number): Promise<boolean> {
    if (reader.hasNews) return Promise.resolve(true);
    return new Promise((resolve) => {
      const cancel = clock.after(ms, () => resolve(false));
      reader.wake = () => {
        cancel();
        resolve(true);
      };
    });
  }

  function tellNews(reader: Reader) {
    reader.hasNews = true;
    reader.wake();
  }

  return {
    /**
     * Replays and continues the stream of that event; undefined if it is complete. The stream of a session continues as a new one
     * that begins with a replay.
     *
     * @throws GatewayError `unknown_event_id`, `too_many_streams`.
     */
    resume(
      session: SessionRecord,
      lastEventId: string,
    ): StreamResponse | EarlierStream | undefined {
      const id = readEventId(lastEventId);
      if (id === undefined || id.sessionTag !== tagSession(session.sessionId))
        fail('unknown_event_id');
      const { position } = id;
      if (position === 'end') return undefined;
      if (id.isOfSession)
        return { kind: 'earlier', readMissed: () => readMissed(session, id, position) };
      const own = kept.find(session.sessionId, id.name);
      if (own !== undefined) return { kind: 'stream', events: kept.attach(own, position) };
      const reader = openReader(session, id, position) ?? fail('too_many_streams');
      reader.queue.push(toPrimer(reader.stream, position));
      void follow(reader);
      return { kind: 'stream', events: reader.queue };
    },
    /** Ends all readers: their clients reconnect to other replicas. */
    close(): void {
      for (const reader of readers.values()) endReader(reader);
    },
  };
}

function toMissed(streamLog: StreamLog | undefined, position: number): Missed {
  if (streamLog === undefined) return { messages: [], isIncomplete: true };
  const { firstPosition, events } = streamLog;
  return {
    messages: events
      .slice(Math.max(0, position + 1 - firstPosition))
      .map(({ text }) => readJson(text)),
    isIncomplete: firstPosition > position + 1,
  };
}

const REPLICA_GONE =
  'The replica that ran this call does not answer any more. The call may have run: look before you call again.';

// §15.1: a resumed session stream begins with the replay.

/** The bound of a session's events. */
const MAX_HELD = 1000;

/** Holds new messages back until the replay is complete. `release` never rejects. */
export function holdBack(
  stream: NotificationStream,
  earlier: EarlierStream | undefined,
): { readonly heard: NotificationStream; readonly release?: () => Promise<void> } {
  if (earlier === undefined) return { heard: stream };
  let held: OutgoingMessage[] | undefined = [];

  const hold =
    (send: (message: OutgoingMessage) => void) =>
    (message: OutgoingMessage): void => {
      if (held === undefined) send(message);
      else if (held.length < MAX_HELD) held.push(message);
    };

  return {
    heard: {
      response: stream.response,
      send: hold((message) => stream.send(message)),
      sendIfRoom: hold((message) => stream.sendIfRoom(message)),
      end: () => stream.end(),
    },
    async release() {
      const { messages, isIncomplete } = await earlier.readMissed();
      for (const message of messages) stream.send(JSON.parse(message));
      if (isIncomplete) for (const message of MAY_HAVE_CHANGED) stream.send(message);
      for (const message of held ?? []) stream.send(message);
      held = undefined;
    },
  };
}

/** For a client whose missed messages are lost: it refreshes all lists. */
const MAY_HAVE_CHANGED: readonly OutgoingMessage[] = ['tools', 'prompts', 'resources'].map(
  (list) => ({ method: `notifications/${list}/list_changed`, params: {} }),
);
