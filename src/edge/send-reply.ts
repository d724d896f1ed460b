// Replies to bytes: sent whole, or piece by piece for as long as their streams last.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Reply, ReplyStream } from '../endpoint/message.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { createTurnEnd } from '../platform/turn-end.ts';
import type { Connection } from './connection.ts';
import type { ConnectionTable } from './connection-table.ts';
import { runWhenClosed } from './receive-request.ts';
import type { HeaderList } from './reply-headers.ts';
import {
  type CountBytes,
  type CountedReply,
  createReplyMemory,
  type ReplyMemory,
  type ReplyOwner,
  SLICE_BYTES,
  StreamWriter,
  writeSlices,
} from './reply-writer.ts';

export interface SendReplyDeps {
  readonly connections: ConnectionTable;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Sends a reply with these headers, to which it adds those that only the transport knows. Of a stream,
 * returns a promise that says when it has ended; rejected when it broke off.
 */
export type SendReply = (
  req: IncomingMessage,
  res: ServerResponse,
  reply: Reply,
  headers: HeaderList,
  owner?: ReplyOwner,
) => Promise<void> | undefined;

export function createSendReply({ connections, clock, log }: SendReplyDeps): SendReply {
  const memory = createReplyMemory(clock);
  const sendStream = createSendStream(clock, log);

  return function sendReply(
    req,
    res,
    { status, body = '', pieces, stream },
    headers,
    owner = 'unauthenticated',
  ) {
    const connection = connections.get(req.socket);
    const isLast = connections.isDraining() || !connections.tryClaimPlace(connection);
    const bytes = pieces === undefined ? Buffer.byteLength(body) : countBytesOf(pieces);
    // RFC 9110 §8.6: not on a reply that has no content by its status. A stream's is not known.
    if (stream === undefined && status !== 204 && status !== 304) {
      headers.push('Content-Length', String(bytes));
    }
    if (isLast && !headers.includes('Connection')) headers.push('Connection', 'close');
    if (stream) {
      const countBytes = createCountBytes(memory, owner, req, res);
      const countWaiting = createCountBytes(memory, owner, req, res);
      stream.watchWaiting?.(createWaitingCount(countWaiting));
      return sendStream(req, res, { status, headers, stream, countBytes });
    }
    connection.countReply(res, bytes);
    sendWhole(req, res, { status, headers, body: pieces ?? body, bytes, owner });
    return undefined;
  };

  function sendWhole(
    req: IncomingMessage,
    res: ServerResponse,
    { status, headers, body, bytes, owner }: WholeReply,
  ): void {
    res.writeHead(status, headers);
    if (req.method === 'HEAD' || res.destroyed) {
      res.end();
      return;
    }
    if (bytes > WHOLE_BYTES) {
      const countBytes = createCountBytes(memory, owner, req, res);
      void writeSlices(res, toBytes(body), countBytes).then(() => res.end());
      return;
    }
    endWith(res, body);
    if (bytes <= SLICE_BYTES) return;
    // Nearly always the system has taken all of it by now.
    if (res.writableLength > 0 && !res.destroyed) {
      const counted = createCountBytes(memory, owner, req, res)(bytes);
      res.once('finish', () => counted.end());
    }
  }
}

/** Where it has to make room, the connection ends, with what its caller has not read. */
function createCountBytes(
  memory: ReplyMemory,
  owner: ReplyOwner,
  { socket }: IncomingMessage,
  res: ServerResponse,
): CountBytes {
  let counted: CountedReply | undefined;

  return function countBytes(bytes) {
    if (counted === undefined) runWhenClosed(res, () => counted?.end());
    counted = memory.start(owner, bytes, () => socket.resetAndDestroy());
    if (res.destroyed) counted.end();
    return counted;
  };
}

/** Counts what waits behind the piece that is being sent, such as a large result behind notifications. */
function createWaitingCount(countBytes: CountBytes): (characters: number) => void {
  let counted: CountedReply | undefined;
  let before = 0;

  return function countWaiting(characters) {
    // A few events wait for a moment in every stream.
    const waiting = characters > SLICE_BYTES ? characters : 0;
    const change = waiting - before;
    before = waiting;
    if (change === 0) return;
    if (waiting === 0) {
      counted?.end();
      counted = undefined;
      return;
    }
    if (counted === undefined) counted = countBytes(waiting);
    else counted.noteChange(change);
    if (change < 0) counted.noteSent(-change);
  };
}

type Body = string | Uint8Array | NonNullable<Reply['pieces']>;

const isInPieces = (body: Body): body is NonNullable<Reply['pieces']> =>
  typeof body !== 'string' && !(body instanceof Uint8Array);

const countBytesOf = (pieces: NonNullable<Reply['pieces']>): number =>
  pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);

interface WholeReply {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Body;
  /** Of the body. */
  readonly bytes: number;
  readonly owner: ReplyOwner;
}

/** What is handed over in one piece: a system call for each slice costs more than all else of a reply of 100 KB. */
const WHOLE_BYTES = 262_144;

/** Pieces go to the system together, with the head, by one call: nothing is copied before. */
function endWith(res: ServerResponse, body: Body): void {
  if (!isInPieces(body)) {
    res.end(body);
    return;
  }
  for (const piece of body) res.write(piece);
  res.end();
}

/** A page is the same bytes for everybody: not copied. */
function toBytes(body: Body): Uint8Array {
  if (typeof body === 'string') return Buffer.from(body);
  return isInPieces(body) ? Buffer.concat(body) : body;
}

interface StreamedReply {
  readonly status: number;
  readonly headers: HeaderList;
  readonly stream: ReplyStream;
  readonly countBytes: CountBytes;
}

/**
 * Resolves when everything was sent or the caller is gone; rejects with what the stream threw, and
 * leaves it to the server to close the connection.
 */
type SendStream = (
  req: IncomingMessage,
  res: ServerResponse,
  reply: StreamedReply,
) => Promise<void>;

const createSendStream =
  (clock: Clock, log: Log): SendStream =>
  ({ method }, res, { status, headers, stream, countBytes }) =>
    new Promise((resolve, reject) => {
      const pieces = stream[Symbol.asyncIterator]();
      const writer = new StreamWriter(res, clock, countBytes);
      const sending = new StreamSending(res, pieces, { writer, log, resolve, reject });
      if (res.destroyed) sending.stop();
      else sending.start(status, headers, method === 'HEAD');
    });

interface SendingDeps {
  readonly writer: StreamWriter;
  readonly log: Log;
  resolve(): void;
  reject(cause: unknown): void;
}

/**
 * One stream on its way. Not an async function: while thousands of streams are silent, each such function that waits in them
 * would take almost a kilobyte.
 */
class StreamSending {
  private readonly res: ServerResponse;
  private readonly pieces: AsyncIterator<string>;
  private readonly deps: SendingDeps;
  private isOver = false;

  constructor(res: ServerResponse, pieces: AsyncIterator<string>, deps: SendingDeps) {
    this.res = res;
    this.pieces = pieces;
    this.deps = deps;
  }

  start(status: number, headers: HeaderList, isHeadOnly: boolean): void {
    const { res } = this;
    res.on('close', () => this.stop());
    try {
      res.writeHead(status, headers);
      res.flushHeaders();
      if (isHeadOnly) this.endSource();
      this.sendNext();
    } catch (cause) {
      this.fail(cause);
    }
  }

  /** Ends it, whether all was sent or its caller is gone; after that nothing more comes of it. */
  stop(): void {
    this.deps.writer.stop();
    this.endSource();
    this.deps.resolve();
  }

  private fail(cause: unknown): void {
    this.deps.reject(cause);
    this.stop();
  }

  private sendNext(): void {
    const { pieces, deps } = this;
    if (this.isOver) {
      this.finish();
      return;
    }
    deps.writer.keepAlive();
    pieces.next().then(
      ({ done, value }) => {
        if (done) this.isOver = true;
        if (this.isOver) this.finish();
        else this.send(value);
      },
      (cause: unknown) => this.fail(cause),
    );
  }

  private send(piece: string): void {
    this.deps.writer.write(piece).then(
      () => this.sendNext(),
      (cause: unknown) => this.fail(cause),
    );
  }

  private finish(): void {
    // Ending what has closed would make it look as if everything had been sent.
    if (this.res.closed) this.stop();
    else void this.deps.writer.end().then(() => this.stop());
  }

  /** Not awaited: a generator's `return` waits for its pending `next`, which may never come. */
  private endSource(): void {
    if (this.isOver) return;
    this.isOver = true;
    endIterator(this.pieces).catch((cause: unknown) => {
      this.deps.log.error('The source of a streamed reply could not be ended.', { cause });
    });
  }
}

/** Async, so that what it throws is a rejection. */
async function endIterator(pieces: AsyncIterator<string>): Promise<void> {
  await pieces.return?.();
}

/** Sends to the connection now, or a moment later. */
type SendTogether = (connection: Connection, send: () => void) => void;

/**
 * What is ready in the same turn of the event loop is sent at its end: it was a third of a call's CPU at 32 connections. A
 * caller who is alone would only wait: where the latest reply went to the same connection, this one goes at once.
 */
export function createSendTogether(): SendTogether {
  const runAtTurnEnd = createTurnEnd();
  let latest: Connection | undefined;

  return function sendTogether(connection, send) {
    const isAlone = connection === latest;
    latest = connection;
    if (isAlone) send();
    else runAtTurnEnd(send);
  };
}
