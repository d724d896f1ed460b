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
  void writeSlices(res, Buffer.from(body)).then(() => res.end());
}
