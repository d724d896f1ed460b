// From what node:http parsed to plain data.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.ts';
import { type GatewayRequest, header } from '../core/message.ts';
import type { BodyReader } from './body.ts';
import type { CallerClues } from './client-ip.ts';
import type { Incoming } from './incoming.ts';
import { targetOf } from './target.ts';

export interface ReceiverDeps {
  readonly clientIp: (clues: CallerClues) => string;
  readonly readBody: BodyReader;
  readonly maxBodyBytes: number;
  readonly clock: Clock;
}

/** `started` is when the head arrived, by the clock's monotonic time. */
export type Receiver = (req: IncomingMessage, res: ServerResponse, started: number) => Incoming;

export function createReceiver({
  clientIp,
  readBody,
  maxBodyBytes,
  clock,
}: ReceiverDeps): Receiver {
  return function receive(req, res, started) {
    const { authority, path, query } = targetOf(req.url ?? '/');
    const socket = req.socket.remoteAddress;
    let signal: AbortSignal | undefined;
    let isRead = false;
    const whenOver = (task: () => void) => {
      isRead = true;
      whenClosed(res, task);
    };
    const request: GatewayRequest = {
      method: req.method ?? 'GET',
      path,
      query,
      headers: req.headers,
      clientIp: clientIp({
        forwardedFor: header(req, 'x-forwarded-for'),
        realIp: header(req, 'x-real-ip'),
        socket,
      }),
      signal: () => {
        signal ??= hangUpSignal(res);
        return signal;
      },
    };
    return {
      request,
      authority,
      readBody: (accepts, owner, maxBytes = maxBodyBytes) =>
        readBody(req, { accepts, owner, maxBytes: Math.min(maxBytes, maxBodyBytes) }, whenOver),
      isRead: () => isRead,
      age: () => clock.monotonic() - started,
    };
  };
}

/** Calls the task when the reply has been sent or the connection has closed. */
function whenClosed(res: ServerResponse, task: () => void): void {
  if (res.destroyed) task();
  else res.once('close', task);
}

/** Aborted when the connection closes before the reply was sent. */
function hangUpSignal(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  whenClosed(res, () => {
    if (!res.writableFinished) controller.abort();
  });
  return controller.signal;
}
