// What was touched in one second, in one record. Where more buckets have changed than a commit writes,
// the others follow in the next seconds; until then a restart finds their touches here.
import { Buffer } from 'node:buffer';
import type { Database, RootDatabase } from 'lmdb';

export interface LoggedTouch {
  /** That of the session's entry in its bucket. */
  readonly key: number;
  readonly lastAccessedAt: number;
  readonly expiresAt: number;
}

export interface LoggedSecond {
  readonly sequence: number;
  readonly touches: readonly LoggedTouch[];
}

/** What writes is to be called inside a transaction. */
export interface TouchLog {
  put(sequence: number, touches: readonly LoggedTouch[]): void;
  /** Touches of before are in their buckets by now. */
  removeBefore(sequence: number): void;
  /** All of them, the earliest first. */
  read(): readonly LoggedSecond[];
}

const ENTRY_LENGTH = 3;

export function openTouchLog(root: RootDatabase): TouchLog {
  const records: Database<Buffer, number> = root.openDB({
    name: 'session-touches',
    encoding: 'binary',
  });

  return {
    put(sequence, touches) {
      const values = new Float64Array(touches.length * ENTRY_LENGTH);
      let at = 0;
      for (const { key, lastAccessedAt, expiresAt } of touches) {
        values[at] = key;
        values[at + 1] = lastAccessedAt;
        values[at + 2] = expiresAt;
        at += ENTRY_LENGTH;
      }
      records.put(sequence, Buffer.from(values.buffer));
    },
    removeBefore(sequence) {
      for (const key of [...records.getKeys({ end: sequence })]) records.remove(key);
    },
    read: () =>
      [...records.getRange()].map(({ key, value }) => ({
        sequence: key,
        touches: readTouches(value),
      })),
  };
}

function readTouches(bytes: Buffer): readonly LoggedTouch[] {
  const length = Math.floor(bytes.length / Float64Array.BYTES_PER_ELEMENT);
  const values = new Float64Array(length);
  new Uint8Array(values.buffer).set(bytes.subarray(0, values.byteLength));
  const touches: LoggedTouch[] = [];
  for (let at = 0; at + ENTRY_LENGTH <= length; at += ENTRY_LENGTH) {
    const key = values[at] ?? 0;
    const lastAccessedAt = values[at + 1] ?? 0;
    const expiresAt = values[at + 2] ?? 0;
    touches.push({ key, lastAccessedAt, expiresAt });
  }
  return touches;
}
