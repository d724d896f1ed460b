// §15.1: streams whose events are kept for clients that come back: one of them, and how much each session and user holds.

import type { RequestId } from '../protocol/json-rpc.ts';
import type { EventQueue } from '../streaming/response-stream.ts';
import {
  type LoggedEvent,
  type StreamLog,
  type StreamName,
  tagSession,
  type WrittenStream,
} from './resumable-events.ts';

interface NewStream {
  readonly name: string;
  /** The replica that has it. */
  readonly replica: string;
  readonly requestId: RequestId | undefined;
  readonly isOfSession: boolean;
  readonly startedAt: number;
  readonly events: LoggedEvent[];
  readonly abandon: (() => void) | undefined;
}

/** As it is known while it is kept. Times are milliseconds of the monotonic clock. */
export class KeptStream implements StreamName, WrittenStream {
  readonly session: SessionAccount;
  readonly sessionId: string;
  readonly sessionTag: string;
  readonly protocolVersion: string;
  readonly user: string | undefined;
  readonly name: string;
  readonly replica: string;
  readonly requestId: RequestId | undefined;
  readonly isOfSession: boolean;
  readonly startedAt: number;
  readonly events: LoggedEvent[];
  firstPosition = 1;
  lostPosition = 0;
  endedAt: number | undefined;
  /** Since when nobody reads; undefined while somebody does. */
  brokenAt: number | undefined;
  /** Belongs to the connection on which it is sent. */
  queue: EventQueue | undefined;
  /** Goes before the next event: what the connection begins with, as one piece with it. */
  unsent = '';
  /** It was given up already. */
  isForgotten = false;
  /** The replica at which it is read in place of here. */
  readBy: string | undefined;
  /** Bytes in the store. */
  storedBytes = 0;
  /** There is something that was not written yet. */
  isUnsaved = true;
  saving: Promise<SaveResult> | undefined;
  abandon: (() => void) | undefined;

  constructor(session: SessionAccount, stream: NewStream) {
    this.session = session;
    this.sessionId = session.sessionId;
    this.sessionTag = session.tag;
    this.protocolVersion = session.protocolVersion;
    this.user = session.user.name;
    this.name = stream.name;
    this.replica = stream.replica;
    this.requestId = stream.requestId;
    this.isOfSession = stream.isOfSession;
    this.startedAt = stream.startedAt;
    this.events = stream.events;
    this.abandon = stream.abandon;
  }

  toLog(): StreamLog {
    const { firstPosition, events, endedAt, lostPosition } = this;
    return { firstPosition, events, hasEnded: endedAt !== undefined, lostPosition };
  }
}

export type SaveResult = 'saved' | 'no_room' | 'failed';

/** A session, a user, or all: who holds how much. */
interface Account {
  bytes: number;
  /** Those that have ended. */
  readonly finished: OldestFirst;
}

interface UserAccount extends Account {
  /** As `nameOwner` has it. Without authentication a session is a user of its own, without a name. */
  readonly name: string | undefined;
  /** The number of its sessions that are kept. */
  sessions: number;
  /** Counts what is kept as bytes (short-streams.ts). */
  shortBytes: number;
}

export interface SessionAccount extends Account {
  readonly sessionId: string;
  readonly tag: string;
  readonly protocolVersion: string;
  readonly user: UserAccount;
  events: number;
  /** Not a Map: one that is filled and emptied again and again leaves old tables behind, which keep what was in them. */
  streams: KeptStream[];
  /** The count of those that are kept as bytes, and the number of the newest (short-streams.ts). */
  shortStreams: number;
  newestShort: number;
  /** It has ended: nobody may come back. */
  isOver: boolean;
}

/**
 * Those that have to be given up in the order in which they ended. Not a Set: from one that loses its first members again and
 * again, finding the first takes ever longer.
 */
class OldestFirst {
  private items: KeptStream[] = [];
  private head = 0;
  /** Those that were not given up. */
  private live = 0;

  get isEmpty(): boolean {
    return this.live === 0;
  }

  add(stream: KeptStream): void {
    if (this.items.length > 2 * this.live + SLACK) this.compact();
    this.items.push(stream);
    this.live += 1;
  }

  /** To be called when one of its items was given up. */
  noteForgotten(): void {
    this.live -= 1;
  }

  first(): KeptStream | undefined {
    while (this.items[this.head]?.isForgotten) this.head += 1;
    return this.items[this.head];
  }

  private compact(): void {
    this.items = this.items.filter(({ isForgotten }) => !isForgotten);
    this.head = 0;
  }
}

const SLACK = 32;

// §15.1: who holds how much of what is kept of streams: each session, each user, and all.

/** For one session (§15.1). */
export const SESSION_EVENTS = 1000;
export const SESSION_BYTES = 1_048_576;
/**
 * For one user, and for all: what ended first goes first. A stream takes some of it by itself. Short ones that have ended are
 * not among these: those have bytes of their own.
 */
const USER_BYTES = 4 * SESSION_BYTES;
const ALL_BYTES = 8 * SESSION_BYTES;
const STREAM_BYTES = 3072;

/**
 * Counts what a stream takes by itself, beside its events. The one of a session counts from its end on: until then it is one of
 * the streams that are open (notification-streams.ts), whose number is bounded, and thousands of those must not leave
 * nothing for what others have sent.
 */
const countOwnBytes = ({ isOfSession, endedAt }: KeptStream): number =>
  isOfSession && endedAt === undefined ? 0 : STREAM_BYTES;

export function createKeptAccounts() {
  const sessions = new Map<string, SessionAccount>();
  /** Those that have ended while calls in them were under way. */
  const over = new Set<SessionAccount>();
  const users = new Map<string, UserAccount>();
  const all: Account = { bytes: 0, finished: new OldestFirst() };

  function openUser(name: string | undefined): UserAccount {
    const known = name === undefined ? undefined : users.get(name);
    if (known !== undefined) return known;
    const account: UserAccount = {
      name,
      sessions: 0,
      bytes: 0,
      shortBytes: 0,
      finished: new OldestFirst(),
    };
    if (name !== undefined) users.set(name, account);
    return account;
  }

  function countBytes({ session }: KeptStream, bytes: number, events: number): void {
    session.bytes += bytes;
    session.events += events;
    session.user.bytes += bytes;
    all.bytes += bytes;
  }

  const isSessionFull = ({ events, bytes }: SessionAccount) =>
    events > SESSION_EVENTS || bytes > SESSION_BYTES;

  function holdBounds({ session }: KeptStream, makeRoom: (account: Account) => boolean): void {
    const { user } = session;
    while (isSessionFull(session) && makeRoom(session));
    while (user.bytes > USER_BYTES && makeRoom(user));
    while (all.bytes > ALL_BYTES && makeRoom(all));
  }

  function forgetOldest({ finished }: Account): boolean {
    const oldest = finished.first();
    if (oldest === undefined) return false;
    forget(oldest);
    return true;
  }

  /** False where others that go on hold all of it. */
  function forgetFirstEvent(stream: KeptStream): boolean {
    const event = stream.events.shift();
    if (event === undefined) return false;
    countBytes(stream, -event.text.length, -1);
    if (!event.isNotification) stream.lostPosition = stream.firstPosition;
    stream.firstPosition += 1;
    return true;
  }

  const measure = (stream: KeptStream) =>
    stream.events.reduce((sum, { text }) => sum + text.length, countOwnBytes(stream));

  function drop(stream: KeptStream): void {
    countBytes(stream, -measure(stream), -stream.events.length);
    removeLast(stream.session.streams, stream);
  }

  /** One that has ended. */
  function forget(stream: KeptStream): void {
    const { session } = stream;
    drop(stream);
    // A reader may still hold it, and what is about to be written of it says that it is lost.
    stream.firstPosition += stream.events.length;
    stream.lostPosition = stream.firstPosition - 1;
    stream.events.length = 0;
    stream.isForgotten = true;
    all.finished.noteForgotten();
    session.finished.noteForgotten();
    session.user.finished.noteForgotten();
    release(session);
  }

  /** Once nothing is kept of the session. */
  function release(session: SessionAccount): void {
    const { sessionId, user } = session;
    if (session.streams.length > 0 || session.shortStreams > 0) return;
    if (session.isOver) over.delete(session);
    else sessions.delete(sessionId);
    user.sessions -= 1;
    if (user.sessions === 0 && user.name !== undefined) users.delete(user.name);
  }

  function noteFinished(stream: KeptStream): void {
    const { session } = stream;
    all.finished.add(stream);
    session.finished.add(stream);
    session.user.finished.add(stream);
  }

  return {
    openSession(
      sessionId: string,
      userName: string | undefined,
      protocolVersion: string,
    ): SessionAccount {
      const known = sessions.get(sessionId);
      if (known !== undefined) return known;
      const user = openUser(userName);
      user.sessions += 1;
      const session: SessionAccount = {
        sessionId,
        tag: tagSession(sessionId),
        protocolVersion,
        user,
        bytes: 0,
        events: 0,
        finished: new OldestFirst(),
        streams: [],
        shortStreams: 0,
        newestShort: -1,
        isOver: false,
      };
      sessions.set(sessionId, session);
      return session;
    },
    findSession: (sessionId: string): SessionAccount | undefined => sessions.get(sessionId),
    listStreams: (): readonly KeptStream[] =>
      [...sessions.values(), ...over].flatMap(({ streams }) => streams),
    get hasFinished(): boolean {
      return !all.finished.isEmpty;
    },
    /** One that begins. */
    add(stream: KeptStream): void {
      addToSession(stream);
      countBytes(stream, countOwnBytes(stream), 0);
    },
    append(stream: KeptStream, event: LoggedEvent): void {
      stream.events.push(event);
      stream.isUnsaved = true;
      countBytes(stream, event.text.length, 1);
      // Streams that have ended go first; then what this stream sent first.
      holdBounds(stream, (account) => forgetOldest(account) || forgetFirstEvent(stream));
    },
    /** One that has ended: it is kept for as long as there is room. */
    addFinished(stream: KeptStream): void {
      noteFinished(stream);
      if (!stream.isOfSession) return;
      countBytes(stream, countOwnBytes(stream), 0);
      holdBounds(stream, forgetOldest);
    },
    /** One that ended before, with all its events. */
    addAgain(stream: KeptStream): void {
      addToSession(stream);
      countBytes(stream, measure(stream), stream.events.length);
      holdBounds(stream, forgetOldest);
      noteFinished(stream);
    },
    /** One that has ended, and is kept elsewhere. */
    drop,
    release,
    /** Those that ended before that. */
    sweep(before: number): void {
      for (let stream = all.finished.first(); stream; stream = all.finished.first()) {
        if (stream.endedAt === undefined || stream.endedAt > before) break;
        forget(stream);
      }
    },
    /** Gives up what has ended; those that go on. */
    endSession(sessionId: string): readonly KeptStream[] {
      const session = sessions.get(sessionId);
      if (session === undefined) return [];
      session.isOver = true;
      sessions.delete(sessionId);
      over.add(session);
      const streams = [...session.streams];
      for (const stream of streams) if (stream.endedAt !== undefined) forget(stream);
      return streams.filter(({ endedAt }) => endedAt === undefined);
    },
  };
}

/** An array that is added to takes room for sixteen more, and most sessions have one stream. */
function addToSession(stream: KeptStream): void {
  const { session } = stream;
  if (session.streams.length === 0) session.streams = [stream];
  else session.streams.push(stream);
}

/** The stream that is removed is nearly always the one that came last. */
function removeLast(streams: KeptStream[], stream: KeptStream): void {
  const last = streams.pop();
  if (last !== undefined && last !== stream) streams[streams.lastIndexOf(stream)] = last;
}
