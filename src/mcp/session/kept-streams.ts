// §15.1: what the streams of this replica have sent, kept for clients whose connections break. What another replica could
// need goes to the store: the log of a stream that took long, whose connection broke, or for which somebody asks there.

import { randomUUID } from 'node:crypto';
import type { ReplyStream } from '../../endpoint/message.ts';
import type { GatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { RequestId } from '../../protocol/json-rpc.ts';
import { renderResponse } from '../calls/outcome.ts';
import { createEventQueue, type EventQueue } from '../streaming/event-queue.ts';
import type { EventChannel } from '../streaming/response-stream.ts';
import { createEventIdFrame, type EventIdFrame, tagSession } from './event-ids.ts';
import { type Droppable, OldestFirst } from './oldest-first.ts';
import type { McpReplicas } from './replica-message.ts';
import { toEvent, toPrimer, toReplay } from './resumable-events.ts';
import {
  KEPT_MS,
  type LoggedEvent,
  type StoredStreams,
  type StreamLog,
  type StreamName,
} from './stored-streams.ts';

export interface StreamOptions {
  readonly sessionId: string;
  /** As `nameOwner` has it; undefined without authentication. */
  readonly user: string | undefined;
  readonly protocolVersion: string;
  /** Of the call that it answers. */
  readonly requestId: RequestId | undefined;
  /** It is the stream of the session, which answers nothing. */
  readonly isOfSession: boolean;
  /** Nobody came back in time. */
  abandon(): void;
}

export interface KeptChannel extends EventChannel {
  isFull(): boolean;
  hasRoomToSpare(characters: number): boolean;
  /** Ends it without a last event. */
  close(): void;
}

export interface KeptStreams {
  /** A stream that is sent for the first time. */
  start(options: StreamOptions): KeptChannel;
  /** A stream of the session that is kept here. */
  find(sessionId: string, name: string): KeptStream | undefined;
  /** Sends what came after the position, and what comes, on a connection of its own: the one before is over. */
  attach(stream: KeptStream, position: number): ReplyStream;
  /** The session has ended: nobody may come back. */
  endSession(sessionId: string): void;
  /** From now on what ends is written to the store. */
  startStopping(): void;
  /** Resolves once all calls with such streams have ended and what they came to is in the store. */
  drain(): Promise<void>;
  /** Ends what has not ended, with what its clients are told, and writes it to the store. */
  stop(error: GatewayError): Promise<void>;
}

/** What is known of a stream while it is kept. */
export interface KeptStream extends StreamName, Droppable {
  readonly requestId: RequestId | undefined;
  readonly isOfSession: boolean;
  readonly frame: EventIdFrame;
  readonly protocolVersion: string;
  /** Milliseconds of the monotonic clock, as all times here. */
  readonly startedAt: number;
  readonly events: LoggedEvent[];
  firstPosition: number;
  lostPosition: number;
  endedAt: number | undefined;
  /** Since when nobody reads; undefined while somebody does. */
  brokenAt: number | undefined;
  /** Of the connection on which it is sent. */
  queue: EventQueue | undefined;
  /** What goes before the next event: what the connection begins with, as one piece with it. */
  unsent: string;
  /** The replica at which it is read in place of here. */
  readBy: string | undefined;
  /** Bytes in the store. */
  storedBytes: number;
  /** Whether there is anything that was not written yet. */
  isUnsaved: boolean;
  saving: Promise<SaveResult> | undefined;
  abandon: (() => void) | undefined;
}

type SaveResult = 'saved' | 'no_room' | 'failed';

/** A session, a user, or all: who holds how much. */
interface Account {
  bytes: number;
  /** Those that have ended. */
  readonly finished: OldestFirst<KeptStream>;
}

interface SessionAccount extends Account {
  readonly tag: string;
  events: number;
  readonly streams: Map<string, KeptStream>;
}

/** Of one session (§15.1). */
const SESSION_EVENTS = 1000;
const SESSION_BYTES = 1_048_576;
/** Of one user, and of all: what ended first goes first. A stream takes some of it by itself. */
const USER_BYTES = 4 * SESSION_BYTES;
const ALL_BYTES = 16 * SESSION_BYTES;
const STREAM_BYTES = 3072;

/** Milliseconds. What has ended sooner is written to the store when it ends only if its connection is broken by then. */
const LONG_MS = 1000;
/** What ended so long before the process stops is written then: its client may be on the way. */
const RECENT_MS = 10_000;
const SWEEP_MS = 10_000;
/** For how long what a session would hear is heard after its connection broke: many clients only leave. */
const LISTEN_MS = 30_000;

/** How soon what is read at another replica is written: a long log not so often. */
const NEWS_MS = 50;
const MS_PER_BYTE = 0.002;

export interface KeptStreamsDeps {
  readonly stored: Pick<StoredStreams, 'write'>;
  readonly replicas: McpReplicas;
  readonly clock: Clock;
  readonly log: Log;
}

export function createKeptStreams({ stored, replicas, clock, log }: KeptStreamsDeps): KeptStreams {
  const sessions = new Map<string, SessionAccount>();
  const users = new Map<string, Account>();
  const all: Account = { bytes: 0, finished: new OldestFirst() };
  const running = new Set<KeptStream>();
  const broken = new Set<KeptStream>();
  const saving = new Set<Promise<unknown>>();
  let isStopping = false;
  let isSweeping = false;
  let tellDrained: (() => void) | undefined;

  replicas.listen((message) => {
    if (message.about !== 'resume') return;
    const stream = find(message.sessionId, message.stream);
    if (stream === undefined) tellReader(message, message.replica, 'gone');
    else passTo(stream, message.replica);
  });

  function find(sessionId: string, name: string): KeptStream | undefined {
    return sessions.get(sessionId)?.streams.get(name);
  }

  function listAll(): readonly KeptStream[] {
    return [...sessions.values()].flatMap(({ streams }) => [...streams.values()]);
  }

  // Who holds how much.

  function getSession(sessionId: string): SessionAccount {
    const known = sessions.get(sessionId);
    if (known !== undefined) return known;
    const account: SessionAccount = {
      tag: tagSession(sessionId),
      bytes: 0,
      events: 0,
      finished: new OldestFirst(),
      streams: new Map(),
    };
    sessions.set(sessionId, account);
    return account;
  }

  function getUser(name: string): Account {
    const known = users.get(name);
    if (known !== undefined) return known;
    const account: Account = { bytes: 0, finished: new OldestFirst() };
    users.set(name, account);
    return account;
  }

  function countBytes(stream: KeptStream, bytes: number, events: number): void {
    const session = getSession(stream.sessionId);
    session.bytes += bytes;
    session.events += events;
    all.bytes += bytes;
    if (stream.user !== undefined) getUser(stream.user).bytes += bytes;
  }

  function append(stream: KeptStream, event: LoggedEvent): void {
    stream.events.push(event);
    stream.isUnsaved = true;
    countBytes(stream, event.text.length, 1);
    const session = getSession(stream.sessionId);
    const user = stream.user === undefined ? undefined : getUser(stream.user);
    const isFull = () => session.events > SESSION_EVENTS || session.bytes > SESSION_BYTES;
    while (isFull() && makeRoom(session, stream));
    while (user !== undefined && user.bytes > USER_BYTES && makeRoom(user, stream));
    while (all.bytes > ALL_BYTES && makeRoom(all, stream));
  }

  /** Who has ended goes first; then what this stream sent first. */
  function makeRoom({ finished }: Account, stream: KeptStream): boolean {
    const oldest = finished.first();
    if (oldest !== undefined) {
      forget(oldest);
      return true;
    }
    const event = stream.events.shift();
    // Others that go on hold all of it.
    if (event === undefined) return false;
    countBytes(stream, -event.text.length, -1);
    if (!event.isNotification) stream.lostPosition = stream.firstPosition;
    stream.firstPosition += 1;
    return true;
  }

  /** One that has ended. */
  function forget(stream: KeptStream): void {
    const session = getSession(stream.sessionId);
    const bytes = stream.events.reduce((sum, { text }) => sum + text.length, STREAM_BYTES);
    countBytes(stream, -bytes, -stream.events.length);
    // What is about to be written of it says that it is lost.
    stream.firstPosition += stream.events.length;
    stream.lostPosition = stream.firstPosition - 1;
    // A Map that shrinks leaves old tables behind, which would keep all of it.
    stream.events.length = 0;
    stream.isForgotten = true;
    all.finished.noteForgotten();
    session.finished.noteForgotten();
    session.streams.delete(stream.name);
    if (session.streams.size === 0) sessions.delete(stream.sessionId);
    if (stream.user === undefined) return;
    const user = getUser(stream.user);
    user.finished.noteForgotten();
    if (user.bytes === 0) users.delete(stream.user);
  }

  // What the stream sends.

  function send(stream: KeptStream, json: string, isNotification: boolean): void {
    // A client that reads far slower than notifications come does without some of them.
    if (stream.endedAt !== undefined || (isNotification && stream.queue?.isFull())) return;
    const position = stream.firstPosition + stream.events.length;
    const text = toEvent(stream, position, json);
    push(stream, text);
    append(stream, { text, isNotification });
    if (stream.readBy !== undefined) scheduleNews(stream);
  }

  function end(stream: KeptStream, json: string): void {
    if (stream.endedAt !== undefined) return;
    const text = toEvent(stream, 'end', json);
    push(stream, text);
    append(stream, { text, isNotification: false });
    close(stream);
  }

  function close(stream: KeptStream): void {
    if (stream.endedAt !== undefined) return;
    const { queue } = stream;
    queue?.end();
    const isNeeded = queue === undefined || clock.monotonic() - stream.startedAt > LONG_MS;
    stream.queue = undefined;
    stream.abandon = undefined;
    stream.endedAt = clock.monotonic();
    running.delete(stream);
    broken.delete(stream);
    all.finished.add(stream);
    getSession(stream.sessionId).finished.add(stream);
    if (stream.user !== undefined) getUser(stream.user).finished.add(stream);
    if (isNeeded || isStopping || stream.isOfSession)
      void save(stream).then((saved) => tellNews(stream, saved));
    if (running.size === 0) tellDrained?.();
  }

  function push(stream: KeptStream, text: string): void {
    stream.queue?.push(stream.unsent === '' ? text : stream.unsent + text);
    stream.unsent = '';
  }

  function noteBroken(stream: KeptStream): void {
    if (stream.endedAt !== undefined) return;
    stream.brokenAt = clock.monotonic();
    broken.add(stream);
  }

  function openQueue(stream: KeptStream): EventQueue {
    stream.queue?.end();
    const queue = createEventQueue(() => {
      if (stream.queue !== queue) return;
      stream.queue = undefined;
      noteBroken(stream);
    });
    stream.queue = queue;
    stream.brokenAt = undefined;
    broken.delete(stream);
    return queue;
  }

  // At other replicas.

  function passTo(stream: KeptStream, replica: string): void {
    if (stream.readBy !== replica) releaseReader(stream);
    stream.queue?.end();
    stream.queue = undefined;
    stream.readBy = replica;
    // Its client counts as there for as long as that replica asks.
    noteBroken(stream);
    void save(stream).then((saved) => tellNews(stream, saved));
  }

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
    { sessionId, stream }: { readonly sessionId: string; readonly stream: string },
    replica: string,
    news: 'news' | 'gone' | 'taken',
  ): void {
    replicas
      .send({ about: 'resumed', sessionId, stream, news }, replica)
      // It asks again.
      .catch((cause: unknown) => log.debug('Another replica was not told of a stream.', { cause }));
  }

  /** One write at a time; what comes meanwhile is written by the next. */
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

  // What nobody came back for.

  function scheduleSweep(): void {
    if (isSweeping) return;
    isSweeping = true;
    clock.after(SWEEP_MS, () => {
      isSweeping = false;
      sweep(clock.monotonic() - KEPT_MS);
      if (running.size > 0 || broken.size > 0 || !all.finished.isEmpty) scheduleSweep();
    });
  }

  function sweep(before: number): void {
    for (let stream = all.finished.first(); stream; stream = all.finished.first()) {
      if (stream.endedAt === undefined || stream.endedAt > before) break;
      forget(stream);
    }
    for (const stream of broken) {
      const patience = stream.isOfSession ? KEPT_MS - LISTEN_MS : 0;
      if (stream.brokenAt === undefined || stream.brokenAt > before + patience) continue;
      broken.delete(stream);
      stream.abandon?.();
    }
  }

  return {
    find,
    start({ sessionId, user, protocolVersion, requestId, isOfSession, abandon }) {
      const session = getSession(sessionId);
      const name = randomUUID().slice(-12);
      const { tag: sessionTag } = session;
      const stream: KeptStream = {
        sessionId,
        name,
        user,
        requestId,
        isOfSession,
        protocolVersion,
        frame: createEventIdFrame({
          replica: replicas.ownName,
          sessionTag,
          stream: name,
          requestId,
          isOfSession,
        }),
        startedAt: clock.monotonic(),
        events: [],
        firstPosition: 1,
        lostPosition: 0,
        endedAt: undefined,
        brokenAt: undefined,
        queue: undefined,
        unsent: '',
        isForgotten: false,
        readBy: undefined,
        storedBytes: 0,
        isUnsaved: true,
        saving: undefined,
        abandon,
      };
      session.streams.set(name, stream);
      countBytes(stream, STREAM_BYTES, 0);
      if (!isOfSession) running.add(stream);
      scheduleSweep();
      const queue = openQueue(stream);
      stream.unsent = toPrimer(stream, 0);
      return {
        items: queue.items,
        begin: () => push(stream, ''),
        send: (json, isNotification) => send(stream, json, isNotification),
        end: (json) => end(stream, json),
        disconnect() {
          if (stream.endedAt !== undefined || stream.queue === undefined) return;
          push(stream, '');
          stream.queue.end();
          stream.queue = undefined;
          noteBroken(stream);
        },
        isFull: () => stream.queue?.isFull() === true,
        hasRoomToSpare: (characters) => stream.queue?.hasRoomToSpare(characters) !== false,
        close() {
          push(stream, '');
          close(stream);
        },
      };
    },
    attach(stream, position) {
      releaseReader(stream);
      const queue = openQueue(stream);
      stream.unsent = '';
      queue.push(toPrimer(stream, position) + toReplay(stream, toLog(stream), position));
      if (stream.endedAt === undefined && stream.lostPosition <= position) return queue.items;
      queue.end();
      stream.queue = undefined;
      return queue.items;
    },
    endSession(sessionId) {
      for (const stream of sessions.get(sessionId)?.streams.values() ?? []) {
        if (stream.endedAt !== undefined) forget(stream);
        else if (stream.queue === undefined) stream.abandon?.();
      }
    },
    startStopping() {
      isStopping = true;
    },
    drain: () =>
      running.size === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            tellDrained = resolve;
          }),
    async stop(error) {
      for (const stream of [...running]) {
        end(stream, renderResponse({ error }, stream.requestId ?? null).text);
      }
      const recent = clock.monotonic() - RECENT_MS;
      for (const stream of listAll()) {
        if (stream.isUnsaved && (stream.endedAt ?? 0) > recent) void save(stream);
      }
      while (saving.size > 0) await Promise.allSettled(saving);
    },
  };
}

const toAddress = ({ sessionId, name }: StreamName) => ({ sessionId, stream: name });

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
