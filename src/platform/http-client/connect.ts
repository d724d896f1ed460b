// A connection to one server: TCP, TLS where its address says so, and a tunnel where a proxy is between.
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { normalizeHost } from '../address.ts';
import type { Clock } from '../clock.ts';
import { getErrorCode, isNobodyThere, isShortage } from '../error-code.ts';

/** The other end of connections, and the way there. */
export interface Destination {
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
  /** PEM of the authorities that may have signed its certificate; undefined for the system's. */
  readonly ca: string | undefined;
  /** Milliseconds until a connection counts as failed, TLS and the proxy included. */
  readonly timeoutMs: number;
  /** A connection to it through a proxy; undefined where there is none. */
  readonly openTunnel: ((signal: AbortSignal) => Promise<Duplex>) | undefined;
  /** It is itself a proxy, which is asked for what lies at other servers. */
  readonly isProxy: boolean;
}

/** No connection was made in time. */
export class ConnectTimeout extends Error {
  override readonly name = 'ConnectTimeout';
  readonly code = 'ETIMEDOUT';
}

export interface PendingConnection {
  readonly clock: Clock;
  /** Ends the connection while it is made. */
  readonly signal: AbortSignal;
  /** Takes what the server sends; the bytes are good until it returns. */
  readonly receive: (bytes: Buffer) => void;
}

/** Returns a function that makes connections. The TLS of one goes on from that of another, which saves a round trip. */
export function createConnect(
  destination: Destination,
): (how: PendingConnection) => Promise<Socket> {
  const host = normalizeHost(destination.host);
  const { port, isSecure, ca, timeoutMs, openTunnel, isProxy } = destination;
  let session: Buffer | undefined;

  const secure = { ALPNProtocols: ['http/1.1'], ...(ca !== undefined && { ca }) };
  // TLS names no addresses (RFC 6066 §3).
  const named = isIP(host) === 0 ? { host, servername: host } : { host };

  function keepSession(socket: TLSSocket) {
    return socket.on('session', (given) => {
      session = given;
    });
  }

  function open({ clock, receive }: PendingConnection, signal: AbortSignal): Promise<Socket> {
    if (isSecure && openTunnel !== undefined) return openThrough(openTunnel, receive, signal);
    let hasAddress = isIP(host) !== 0;
    const plain = { ...KEPT_ALIVE, port, onread: readInto(receive) };
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
        afterReading(clock, timeoutMs / 2, () => {
          // A second question for its address would only make all wait longer.
          if (hasAddress) task();
        }),
    );
  }

  async function openThrough(
    tunnelling: NonNullable<Destination['openTunnel']>,
    receive: PendingConnection['receive'],
    signal: AbortSignal,
  ): Promise<Socket> {
    const tunnel = await tunnelling(signal);
    const socket = connectTls({ ...secure, ...named, session, socket: tunnel }).on('data', receive);
    return whenOpen(keepSession(socket), 'secureConnect', signal);
  }

  return async function connect(how) {
    const timeout = new AbortController();
    const cancel = how.clock.after(timeoutMs, () => timeout.abort(new ConnectTimeout(NO_ANSWER)));
    try {
      return await open(how, AbortSignal.any([how.signal, timeout.signal]));
    } catch (error) {
      // It may be what the server could not go on from.
      session = undefined;
      throw isProxy && !how.signal.aborted && error instanceof Error ? toProxyError(error) : error;
    } finally {
      cancel();
    }
  };
}

const NO_ANSWER = 'the server took too long to connect';

/** An idle connection is looked after by TCP, too: a firewall that forgets it shows before the next request. */
const KEPT_ALIVE = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 };

/**
 * All connections are read into it: each read of Node's own makes a buffer of 64 KiB, and most answers are a kilobyte. What is
 * kept of it is copied before the next read.
 */
const shared = Buffer.allocUnsafeSlow(65_536);

const readInto = (receive: (bytes: Buffer) => void) => ({
  buffer: shared,
  callback(length: number) {
    receive(shared.subarray(0, length));
    return true;
  },
});

/** After a pause of the process, what has come meanwhile is read before the task. Returns what cancels it. */
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
 * The packet that asks for a connection may be lost, be it on the way or by a server that has no room for more. The system sends
 * it again after a second, when the request has failed. So a second connection is begun where nothing has come by then, and the
 * one that stands first is taken. Nothing of a request was sent on either. `onReached`: the server has answered at all, TLS or not.
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
          // The first says most: the other one may only have had no more time.
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
  /** It answers, and lets nothing through to the server. */
  | 'ERR_PROXY_REFUSED'
  /** Nobody is there. */
  | 'ERR_PROXY_UNREACHABLE'
  /** It said nothing in time, closed the connection, or speaks something else. */
  | 'ERR_PROXY_FAILED';

export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  readonly code: ProxyErrorCode;

  constructor(code: ProxyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Why there is no connection to the proxy. That this machine has no more files or ports stays what it is. */
export function toProxyError(cause: Error): Error {
  const code = getErrorCode(cause) ?? '';
  if (isShortage(code)) return cause;
  return isNobodyThere(code)
    ? new ProxyError('ERR_PROXY_UNREACHABLE', 'the proxy cannot be reached', { cause })
    : new ProxyError('ERR_PROXY_FAILED', 'the proxy cannot be used', { cause });
}
