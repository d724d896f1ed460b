// Bytes of replies on their way to the socket.
import type { ServerResponse } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import { KEEP_ALIVE } from '../platform/sse.ts';
import type { CountedReply } from './reply-memory.ts';

/** Handed over at once: a slow caller's progress shows by such steps. */
export const SLICE_BYTES = 16_384;

/** Counts so many bytes until they are sent, or the connection has closed. */
export type CountBytes = (bytes: number) => CountedReply;

/** Resolves when the last slice was handed over, not all of it before; never when the caller is gone. */
export async function writeSlices(
  res: ServerResponse,
  bytes: Uint8Array,
  countBytes: CountBytes,
): Promise<void> {
  let counted: CountedReply | undefined;
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    if (res.write(bytes.subarray(at, at + SLICE_BYTES))) continue;
    // All of it stays in memory until its last byte is handed over.
    counted ??= countBytes(bytes.length);
    await waitForDrain(res);
    counted.noteSent(SLICE_BYTES);
  }
  counted?.end();
}

const waitForDrain = (res: ServerResponse) =>
  new Promise<void>((resolve) => res.once('drain', () => resolve()));

/** Writes an event stream. */
export interface StreamWriter {
  /** From now on nothing is due: comments fill the silence until the next call. */
  keepAlive(): void;
  /** Resolves when more can be written; never when the caller is gone. */
  write(piece: string): Promise<void>;
  /** Resolves when the system has everything; never when the caller is gone. */
  end(): Promise<void>;
  /** No more comments. */
  stop(): void;
}

/** Milliseconds. Proxies cut what is silent for 60 s. */
const KEEP_ALIVE_MS = 15_000;

export function createStreamWriter(
  res: ServerResponse,
  clock: Clock,
  countBytes: CountBytes,
): StreamWriter {
  let isStopped = false;
  let cancelComment = () => {};

  function keepAlive(): void {
    cancelComment();
    if (isStopped) return;
    cancelComment = clock.after(KEEP_ALIVE_MS, () => {
      // Hours of comments that nobody read, or that wait behind another reply, are enough.
      if (!res.writableNeedDrain) res.write(KEEP_ALIVE);
      keepAlive();
    });
  }

  return {
    keepAlive,
    async write(piece) {
      cancelComment();
      await writeSlices(res, Buffer.from(piece), countBytes);
    },
    end() {
      cancelComment();
      const finished = new Promise<void>((resolve) => res.once('finish', () => resolve()));
      res.end();
      return finished;
    },
    stop() {
      isStopped = true;
      cancelComment();
    },
  };
}
