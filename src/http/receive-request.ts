// From what node:http parsed to plain data.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type CancelSignal, createCancellation } from '../core/cancellation.ts';
import { type GatewayRequest, getHeader } from '../core/message.ts';
import type { FindClientIp } from './client-ip.ts';
import { type IncomingBody, openBody } from './read-body.ts';

/** A request as it came in, with what only the transport knows. */
export interface ReceivedRequest {
  readonly request: GatewayRequest;
  /** Authority of a request target in absolute form, else undefined. */
  readonly authority: string | undefined;
  /** For the body reader alone. */
  readonly body: IncomingBody;
  /** When the head arrived, by the clock's monotonic time. */
  readonly receivedAt: number;
}

export interface ReceiveOptions {
  readonly receivedAt: number;
  /** Of the connection. */
  readonly address: string;
  readonly findClientIp: FindClientIp;
}

export function receiveRequest(
  req: IncomingMessage,
  res: ServerResponse,
  { receivedAt, address, findClientIp }: ReceiveOptions,
): ReceivedRequest {
  const { authority, path, query } = parseRequestTarget(req.url ?? '/');
  let signal: CancelSignal | undefined;
  return {
    request: {
      method: req.method ?? 'GET',
      path,
      query,
      headers: req.headers,
      clientIp: findClientIp({
        forwardedFor: getHeader(req, 'x-forwarded-for'),
        realIp: getHeader(req, 'x-real-ip'),
        socket: address,
      }),
      signal: () => {
        signal ??= createHangUpSignal(res);
        return signal;
      },
    },
    authority,
    body: openBody(req),
    receivedAt,
  };
}

interface RequestTarget {
  readonly authority: string | undefined;
  readonly path: string;
  readonly query: string;
}

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/** RFC 9112 §3.2: the request target, taken apart and not decoded. */
function parseRequestTarget(target: string): RequestTarget {
  const [, authority, rest = target] = target.startsWith('/') ? [] : (ABSOLUTE.exec(target) ?? []);
  const mark = rest.indexOf('?');
  const path = mark === -1 ? rest : rest.slice(0, mark);
  return {
    authority,
    path: path === '' ? '/' : path,
    query: mark === -1 ? '' : rest.slice(mark + 1),
  };
}

/**
 * Runs the task, for which a second time is no matter, when the reply has been sent or the connection
 * has closed.
 */
export function runWhenClosed(res: ServerResponse, task: () => void): void {
  if (res.destroyed) task();
  // Not once: the wrapper that takes the listener away again costs more than the task.
  else res.on('close', task);
}

/** Aborted when the connection closes before the reply was sent. */
function createHangUpSignal(res: ServerResponse): CancelSignal {
  const cancellation = createCancellation();
  runWhenClosed(res, () => {
    if (!res.writableFinished) cancellation.abort();
  });
  return cancellation.signal;
}
