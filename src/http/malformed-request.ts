// What node:http could not parse, or did not get in time, and so never made a request of.
import type { Socket } from 'node:net';
import type { Clock } from '../core/clock.ts';
import { GatewayError } from '../core/errors/gateway-error.ts';
import type { ReplyHeaders } from '../core/message.ts';
import { DISCARD_MS } from './connection.ts';
import type { ConnectionTable } from './connection-table.ts';
import { serializeTransportError } from './transport-error.ts';

export interface MalformedRequestDeps {
  readonly connections: ConnectionTable;
  readonly securityHeaders: ReplyHeaders;
  readonly clock: Clock;
}

/** For the event `clientError`. */
export type MalformedRequestHandler = (error: NodeJS.ErrnoException, socket: Socket) => void;

/** Replies, where no other reply is owed, and closes the connection. */
export function createMalformedRequestHandler(deps: MalformedRequestDeps): MalformedRequestHandler {
  const { connections, securityHeaders, clock } = deps;

  return function handleMalformedRequest({ code }, socket) {
    const connection = connections.get(socket);
    if (connection.isClosing) return;
    const pending = connection.pendingResponses();
    // A reply that has begun, or is owed to an earlier request, must not be mixed with this one.
    const isOwed = pending.length > 1 || pending.some((res) => res.headersSent || res.req.complete);
    if (isOwed || !socket.writable || code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    connection.isClosing = true;
    // Whatever its request comes to is not written behind this reply.
    for (const res of pending) res.detachSocket(socket);
    socket.end(serializeTransportError(createError(code), securityHeaders));
    // Closing with bytes unread would reset the connection, and the reply might be lost with it.
    socket.resume();
    const cancel = clock.after(DISCARD_MS, () => socket.destroy());
    socket.once('end', () => socket.destroy());
    socket.once('close', cancel);
  };
}

function createError(code: string | undefined): GatewayError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new GatewayError('request_timeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new GatewayError('header_too_large');
  return new GatewayError('bad_request');
}
