// What node:http could not parse, or did not get in time, and so never made a request of.
import type { Socket } from 'node:net';
import type { Clock } from '../core/clock.ts';
import { GatewayError } from '../core/errors/gateway-error.ts';
import type { Connections } from './connections.ts';
import { lastBytes } from './last-reply.ts';

export interface MalformedHandlerDeps {
  readonly connections: Connections;
  readonly securityHeaders: Readonly<Record<string, string>>;
  readonly clock: Clock;
}

export type MalformedHandler = (error: NodeJS.ErrnoException, socket: Socket) => void;

/** How long what comes behind the answer is still read and dropped. */
const DISCARD_MS = 2000;

/** Answers, where no other answer is owed, and closes the connection. */
export function createMalformedHandler(deps: MalformedHandlerDeps): MalformedHandler {
  const { connections, securityHeaders, clock } = deps;

  return function refuseMalformed({ code }, socket) {
    const connection = connections.of(socket);
    if (connection.isClosing) return;
    const requests = connection.requests();
    // An answer that is under way, or owed to an earlier request, must not be mixed with this one.
    const isOwed =
      requests.length > 1 || requests.some((res) => res.headersSent || res.req.complete);
    if (isOwed || !socket.writable || code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    connection.isClosing = true;
    // Whatever its request comes to is not written behind this answer.
    for (const res of requests) res.detachSocket(socket);
    socket.end(lastBytes(errorOf(code), securityHeaders));
    // Closing with bytes unread would reset the connection, and the answer might be lost with it.
    socket.resume();
    const cancel = clock.after(DISCARD_MS, () => socket.destroy());
    socket.once('end', () => socket.destroy());
    socket.once('close', cancel);
  };
}

function errorOf(code: string | undefined): GatewayError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new GatewayError('request_timeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new GatewayError('header_too_large');
  return new GatewayError('bad_request');
}
