// Replies that are sent piece by piece, for as long as they last.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { KEEP_ALIVE } from '../core/sse.ts';
import { writeSlices } from './write-slices.ts';

export interface StreamSenderDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export interface StreamedReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly stream: AsyncIterable<string>;
}

/**
 * Resolves when everything was sent or the caller is gone; rejects with what the stream threw, and
 * leaves it to the server to close the connection.
 */
export type StreamSender = (
  req: IncomingMessage,
  res: ServerResponse,
  reply: StreamedReply,
) => Promise<void>;

/** Milliseconds. Proxies cut what is silent for 60 s. */
const KEEP_ALIVE_MS = 15_000;

export function createStreamSender({ clock, log }: StreamSenderDeps): StreamSender {
  return async function sendStream({ method }, res, { status, headers, stream }) {
    const pieces = stream[Symbol.asyncIterator]();
    const writer = createWriter(res, clock);
    let isOver = false;

    async function sendAll(): Promise<void> {
      res.writeHead(status, headers);
      res.flushHeaders();
      if (method === 'HEAD') endEarly();
      for (let piece = await next(); piece !== undefined; piece = await next()) {
        await writer.write(piece);
      }
      // Ending what has closed would make it look as if everything had been sent.
      if (!res.closed) await writer.end();
    }

    /** Undefined when there is nothing more to send, or nobody to send it to. */
    async function next(): Promise<string | undefined> {
      if (isOver) return undefined;
      writer.keepAlive();
      const { done, value } = await pieces.next();
      if (done) isOver = true;
      return isOver ? undefined : value;
    }

    /** Not awaited: a generator's `return` waits for its pending `next`, which may never come. */
    function endEarly(): void {
      if (isOver) return;
      isOver = true;
      returnOf(pieces).catch((cause: unknown) => {
        log.error('What a streamed reply came from could not be ended.', { cause });
      });
    }

    try {
      await unlessClosed(res, sendAll);
    } finally {
      writer.stop();
      endEarly();
    }
  };
}

/** What `run` comes to, or nothing as soon as the caller is gone; later nobody looks at `run`. */
function unlessClosed(res: ServerResponse, run: () => Promise<void>): Promise<void> {
  if (res.destroyed) return Promise.resolve();
  return new Promise<void>((resolve, reject) => {
    res.once('close', resolve);
    run().then(resolve, reject);
  });
}

/** Async, so that what it throws is a rejection. */
async function returnOf(pieces: AsyncIterator<string>): Promise<void> {
  await pieces.return?.();
}

interface Writer {
  /** From now on nothing is due: comments fill the silence until the next call. */
  keepAlive(): void;
  /** Resolves when more can be taken; never when the caller is gone. */
  write(piece: string): Promise<void>;
  /** Resolves when the system has taken everything; never when the caller is gone. */
  end(): Promise<void>;
  stop(): void;
}

function createWriter(res: ServerResponse, clock: Clock): Writer {
  let isStopped = false;
  let cancel = () => {};

  function keepAlive(): void {
    cancel();
    if (isStopped) return;
    cancel = clock.after(KEEP_ALIVE_MS, () => {
      // Hours of comments that nobody took, or that wait behind another answer, are enough.
      if (!res.writableNeedDrain) res.write(KEEP_ALIVE);
      keepAlive();
    });
  }

  return {
    keepAlive,
    async write(piece) {
      cancel();
      await writeSlices(res, Buffer.from(piece));
    },
    end() {
      cancel();
      const finished = new Promise<void>((resolve) => res.once('finish', () => resolve()));
      res.end();
      return finished;
    },
    stop() {
      isStopped = true;
      cancel();
    },
  };
}
