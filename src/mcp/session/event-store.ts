// Event store of resumable streams (§15.1): append, replay, forget, within a budget per session, per user and in total.

import type { Clock } from '../../platform/clock.ts';
import { Account, KeptStream, SessionAccount, UserAccount } from './kept-stream.ts';
import {
  KEPT_MS,
  type LoggedEvent,
  readIdOf,
  SESSION_BYTES,
  SESSION_EVENTS,
  splitEvents,
} from './resumable-events.ts';
import { createShortStreams, type ShortStream } from './short-streams.ts';

/** The budget of one user, and of all. Short streams have a separate budget of bytes. */
const USER_BYTES = 4 * SESSION_BYTES;
const ALL_BYTES = 8 * SESSION_BYTES;
/** The memory of a stream itself, not counting its events. */
const STREAM_BYTES = 3072;

/** `replica` is the name of this one. */
export function createEventStore(clock: Clock, replica: string) {
  const sessions = new Map<string, SessionAccount>();
  /** Sessions that ended during a call. */
  const over = new Set<SessionAccount>();
  const users = new Map<string, UserAccount>();
  const all = new Account();
  const shortStreams = createShortStreams(release);

  function countBytes({ session }: KeptStream, bytes: number, events: number) {
    session.bytes += bytes;
    session.events += events;
    session.user.bytes += bytes;
    all.bytes += bytes;
  }

  /** Evicts until the budget is kept: ended streams first, oldest first; then the oldest events of `growing`. */
  function evict(stream: KeptStream, growing?: KeptStream) {
    const { session } = stream;
    const { user } = session;
    const makeRoom = ({ finished }: Account) => {
      const oldest = finished.first?.value;
      if (oldest !== undefined) forget(oldest);
      return oldest !== undefined || (growing !== undefined && forgetFirstEvent(growing));
    };
    const isFull = () => session.events > SESSION_EVENTS || session.bytes > SESSION_BYTES;
    while (isFull() && makeRoom(session));
    while (user.bytes > USER_BYTES && makeRoom(user));
    while (all.bytes > ALL_BYTES && makeRoom(all));
  }

  /** False if other open streams hold all of the budget. */
  function forgetFirstEvent(stream: KeptStream) {
    const event = stream.events.shift();
    if (event === undefined) return false;
    countBytes(stream, -event.text.length, -1);
    if (!event.isNotification) stream.lostPosition = stream.firstPosition;
    stream.firstPosition += 1;
    return true;
  }

  function drop(stream: KeptStream) {
    countBytes(stream, -measure(stream), -stream.events.length);
    const { streams } = stream.session;
    // Nearly always the last one.
    const last = streams.pop();
    if (last !== undefined && last !== stream) streams[streams.lastIndexOf(stream)] = last;
  }

  /** Forgets an ended stream. */
  function forget(stream: KeptStream) {
    drop(stream);
    // A reader may still hold it, and a pending write must report the loss.
    stream.firstPosition += stream.events.length;
    stream.lostPosition = stream.firstPosition - 1;
    stream.events.length = 0;
    stream.isForgotten = true;
    for (const place of stream.places) place.list?.remove(place);
    release(stream.session);
  }

  /** Removes a session without streams. */
  function release(session: SessionAccount) {
    const { sessionId, user } = session;
    if (session.streams.length > 0 || session.shortStreams > 0) return;
    if (session.isOver) over.delete(session);
    else sessions.delete(sessionId);
    user.sessions -= 1;
    if (user.sessions === 0 && user.name !== undefined) users.delete(user.name);
  }

  function noteFinished(stream: KeptStream) {
    const { session } = stream;
    stream.places = [all, session, session.user].map(({ finished }) => finished.add(stream));
  }

  function openSession(
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
  }

  /** Turns a short stream back into an object. */
  function reopen({ session, name, text, endedAt }: ShortStream): KeptStream {
    const texts = splitEvents(text);
    const stream = new KeptStream(session, {
      name,
      replica,
      requestId: readIdOf(text)?.requestId,
      isOfSession: false,
      startedAt: endedAt,
      events: texts.map((event, at) => ({ text: event, isNotification: at < texts.length - 1 })),
      abandon: undefined,
    });
    stream.endedAt = endedAt;
    return stream;
  }

  /** False if it cannot be kept as bytes only: nothing but notifications and the answer may be in it, and all of them. */
  function shorten(stream: KeptStream) {
    const { session, name, events } = stream;
    const isStored = stream.storedBytes > 0 || stream.saving !== undefined;
    const isWhole =
      stream.firstPosition === 1 &&
      events.every(({ isNotification }, at) => isNotification === at < events.length - 1);
    if (isStored || !isWhole || session.isOver) return false;
    const texts = events.map(({ text }) => text);
    if (!shortStreams.add(session, name, texts, clock.monotonic())) return false;
    drop(stream);
    return true;
  }

  const listStreams = (): readonly KeptStream[] =>
    [...sessions.values(), ...over].flatMap(({ streams }) => streams);

  return {
    openSession,
    /** Adds an open stream. */
    add(stream: KeptStream): void {
      addToSession(stream);
      countBytes(stream, countOwnBytes(stream), 0);
    },
    append(stream: KeptStream, event: LoggedEvent): void {
      stream.events.push(event);
      stream.isUnsaved = true;
      countBytes(stream, event.text.length, 1);
      evict(stream, stream);
    },
    /** Keeps an ended stream while there is room; `isNeeded` if its client is likely to resume it. */
    finish(stream: KeptStream, isNeeded: boolean): void {
      if (!isNeeded && shorten(stream)) return;
      noteFinished(stream);
      if (!stream.isOfSession) return;
      countBytes(stream, countOwnBytes(stream), 0);
      evict(stream);
    },
    find(sessionId: string, name: string): KeptStream | undefined {
      const session = sessions.get(sessionId);
      if (session === undefined) return undefined;
      const known = session.streams.find((one) => one.name === name);
      if (known !== undefined) return known;
      const short = shortStreams.find(session, name, clock.monotonic());
      if (short === undefined) return undefined;
      const stream = reopen(short);
      addToSession(stream);
      countBytes(stream, measure(stream), stream.events.length);
      evict(stream);
      noteFinished(stream);
      return stream;
    },
    /** Forgets an open stream that cannot be resumed. */
    forget(stream: KeptStream): void {
      drop(stream);
      release(stream.session);
    },
    /** Forgets the ended streams of a session; returns the open ones. */
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
    /** Forgets streams that ended long ago; false if no ended ones are left. */
    sweep(now: number): boolean {
      for (const stream of all.finished) {
        if (stream.endedAt === undefined || stream.endedAt > now - KEPT_MS) break;
        forget(stream);
      }
      shortStreams.sweep(now);
      return all.finished.size > 0 || !shortStreams.isEmpty;
    },
    listStreams,
    /** Streams that ended after that, and that the store lacks. */
    listUnsaved: (after: number): readonly KeptStream[] => [
      ...listStreams().filter(({ isUnsaved, endedAt = 0 }) => isUnsaved && endedAt > after),
      ...shortStreams.list(after).map(reopen),
    ],
  };
}

/**
 * The stream of a session counts from its end on: open ones are bounded by their number (notification-streams.ts), and thousands
 * of them must leave room for others.
 */
const countOwnBytes = ({ isOfSession, endedAt }: KeptStream): number =>
  isOfSession && endedAt === undefined ? 0 : STREAM_BYTES;

const measure = (stream: KeptStream) =>
  stream.events.reduce((sum, { text }) => sum + text.length, countOwnBytes(stream));

/** Pushing to an empty array allocates room for sixteen more, and most sessions have one stream. */
function addToSession(stream: KeptStream) {
  const { session } = stream;
  if (session.streams.length === 0) session.streams = [stream];
  else session.streams.push(stream);
}
