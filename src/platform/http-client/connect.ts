// Opens connections to one server: TCP, TLS if its URL requires it, and a tunnel if there is a proxy.
import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { normalizeHost } from '../address.ts';
import type { Clock } from '../clock.ts';
import { getErrorCode, isNobodyThere, isShortage } from '../error-code.ts';

/** The other end of connections, and the way to reach it. */
export interface Destination {
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
  /** PEM of the certificate authorities to trust instead of the system's; undefined for the system's. */
  readonly ca: string | undefined;
  /** Milliseconds after which a connection attempt fails, including TLS and the proxy. */
  readonly timeoutMs: number;
  /** Opens a connection to the destination through a proxy; undefined if there is none. */
  readonly openTunnel: ((signal: AbortSignal) => Promise<Duplex>) | undefined;
  /** True if the destination is itself a proxy that receives requests for other servers. */
  readonly isProxy: boolean;
}

/** No connection was made in time. */
export class ConnectTimeout extends Error {
  override readonly name = 'ConnectTimeout';
  readonly code = 'ETIMEDOUT';
}

interface PendingConnection {
  readonly clock: Clock;
  /** Aborts the connection while it is being opened. */
  readonly signal: AbortSignal;
  /** Receives the server's data in a buffer that is shared with other connections. */
  readonly onread: OnReadOpts;
  /** Receives the server's data from a tunnel, which has its own buffers. */
  receive(bytes: Buffer): void;
}

/** Returns a function that opens connections. TLS session resumption saves a round trip after the first connection. */
export function createConnect(
  destination: Destination,
): (how: PendingConnection) => Promise<Socket> {
  const host = normalizeHost(destination.host);
  const { port, isSecure, ca, timeoutMs, openTunnel, isProxy } = destination;
  let session: Buffer | undefined;

  const secure = { ALPNProtocols: ['http/1.1'], ...(ca !== undefined && { ca }) };
  // A TLS server name is never an address (RFC 6066 §3).
  const named = isIP(host) === 0 ? { host, servername: host } : { host };

  function keepSession(socket: TLSSocket) {
    return socket.on('session', (given) => {
      session = given;
    });
  }

  function open(how: PendingConnection, signal: AbortSignal): Promise<Socket> {
    if (isSecure && openTunnel !== undefined) return openThrough(openTunnel, how, signal);
    let hasAddress = isIP(host) !== 0;
    const plain = { ...KEPT_ALIVE, port, onread: how.onread };
    const onAddress = () => {
      hasAddress = true;
    };
    return openOneOfTwo(
      async (ending, onReached) => {
        if (!isSecure)
          return whenOpen(
            connectTcp({ ...plain, host }).on('lookup', onAddress),
            'connect',
            ending,
          );
        const socket = connectTls({ ...plain, ...secure, ...named, session });
        keepSession(socket).on('lookup', onAddress).once('connect', onReached);
        return whenOpen(socket, 'secureConnect', ending);
      },
      signal,
      (task) =>
        afterReading(how.clock, timeoutMs / 2, () => {
          // While the host's address is still being looked up, a second lookup would only cause delay.
          if (hasAddress) task();
        }),
    );
  }

  async function openThrough(
    tunnelling: NonNullable<Destination['openTunnel']>,
    how: PendingConnection,
    signal: AbortSignal,
  ): Promise<Socket> {
    const tunnel = await tunnelling(signal);
    const socket = connectTls({ ...secure, ...named, session, socket: tunnel });
    socket.on('data', (bytes) => how.receive(bytes));
    return whenOpen(keepSession(socket), 'secureConnect', signal);
  }

  return async function connect(how) {
    const timeout = new AbortController();
    const cancel = how.clock.after(timeoutMs, () => timeout.abort(new ConnectTimeout(NO_ANSWER)));
    try {
      return await open(how, AbortSignal.any([how.signal, timeout.signal]));
    } catch (error) {
      // The server may have failed to resume the TLS session.
      session = undefined;
      throw isProxy && !how.signal.aborted && error instanceof Error ? toProxyError(error) : error;
    } finally {
      cancel();
    }
  };
}

const NO_ANSWER = 'the server took too long to connect';

/** TCP keep-alive: detects a firewall that has dropped an idle connection before the next request is sent. */
const KEPT_ALIVE = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 };

/**
 * Runs the task after a delay, once data that has arrived by then has been read, since the process may have been paused. Returns a
 * function that cancels it.
 */
function afterReading(clock: Clock, ms: number, task: () => void): () => void {
  let waiting: NodeJS.Immediate | undefined;
  const cancelTimer = clock.after(ms, () => {
    waiting = setImmediate(task);
  });
  return () => {
    cancelTimer();
    clearImmediate(waiting);
  };
}

/**
 * Opens a second connection if the first one gets no answer for a while, and uses whichever opens first. A SYN packet may be lost
 * in transit, or dropped by a server whose backlog is full, and the system resends it only after a second, when the request has
 * already failed. No part of a request was sent on either. `onReached`: the server has answered, at least by TCP.
 */
function openOneOfTwo(
  begin: (ending: AbortSignal, onReached: () => void) => Promise<Socket>,
  signal: AbortSignal,
  later: (task: () => void) => () => void,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const over = new AbortController();
    const ending = AbortSignal.any([signal, over.signal]);
    let underWay = 0;
    let failure: unknown;

    function settle() {
      cancel();
      over.abort();
    }

    function attempt() {
      underWay += 1;
      begin(ending, () => cancel()).then(
        (socket) => {
          if (over.signal.aborted) socket.destroy();
          else resolve(socket);
          settle();
        },
        (error: unknown) => {
          underWay -= 1;
          // The first error is the most informative: the other one may be just a timeout.
          failure ??= error;
          if (underWay > 0) return;
          reject(failure);
          settle();
        },
      );
    }

    const cancel = later(attempt);
    attempt();
  });
}

function whenOpen<Kind extends Socket>(
  socket: Kind,
  event: 'connect' | 'secureConnect',
  signal: AbortSignal,
): Promise<Kind> {
  return new Promise((resolve, reject) => {
    const end = () => socket.destroy(signal.reason);
    const settle = () => signal.removeEventListener('abort', end);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
    socket
      .once(event, () => {
        settle();
        resolve(socket);
      })
      .once('error', (error) => {
        settle();
        reject(error);
      })
      .once('close', () => {
        settle();
        reject(new Error('the connection was closed'));
      });
  });
}

// Failures between the gateway and its proxy. They are not the server's fault, and nothing has reached the server.

type ProxyErrorCode =
  /** The proxy refuses to connect to the server. */
  | 'ERR_PROXY_REFUSED'
  /** Nothing responds at the proxy's address. */
  | 'ERR_PROXY_UNREACHABLE'
  /** The proxy did not answer in time, closed the connection, or speaks another protocol. */
  | 'ERR_PROXY_FAILED';

export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  readonly code: ProxyErrorCode;

  constructor(code: ProxyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Converts a failed connection to the proxy. If this machine has run out of files or ports, the error stays as it is. */
export function toProxyError(cause: Error): Error {
  const code = getErrorCode(cause) ?? '';
  if (isShortage(code)) return cause;
  return isNobodyThere(code)
    ? new ProxyError('ERR_PROXY_UNREACHABLE', 'the proxy cannot be reached', { cause })
    : new ProxyError('ERR_PROXY_FAILED', 'the proxy cannot be used', { cause });
}
