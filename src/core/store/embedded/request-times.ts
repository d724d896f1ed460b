// §8: when the requests of one window came, oldest first. Requests of the same millisecond share an
// entry: a window has no more entries than milliseconds, however many requests it counts.

/** Plain data: there may be one for every address that the global limit lets in. */
export interface RequestTimes {
  /** Requests, not entries. */
  count: number;
  readonly windowMs: number;
  first: Chunk;
  /** Where in the first chunk the oldest entry is. */
  head: number;
  last: Chunk;
}

/** Chunks are chained, so that nothing is copied while a window grows or slides. */
interface Chunk {
  /** Pairs: a time, and how many requests came then. */
  readonly pairs: number[];
  next: Chunk | undefined;
}

/** Numbers in a chunk: 2 KB. */
const CHUNK_LENGTH = 256;

export function createRequestTimes(windowMs: number, time: number): RequestTimes {
  const chunk = createChunk(time);
  return { count: 1, windowMs, first: chunk, head: 0, last: chunk };
}

const createChunk = (time: number): Chunk => ({ pairs: [time, 1], next: undefined });

/** `time` is not before any that was added. */
export function addTime(times: RequestTimes, time: number): void {
  const { pairs } = times.last;
  const newest = pairs.length - 2;
  if (pairs[newest] === time) {
    addToCount(pairs, newest, 1);
  } else if (pairs.length < CHUNK_LENGTH) {
    pairs.push(time, 1);
  } else {
    const chunk = createChunk(time);
    times.last.next = chunk;
    times.last = chunk;
  }
  times.count += 1;
}

/** Drops what came at `until` or before, and entries that were taken back. */
export function dropTimesUntil(times: RequestTimes, until: number): void {
  for (;;) {
    const { pairs, next } = times.first;
    const time = pairs[times.head];
    const count = pairs[times.head + 1] ?? 0;
    if (time === undefined) {
      if (next === undefined) return;
      times.first = next;
      times.head = 0;
    } else if (time <= until || count === 0) {
      times.count -= count;
      times.head += 2;
    } else {
      return;
    }
  }
}

/** Takes back one request of that time. False when there is none. */
export function removeTime(times: RequestTimes, time: number): boolean {
  let chunk: Chunk | undefined = times.first;
  // Most often it is in the last chunk: the others are passed by their last entry.
  while (chunk !== undefined && !((chunk.pairs.at(-2) ?? 0) >= time)) chunk = chunk.next;
  if (chunk === undefined) return false;
  const { pairs } = chunk;
  for (let at = pairs.length - 2; at >= (chunk === times.first ? times.head : 0); at -= 2) {
    if (pairs[at] !== time) continue;
    if (pairs[at + 1] === 0) return false;
    addToCount(pairs, at, -1);
    times.count -= 1;
    return true;
  }
  return false;
}

export const getOldestTime = ({ first, head }: RequestTimes): number | undefined =>
  first.pairs[head];

/** Whether all have left the window, or were taken back. */
export const isOver = ({ last, windowMs }: RequestTimes, time: number): boolean =>
  (last.pairs.at(-2) ?? 0) <= time - windowMs;

function addToCount(pairs: number[], at: number, change: number): void {
  pairs[at + 1] = (pairs[at + 1] ?? 0) + change;
}
