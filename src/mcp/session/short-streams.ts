// Ring buffer of the event store (§15.1) for short streams that were sent completely. Nearly all streams are short, and hardly
// any is resumed: their events are bytes in one buffer, indexed by typed arrays, so that the garbage collector neither marks nor
// copies them. New streams replace the oldest.

import type { SessionAccount } from './kept-stream.ts';
import { KEPT_MS, SESSION_BYTES, SESSION_EVENTS } from './resumable-events.ts';

export interface ShortStream {
  readonly session: SessionAccount;
  readonly name: string;
  readonly text: string;
  readonly endedAt: number;
}

/** For all sessions. */
const ALL_BYTES = 8_388_608;
/** At most this many streams. Two events with their ids take more bytes than this leaves for each. */
const SLOTS = 32_768;
/** Longer streams are rare, and the garbage collector does not copy large strings either. */
const MAX_BYTES = 65_536;

const NAME_DIGITS = 12;

/** Allocated on first use: most local gateways never need it. */
function createMemory() {
  return {
    bytes: Buffer.allocUnsafeSlow(ALL_BYTES),
    offsets: new Uint32Array(SLOTS),
    lengths: new Uint32Array(SLOTS),
    eventCounts: new Uint16Array(SLOTS),
    names: new Float64Array(SLOTS),
    endTimes: new Float64Array(SLOTS),
    /** The number of the session's previous stream. */
    predecessors: new Float64Array(SLOTS),
    sessions: new Array<SessionAccount | undefined>(SLOTS).fill(undefined),
  };
}

/** Calls `onEmpty` when the last stream of a session is evicted. */
export function createShortStreams(onEmpty: (session: SessionAccount) => void) {
  let memory: ReturnType<typeof createMemory> | undefined;
  /** Streams are numbered in the order of the buffer: it holds those from `oldest` up to `next`. */
  let oldest = 0;
  let next = 0;
  /** The offset for the next stream. */
  let position = 0;
  let totalBytes = 0;
  let userCount = 0;

  function getMemory() {
    memory ??= createMemory();
    return memory;
  }

  function count({ user }: SessionAccount, bytes: number) {
    if (user.shortBytes === 0) userCount += 1;
    user.shortBytes += bytes;
    totalBytes += bytes;
    if (user.shortBytes === 0) userCount -= 1;
  }

  /** Frees this many bytes at `position`, and a slot. */
  function makeRoom(length: number, now: number) {
    const { offsets } = getMemory();
    for (;;) {
      if (oldest === next) {
        position = 0;
        return;
      }
      if (next - oldest < SLOTS) {
        const first = offsets[oldest % SLOTS] ?? 0;
        const isAhead = first >= position;
        if (length <= (isAhead ? first : ALL_BYTES) - position) return;
        if (!isAhead) {
          position = 0;
          continue;
        }
      }
      evictOldest(now);
    }
  }

  /**
   * A user with less than half of an equal share keeps its streams: they are copied forward. All such users together have less
   * than half of the buffer, so no more is copied than written, and a user only evicts the streams of users with many.
   */
  function isSpared({ user, isOver }: SessionAccount) {
    return !isOver && user.shortBytes * userCount * 2 < totalBytes;
  }

  function evictOldest(now: number) {
    const { bytes, offsets, lengths, eventCounts, names, endTimes, sessions } = getMemory();
    const slot = oldest % SLOTS;
    const session = sessions[slot];
    sessions[slot] = undefined;
    oldest += 1;
    if (session === undefined) return;
    const offset = offsets[slot] ?? 0;
    const length = lengths[slot] ?? 0;
    const endedAt = endTimes[slot] ?? 0;
    if (offset >= position && endedAt > now - KEPT_MS && isSpared(session)) {
      bytes.copyWithin(position, offset, offset + length);
      place(session, names[slot] ?? 0, { eventCount: eventCounts[slot] ?? 0, length, endedAt });
      return;
    }
    count(session, -length);
    session.shortStreams -= 1;
    if (session.shortStreams === 0) onEmpty(session);
  }

  /** Indexes the stream at `position`. */
  function place(
    session: SessionAccount,
    name: number,
    { eventCount, length, endedAt }: Record<'eventCount' | 'length' | 'endedAt', number>,
  ) {
    const { offsets, lengths, eventCounts, names, endTimes, predecessors, sessions } = getMemory();
    const slot = next % SLOTS;
    offsets[slot] = position;
    lengths[slot] = length;
    eventCounts[slot] = eventCount;
    names[slot] = name;
    endTimes[slot] = endedAt;
    predecessors[slot] = session.newestShort;
    sessions[slot] = session;
    session.newestShort = next;
    next += 1;
    position += length;
  }

  function read(session: SessionAccount, slot: number): ShortStream {
    const { bytes, offsets, lengths, names, endTimes } = getMemory();
    const offset = offsets[slot] ?? 0;
    return {
      session,
      name: (names[slot] ?? 0).toString(16).padStart(NAME_DIGITS, '0'),
      text: bytes.toString('utf8', offset, offset + (lengths[slot] ?? 0)),
      endedAt: endTimes[slot] ?? 0,
    };
  }

  return {
    get isEmpty(): boolean {
      return oldest === next;
    },
    /** Adds the events of a stream that ends now. False if they are too long. */
    add(session: SessionAccount, name: string, events: readonly string[], now: number): boolean {
      const text = events.join('');
      // Characters first: counting the bytes of a long text takes time.
      if (text.length > MAX_BYTES) return false;
      const length = Buffer.byteLength(text);
      if (length > MAX_BYTES) return false;
      makeRoom(length, now);
      getMemory().bytes.write(text, position, length, 'utf8');
      count(session, length);
      session.shortStreams += 1;
      const facts = { eventCount: events.length, length, endedAt: now };
      place(session, Number.parseInt(name, 16), facts);
      return true;
    },
    /** Finds a stream within the budget of its session. */
    find(session: SessionAccount, name: string, now: number): ShortStream | undefined {
      if (memory === undefined) return undefined;
      const { lengths, eventCounts, names, endTimes, predecessors } = memory;
      const wanted = Number.parseInt(name, 16);
      let { events, bytes } = session;
      for (let number = session.newestShort; number >= oldest; ) {
        const slot = number % SLOTS;
        events += eventCounts[slot] ?? 0;
        bytes += lengths[slot] ?? 0;
        if (events > SESSION_EVENTS || bytes > SESSION_BYTES) return undefined;
        if (names[slot] === wanted)
          return (endTimes[slot] ?? 0) > now - KEPT_MS ? read(session, slot) : undefined;
        number = predecessors[slot] ?? -1;
      }
      return undefined;
    },
    /** Lists streams that ended after that. */
    list(after: number): readonly ShortStream[] {
      const found: ShortStream[] = [];
      for (let number = oldest; number < next; number += 1) {
        const slot = number % SLOTS;
        const session = memory?.sessions[slot];
        if (session === undefined || session.isOver) continue;
        if ((memory?.endTimes[slot] ?? 0) > after) found.push(read(session, slot));
      }
      return found;
    },
    /** Evicts streams that ended long ago. */
    sweep(now: number): void {
      const isOld = (number: number) => (memory?.endTimes[number % SLOTS] ?? 0) <= now - KEPT_MS;
      while (oldest < next && isOld(oldest)) evictOldest(now);
    },
  };
}
