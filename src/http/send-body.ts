// Replies that are sent whole.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Reply } from '../core/message.ts';
import { SLICE_BYTES, writeSlices } from './write-slices.ts';

export interface WholeReply {
  readonly status: number;
  readonly headers: Reply['headers'] | undefined;
  readonly body: Reply['body'] | undefined;
}

export function sendBody(
  { method }: IncomingMessage,
  res: ServerResponse,
  { status, headers, body = '' }: WholeReply,
): void {
  res.writeHead(status, headers);
  if (method === 'HEAD' || res.destroyed || body.length <= SLICE_BYTES) {
    res.end(body);
    return;
  }
  void writeSlices(res, bytesOf(body)).then(() => res.end());
}

/** A page is the same bytes for everybody: not copied. */
const bytesOf = (body: string | Uint8Array): Uint8Array =>
  typeof body === 'string' ? Buffer.from(body) : body;
