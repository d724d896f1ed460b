// Sends event streams, piece by piece for as long as they last, and counts the bytes of all replies.

import type { ServerResponse } from 'node:http';
import { SharedTimer, type Wait } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { CountedTransfer } from '../../platform/memory/user-budgets.ts';
import { countBytes, freeReceived } from '../../platform/pieces.ts';
import { KEEP_ALIVE } from '../../platform/text.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { ReplyStream } from '../endpoint/message.ts';
import type { HeaderList } from './headers.ts';
import { type IncomingExchange, runWhenClosed } from './incoming-exchange.ts';
import type { MemoryOwner, ReplyMemory } from './transfer-memory.ts';

/**
 * Called once, when everything has been sent or the client is gone. Called with a failure if the stream threw: the callee then
 * closes the connection.
 */
export type OnStreamEnd = (failure?: { readonly cause: unknown }) => void;

export function createSendStream({ config, clock, log }: Runtime, memory: ReplyMemory) {
  // Proxies close silent connections.
  const { streamKeepaliveMs } = config.http;
  const silences = new SharedTimer<StreamSending>(clock, streamKeepaliveMs, (sending) =>
    sending.breakSilence(),
  );
  const surroundings: StreamSurroundings = { memory, silences, log };

  return (exchange: IncomingExchange, stream: ReplyStream, onEnd: OnStreamEnd) =>
    new StreamSending(surroundings, exchange, stream, onEnd);
}

/** Shared by all streams. */
interface StreamSurroundings {
  readonly memory: ReplyMemory;
  readonly silences: SharedTimer<StreamSending>;
  readonly log: Log;
}

/**
 * One stream being sent. A class and not an async function: thousands of streams are silent for minutes, and closures and
 * promises would take several times the memory.
 */
class StreamSending {
  private readonly res: ServerResponse;
  private readonly stream: ReplyStream;
  private readonly pieces: AsyncIterator<string>;
  private readonly owner: MemoryOwner;
  private readonly surroundings: StreamSurroundings;
  /** Undefined once it was called. */
  private onEnd: OnStreamEnd | undefined;
  /** True once nothing more is read from the source. */
  private isOver = false;
  private silence: Wait<StreamSending> | undefined = undefined;
  /** Counts the piece that is being sent; created when needed. */
  private counter: ReplyCounter | undefined = undefined;
  /** Counts events that wait behind that piece, such as a large result behind notifications. */
  private waiting: WaitingCounter | undefined = undefined;

  constructor(
    surroundings: StreamSurroundings,
    { res, owner }: IncomingExchange,
    stream: ReplyStream,
    onEnd: OnStreamEnd,
  ) {
    this.res = res;
    this.stream = stream;
    this.pieces = stream[Symbol.asyncIterator]();
    this.owner = owner;
    this.onEnd = onEnd;
    this.surroundings = surroundings;
  }

  start(status: number, headers: HeaderList): void {
    const { res } = this;
    this.stream.watchWaiting?.(this);
    if (res.destroyed) {
      this.stop();
      return;
    }
    res.on('close', () => this.stop());
    try {
      res.writeHead(status, headers);
      res.flushHeaders();
      if (res.req.method === 'HEAD') this.endSource();
      this.sendNext();
    } catch (cause) {
      this.stop({ cause });
    }
  }

  noteWaiting(characters: number): void {
    // In every stream, a few events wait briefly.
    if (this.waiting === undefined && characters <= UNCOUNTED_REPLY_BYTES) return;
    this.waiting ??= new WaitingCounter(this.createCounter());
    this.waiting.note(characters);
  }

  /** For `writeSlices`. */
  count(bytes: number): CountedTransfer {
    this.counter ??= this.createCounter();
    return this.counter.count(bytes);
  }

  breakSilence(): void {
    const { res } = this;
    // Does not pile up comments that the client does not read, or that wait behind another reply.
    if (!res.writableNeedDrain) res.write(KEEP_ALIVE);
    this.waitInSilence();
  }

  private createCounter(): ReplyCounter {
    return new ReplyCounter(this.surroundings.memory, this.owner, this.res);
  }

  /** Sends keep-alive comments until the next piece. */
  private waitInSilence() {
    this.endSilence();
    if (this.onEnd !== undefined) this.silence = this.surroundings.silences.add(this);
  }

  private endSilence() {
    if (this.silence !== undefined) this.surroundings.silences.remove(this.silence);
    this.silence = undefined;
  }

  /** Ends the stream, whether everything was sent or the client is gone. */
  private stop(failure?: { readonly cause: unknown }) {
    const { onEnd } = this;
    this.onEnd = undefined;
    this.endSilence();
    this.endSource();
    onEnd?.(failure);
  }

  private sendNext() {
    if (this.isOver) {
      this.finish();
      return;
    }
    this.waitInSilence();
    this.pieces.next().then(
      ({ done, value }) => {
        if (done) this.isOver = true;
        if (this.isOver) this.finish();
        else this.send(value);
      },
      (cause: unknown) => this.stop({ cause }),
    );
  }

  /** Requests the next piece when more can be written; never once the client is gone. */
  private send(piece: string) {
    this.endSilence();
    writeSlices(this.res, [Buffer.from(piece)], this).then(
      () => this.sendNext(),
      (cause: unknown) => this.stop({ cause }),
    );
  }

  private finish() {
    const { res } = this;
    this.endSilence();
    // Ending a closed response would make it look as if everything had been sent.
    if (res.closed) {
      this.stop();
      return;
    }
    res.once('finish', () => this.stop());
    res.end();
  }

  /** Not awaited: a generator's `return` waits for its pending `next`, which may never settle. */
  private endSource() {
    if (this.isOver) return;
    this.isOver = true;
    endIterator(this.pieces).catch((cause: unknown) => {
      this.surroundings.log.error('The source of a streamed reply could not be ended.', { cause });
    });
  }
}

/** Async, so that a synchronous error becomes a rejection. */
async function endIterator(pieces: AsyncIterator<string>) {
  await pieces.return?.();
}

/** Counts the events of a stream that wait to be sent, once they are many. */
class WaitingCounter {
  private readonly counter: ReplyCounter;
  private counted: CountedTransfer | undefined = undefined;
  private before = 0;

  constructor(counter: ReplyCounter) {
    this.counter = counter;
  }

  note(characters: number): void {
    const waiting = characters > UNCOUNTED_REPLY_BYTES ? characters : 0;
    const change = waiting - this.before;
    this.before = waiting;
    if (change === 0) return;
    if (waiting === 0) {
      this.counted?.end();
      this.counted = undefined;
      return;
    }
    if (this.counted === undefined) this.counted = this.counter.count(waiting);
    else this.counted.count(0, change);
    if (change < 0) this.counted.count(-change, 0);
  }
}

// Bytes on their way to the socket.

/** Replies and waiting events up to this size are not counted. */
export const UNCOUNTED_REPLY_BYTES = 16_384;
/** Bytes written at once: a slow client's progress shows in steps of this size. */
const WRITE_BYTES = 65_536;

/** Writes a short reply. The memory of received pieces is freed once all of them are sent. */
export function writePieces(res: ServerResponse, pieces: readonly Uint8Array[]): void {
  const last = pieces.length - 1;
  for (const [index, piece] of pieces.entries())
    if (index < last) res.write(piece);
    else res.write(piece, createFree(pieces));
}

/**
 * Like `writePieces`, for any length. Resolves when the last slice was written, though maybe not sent; never if the client is
 * gone.
 */
export async function writeSlices(
  res: ServerResponse,
  pieces: readonly Uint8Array[],
  counter: Pick<ReplyCounter, 'count'>,
): Promise<void> {
  const bytes = countBytes(pieces);
  const last = pieces.length - 1;
  let counted: CountedTransfer | undefined;
  let written = 0;
  for (const [index, piece] of pieces.entries())
    for (let at = 0; at < piece.length; at += WRITE_BYTES) {
      const slice = piece.subarray(at, at + WRITE_BYTES);
      written += slice.length;
      const isLast = index === last && at + WRITE_BYTES >= piece.length;
      if (res.write(slice, isLast ? createFree(pieces) : undefined)) continue;
      // All of it stays in memory until its last byte is written.
      counted ??= counter.count(bytes);
      await waitUntilWritable(res);
      counted.count(written, 0);
      written = 0;
    }
  counted?.end();
}

/** After an error the memory is left to garbage collection: the system may still read it. */
const createFree = (pieces: readonly Uint8Array[]) => (error?: Error | null) => {
  if (!error) freeReceived(pieces);
};

const waitUntilWritable = (res: ServerResponse) =>
  new Promise<void>((resolve) => res.once('drain', () => resolve()));

/**
 * Counts bytes of one reply until they are sent, or its connection has closed. A connection that has to make room is closed,
 * along with the bytes that its client has not read.
 */
export class ReplyCounter {
  private readonly memory: ReplyMemory;
  private readonly owner: MemoryOwner;
  private readonly res: ServerResponse;
  private counted: CountedTransfer | undefined = undefined;

  constructor(memory: ReplyMemory, owner: MemoryOwner, res: ServerResponse) {
    this.memory = memory;
    this.owner = owner;
    this.res = res;
  }

  count(bytes: number): CountedTransfer {
    const { res } = this;
    const { socket } = res.req;
    if (this.counted === undefined) runWhenClosed(res, () => this.counted?.end());
    const counted = this.memory.start(this.owner, bytes, () => socket.resetAndDestroy());
    this.counted = counted;
    if (res.destroyed) counted.end();
    return counted;
  }
}
