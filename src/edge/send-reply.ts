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
  createStreamWriter,
  type ReplyMemory,
  type ReplyOwner,
  SLICE_BYTES,
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
    const countBytes = createCountBytes(memory, owner, req, res);
    const connection = connections.get(req.socket);
    const isLast = connections.isDraining() || !connections.tryClaimPlace(connection);
    const bytes = pieces === undefined ? Buffer.byteLength(body) : countBytesOf(pieces);
    // RFC 9110 §8.6: not on a reply that has no content by its status. A stream's is not known.
    if (stream === undefined && status !== 204 && status !== 304) {
      headers.push('Content-Length', String(bytes));
    }
    if (isLast && !headers.includes('Connection')) headers.push('Connection', 'close');
    if (stream) {
      const countWaiting = createCountBytes(memory, owner, req, res);
      stream.watchWaiting?.(createWaitingCount(countWaiting));
      return sendStream(req, res, { status, headers, stream, countBytes });
    }
    connection.countReply(res, bytes);
    sendWhole(req, res, { status, headers, body: pieces ?? body, bytes, countBytes });
    return undefined;
  };
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
  readonly countBytes: CountBytes;
}

function sendWhole(
  { method }: IncomingMessage,
  res: ServerResponse,
  { status, headers, body, bytes, countBytes }: WholeReply,
): void {
  res.writeHead(status, headers);
  if (method === 'HEAD' || res.destroyed) {
    res.end();
    return;
  }
  if (bytes > WHOLE_BYTES) {
    void writeSlices(res, toBytes(body), countBytes).then(() => res.end());
    return;
  }
  endWith(res, body);
  if (bytes <= SLICE_BYTES) return;
  // Nearly always the system has taken all of it by now.
  if (res.writableLength > 0 && !res.destroyed) {
    const counted = countBytes(bytes);
    res.once('finish', () => counted.end());
  }
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

function createSendStream(clock: Clock, log: Log): SendStream {
  return async function sendStream({ method }, res, { status, headers, stream, countBytes }) {
    const pieces = stream[Symbol.asyncIterator]();
    const writer = createStreamWriter(res, clock, countBytes);
    let isOver = false;

    async function sendAll(): Promise<void> {
      res.writeHead(status, headers);
      res.flushHeaders();
      if (method === 'HEAD') endEarly();
      for (let piece = await readNext(); piece !== undefined; piece = await readNext()) {
        await writer.write(piece);
      }
      // Ending what has closed would make it look as if everything had been sent.
      if (!res.closed) await writer.end();
    }

    /** Undefined when there is nothing more to send, or nobody to send it to. */
    async function readNext(): Promise<string | undefined> {
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
      endIterator(pieces).catch((cause: unknown) => {
        log.error('The source of a streamed reply could not be ended.', { cause });
      });
    }

    try {
      await runUnlessClosed(res, sendAll);
    } finally {
      writer.stop();
      endEarly();
    }
  };
}

/** Resolves when `run` ends or the connection closes; a later rejection of `run` is ignored. */
function runUnlessClosed(res: ServerResponse, run: () => Promise<void>): Promise<void> {
  if (res.destroyed) return Promise.resolve();
  return new Promise<void>((resolve, reject) => {
    res.once('close', resolve);
    run().then(resolve, reject);
  });
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
