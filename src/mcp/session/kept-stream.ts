// §15.1: streams whose events are kept for clients that come back: one of them, and how much each session and user holds.

import { type Link, LinkedList } from '../../platform/bounded-map.ts';
import type { RequestId } from '../protocol/json-rpc.ts';
import type { EventQueue } from '../streaming/event-queue.ts';
import {
  type LoggedEvent,
  type StreamLog,
  tagSession,
  type WrittenStream,
} from './resumable-events.ts';

/** As it is known while it is kept. Times are milliseconds of the monotonic clock. */
export class KeptStream implements WrittenStream {
  readonly session: SessionAccount;
  readonly sessionId: string;
  readonly sessionTag: string;
  readonly protocolVersion: string;
  /** The user of the session, as `nameOwner` has it; undefined without authentication. */
  readonly user: string | undefined;
  readonly name: string;
  /** The one that has it. */
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
  /** Its places among those that have ended: of its session, its user, and all. */
  places: readonly Link<KeptStream>[] = NO_PLACES;
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

  constructor(
    session: SessionAccount,
    stream: Pick<
      KeptStream,
      'name' | 'replica' | 'requestId' | 'isOfSession' | 'startedAt' | 'events' | 'abandon'
    >,
  ) {
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

const NO_PLACES: readonly Link<KeptStream>[] = [];

export type SaveResult = 'saved' | 'no_room' | 'failed';

/** A session, a user, or all: who holds how much. */
class Account {
  bytes = 0;
  /** Those that have ended, in the order in which they have to be given up. */
  readonly finished = new LinkedList<KeptStream>();
}

class UserAccount extends Account {
  /** As `nameOwner` has it. Without authentication a session is a user of its own, without a name. */
  readonly name: string | undefined;
  /** The number of its sessions that are kept. */
  sessions = 0;
  /** Counts what is kept as bytes (short-streams.ts). */
  shortBytes = 0;

  constructor(name: string | undefined) {
    super();
    this.name = name;
  }
}

export class SessionAccount extends Account {
  readonly sessionId: string;
  readonly tag: string;
  readonly protocolVersion: string;
  readonly user: UserAccount;
  events = 0;
  /** Not a Map: one that is filled and emptied again and again leaves old tables behind, which keep what was in them. */
  streams: KeptStream[] = [];
  /** The count of those that are kept as bytes, and the number of the newest (short-streams.ts). */
  shortStreams = 0;
  newestShort = -1;
  /** It has ended: nobody may come back. */
  isOver = false;

  constructor(sessionId: string, protocolVersion: string, user: UserAccount) {
    super();
    this.sessionId = sessionId;
    this.tag = tagSession(sessionId);
    this.protocolVersion = protocolVersion;
    this.user = user;
  }
}

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
  const all = new Account();

  function countBytes({ session }: KeptStream, bytes: number, events: number): void {
    session.bytes += bytes;
    session.events += events;
    session.user.bytes += bytes;
    all.bytes += bytes;
  }

  function holdBounds({ session }: KeptStream, makeRoom: (account: Account) => boolean): void {
    const { user } = session;
    const isFull = () => session.events > SESSION_EVENTS || session.bytes > SESSION_BYTES;
    while (isFull() && makeRoom(session));
    while (user.bytes > USER_BYTES && makeRoom(user));
    while (all.bytes > ALL_BYTES && makeRoom(all));
  }

  function forgetOldest({ finished }: Account): boolean {
    const oldest = finished.find(() => true);
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
    const { streams } = stream.session;
    // The stream that is removed is nearly always the one that came last.
    const last = streams.pop();
    if (last !== undefined && last !== stream) streams[streams.lastIndexOf(stream)] = last;
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
    for (const place of stream.places) place.remove();
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
    stream.places = [all, session, session.user].map(({ finished }) => finished.add(stream));
  }

  return {
    openSession(
      sessionId: string,
      userName: string | undefined,
      protocolVersion: string,
    ): SessionAccount {
      const known = sessions.get(sessionId);
      if (known !== undefined) return known;
      const knownUser = userName === undefined ? undefined : users.get(userName);
      const user = knownUser ?? new UserAccount(userName);
      if (userName !== undefined) users.set(userName, user);
      user.sessions += 1;
      const session = new SessionAccount(sessionId, protocolVersion, user);
      sessions.set(sessionId, session);
      return session;
    },
    findSession: (sessionId: string): SessionAccount | undefined => sessions.get(sessionId),
    listStreams: (): readonly KeptStream[] =>
      [...sessions.values(), ...over].flatMap(({ streams }) => streams),
    get hasFinished(): boolean {
      return all.finished.size > 0;
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
      for (const stream of all.finished) {
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
