// Event streams to bytes, piece by piece for as long as they last.
import type { ServerResponse } from 'node:http';
import { SharedTimer, type Wait } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { KEEP_ALIVE } from '../../platform/text.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { ReplyStream } from '../endpoint/message.ts';
import type { HeaderList } from './reply-headers.ts';
import {
  type CountedReply,
  ReplyCounter,
  type ReplyMemory,
  type ReplyOwner,
  SLICE_BYTES,
  writeSlices,
} from './reply-writer.ts';

export interface StreamedReply {
  readonly status: number;
  readonly headers: HeaderList;
  readonly stream: ReplyStream;
  readonly owner: ReplyOwner;
  readonly onEnd: OnStreamEnd;
}

/**
 * Called once, when everything was sent or the caller is gone; with what the stream threw where that ended it: then it is
 * for whoever is called to close the connection.
 */
export type OnStreamEnd = (failure?: { readonly cause: unknown }) => void;

export type SendStream = (res: ServerResponse, reply: StreamedReply) => void;

/** What all streams have in common. */
interface StreamSurroundings {
  readonly memory: ReplyMemory;
  readonly silences: SharedTimer<StreamSending>;
  readonly log: Log;
}

export function createSendStream({ config, clock, log }: Runtime, memory: ReplyMemory): SendStream {
  // Proxies cut what is silent.
  const { streamKeepaliveMs } = config.http;
  const silences = new SharedTimer<StreamSending>(clock, streamKeepaliveMs, (sending) =>
    sending.breakSilence(),
  );
  const surroundings: StreamSurroundings = { memory, silences, log };

  return function sendStream(res, { status, headers, stream, owner, onEnd }) {
    new StreamSending(res, stream, owner, onEnd, surroundings).start(status, headers);
  };
}

/**
 * One stream on its way. A class, and no async function: thousands of them are silent for minutes, and closures and
 * promises would take several times the memory.
 */
class StreamSending {
  private readonly res: ServerResponse;
  private readonly stream: ReplyStream;
  private readonly pieces: AsyncIterator<string>;
  private readonly owner: ReplyOwner;
  private readonly surroundings: StreamSurroundings;
  /** Until it was called. */
  private onEnd: OnStreamEnd | undefined;
  /** Nothing more is read of its source. */
  private isOver = false;
  private silence: Wait<StreamSending> | undefined;
  /** Of the piece that is being sent, where it was counted. */
  private counter: ReplyCounter | undefined;
  /** Of what waits behind that, such as a large result behind notifications. */
  private waiting: WaitingCounter | undefined;

  constructor(
    res: ServerResponse,
    stream: ReplyStream,
    owner: ReplyOwner,
    onEnd: OnStreamEnd,
    surroundings: StreamSurroundings,
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
    // A few events wait for a moment in every stream.
    if (this.waiting === undefined && characters <= SLICE_BYTES) return;
    this.waiting ??= new WaitingCounter(this.createCounter());
    this.waiting.note(characters);
  }

  /** For `writeSlices`. */
  count(bytes: number): CountedReply {
    this.counter ??= this.createCounter();
    return this.counter.count(bytes);
  }

  breakSilence(): void {
    const { res } = this;
    // Hours of comments that nobody read, or that wait behind another reply, are enough.
    if (!res.writableNeedDrain) res.write(KEEP_ALIVE);
    this.waitInSilence();
  }

  private createCounter(): ReplyCounter {
    return new ReplyCounter(this.surroundings.memory, this.owner, this.res);
  }

  /** From now on nothing is due: comments fill the silence until the next piece. */
  private waitInSilence(): void {
    this.endSilence();
    if (this.onEnd !== undefined) this.silence = this.surroundings.silences.add(this);
  }

  private endSilence(): void {
    if (this.silence !== undefined) this.surroundings.silences.remove(this.silence);
    this.silence = undefined;
  }

  /** Ends it, whether all was sent or its caller is gone; after that nothing more comes of it. */
  private stop(failure?: { readonly cause: unknown }): void {
    const { onEnd } = this;
    this.onEnd = undefined;
    this.endSilence();
    this.endSource();
    onEnd?.(failure);
  }

  private sendNext(): void {
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

  /** The next one when more can be written; never when the caller is gone. */
  private send(piece: string): void {
    this.endSilence();
    writeSlices(this.res, Buffer.from(piece), this).then(
      () => this.sendNext(),
      (cause: unknown) => this.stop({ cause }),
    );
  }

  private finish(): void {
    const { res } = this;
    this.endSilence();
    // Ending what has closed would make it look as if everything had been sent.
    if (res.closed) {
      this.stop();
      return;
    }
    res.once('finish', () => this.stop());
    res.end();
  }

  /** Not awaited: a generator's `return` waits for its pending `next`, which may never come. */
  private endSource(): void {
    if (this.isOver) return;
    this.isOver = true;
    endIterator(this.pieces).catch((cause: unknown) => {
      this.surroundings.log.error('The source of a streamed reply could not be ended.', { cause });
    });
  }
}

/** Async, so that what it throws is a rejection. */
async function endIterator(pieces: AsyncIterator<string>): Promise<void> {
  await pieces.return?.();
}

/** Counts what waits to be read of a stream, once that is much. */
class WaitingCounter {
  private readonly counter: ReplyCounter;
  private counted: CountedReply | undefined;
  private before = 0;

  constructor(counter: ReplyCounter) {
    this.counter = counter;
  }

  note(characters: number): void {
    const waiting = characters > SLICE_BYTES ? characters : 0;
    const change = waiting - this.before;
    this.before = waiting;
    if (change === 0) return;
    if (waiting === 0) {
      this.counted?.end();
      this.counted = undefined;
      return;
    }
    if (this.counted === undefined) this.counted = this.counter.count(waiting);
    else this.counted.noteChange(change);
    if (change < 0) this.counted.noteSent(-change);
  }
}
