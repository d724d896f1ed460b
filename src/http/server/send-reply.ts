// Replies to bytes: sent whole, or piece by piece for as long as their streams last.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createTurnEnd } from '../../platform/clock.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Reply } from '../endpoint/message.ts';
import type { Connection } from './connection.ts';
import type { ConnectionTable } from './connection-table.ts';
import type { HeaderList } from './reply-headers.ts';
import {
  createReplyMemory,
  ReplyCounter,
  type ReplyMemory,
  type ReplyOwner,
  SLICE_BYTES,
  writeSlices,
} from './reply-writer.ts';
import { createSendStream, type OnStreamEnd } from './send-stream.ts';

/** Sends a reply with these headers, to which it adds those that only the transport knows. */
export type SendReply = (
  req: IncomingMessage,
  res: ServerResponse,
  reply: Reply,
  headers: HeaderList,
  how?: {
    /** Unauthenticated unless given. */
    readonly owner?: ReplyOwner | undefined;
    /** Of a stream. */
    readonly onStreamEnd?: OnStreamEnd;
  },
) => void;

export function createSendReply(runtime: Runtime, connections: ConnectionTable): SendReply {
  const memory = createReplyMemory(runtime.clock);
  const sendStream = createSendStream(runtime, memory);

  return function sendReply(
    req,
    res,
    { status, body = '', pieces, stream },
    headers,
    { owner = 'unauthenticated', onStreamEnd = () => {} } = {},
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
      sendStream(res, { status, headers, stream, owner, onEnd: onStreamEnd });
      return;
    }
    connection.countReply(res, bytes);
    sendWhole(req, res, { status, headers, body: pieces ?? body, bytes, memory, owner });
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
  readonly memory: ReplyMemory;
  readonly owner: ReplyOwner;
}

function sendWhole(
  { method }: IncomingMessage,
  res: ServerResponse,
  { status, headers, body, bytes, memory, owner }: WholeReply,
): void {
  res.writeHead(status, headers);
  if (method === 'HEAD' || res.destroyed) {
    res.end();
    return;
  }
  if (bytes > WHOLE_BYTES) {
    void writeSlices(res, toBytes(body), new ReplyCounter(memory, owner, res)).then(() =>
      res.end(),
    );
    return;
  }
  endWith(res, body);
  if (bytes <= SLICE_BYTES) return;
  // Nearly always the system has taken all of it by now.
  if (res.writableLength > 0 && !res.destroyed) {
    const counted = new ReplyCounter(memory, owner, res).count(bytes);
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
