// §15.1: what short streams have sent whole. Nearly all streams are of this kind, and nearly nobody comes back to one: they
// are kept as bytes in one buffer, with arrays of numbers that say where, so that the garbage collector has nothing of
// them to look at, to copy and to give up again. What is new takes the place of what is oldest.

import { SESSION_BYTES, SESSION_EVENTS, type SessionAccount } from './kept-stream.ts';
import { KEPT_MS } from './stored-streams.ts';

export interface ShortStream {
  readonly session: SessionAccount;
  readonly name: string;
  readonly text: string;
  readonly endedAt: number;
}

/** For all sessions. */
const ALL_BYTES = 8_388_608;
/** More are not kept. Two events and their ids take more bytes than this leaves to each. */
const SLOTS = 32_768;
/** Longer ones are few, and of a kind that is not copied by the collector either. */
const MAX_BYTES = 65_536;

const NAME_DIGITS = 12;

/** Made when it is used first: most gateways of one's own machine never need it. */
function createMemory() {
  return {
    bytes: Buffer.allocUnsafeSlow(ALL_BYTES),
    offsets: new Uint32Array(SLOTS),
    lengths: new Uint32Array(SLOTS),
    eventCounts: new Uint16Array(SLOTS),
    names: new Float64Array(SLOTS),
    endTimes: new Float64Array(SLOTS),
    /** The number of the same session's stream before. */
    predecessors: new Float64Array(SLOTS),
    sessions: new Array<SessionAccount | undefined>(SLOTS).fill(undefined),
  };
}

/** `onEmpty` is called when a session has none here any more. */
export function createShortStreams(onEmpty: (session: SessionAccount) => void) {
  let memory: ReturnType<typeof createMemory> | undefined;
  /** Numbers of streams, in the order in which they lie in the buffer: those from `oldest` on, before `next`, are kept. */
  let oldest = 0;
  let next = 0;
  /** The place in the buffer for the next one. */
  let position = 0;
  let totalBytes = 0;
  let userCount = 0;

  function getMemory() {
    memory ??= createMemory();
    return memory;
  }

  function count({ user }: SessionAccount, bytes: number): void {
    if (user.shortBytes === 0) userCount += 1;
    user.shortBytes += bytes;
    totalBytes += bytes;
    if (user.shortBytes === 0) userCount -= 1;
  }

  /** So many bytes from `position` on, and a slot. */
  function makeRoom(length: number, now: number): void {
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
      giveUpOldest(now);
    }
  }

  /**
   * Whoever has less than half of what each would have if all had the same keeps it: it goes on with what is new. All of
   * these have less than half of everything together, so no more is copied than is written, and one user's streams push
   * out only those of users who have many themselves.
   */
  function isSpared({ user, isOver }: SessionAccount): boolean {
    return !isOver && user.shortBytes * userCount * 2 < totalBytes;
  }

  function giveUpOldest(now: number): void {
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
      note(session, names[slot] ?? 0, eventCounts[slot] ?? 0, length, endedAt);
      return;
    }
    count(session, -length);
    session.shortStreams -= 1;
    if (session.shortStreams === 0) onEmpty(session);
  }

  /** Notes what lies at `position` now. */
  function note(
    session: SessionAccount,
    name: number,
    eventCount: number,
    length: number,
    endedAt: number,
  ): void {
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
    /** Its events, at the time at which it ended. False where they are too long. */
    add(session: SessionAccount, name: string, events: readonly string[], now: number): boolean {
      const text = events.join('');
      // Characters first: to count the bytes of what is far too long is work, too.
      if (text.length > MAX_BYTES) return false;
      const length = Buffer.byteLength(text);
      if (length > MAX_BYTES) return false;
      makeRoom(length, now);
      getMemory().bytes.write(text, position, length, 'utf8');
      count(session, length);
      session.shortStreams += 1;
      note(session, Number.parseInt(name, 16), events.length, length, now);
      return true;
    },
    /** The events of a stream, as one text. */
    find(session: SessionAccount, name: string, now: number): ShortStream | undefined {
      if (memory === undefined) return undefined;
      const { lengths, eventCounts, names, endTimes, predecessors } = memory;
      const wanted = Number.parseInt(name, 16);
      let { events, bytes } = session;
      for (let number = session.newestShort; number >= oldest; ) {
        const slot = number % SLOTS;
        events += eventCounts[slot] ?? 0;
        bytes += lengths[slot] ?? 0;
        // With all else that is kept of the session.
        if (events > SESSION_EVENTS || bytes > SESSION_BYTES) return undefined;
        if (names[slot] === wanted)
          return (endTimes[slot] ?? 0) > now - KEPT_MS ? read(session, slot) : undefined;
        number = predecessors[slot] ?? -1;
      }
      return undefined;
    },
    /** Those that ended after that. */
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
    /** Gives up what has been kept for long enough. */
    sweep(now: number): void {
      const isOld = (number: number) => (memory?.endTimes[number % SLOTS] ?? 0) <= now - KEPT_MS;
      while (oldest < next && isOld(oldest)) giveUpOldest(now);
    },
  };
}
