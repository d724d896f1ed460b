// The connection pool of one server. Each connection has one request at a time (HTTP/1.1 without pipelining), so there is no
// head-of-line blocking.
import { AsyncResource } from 'node:async_hooks';
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, createSecondTimer } from '../clock.ts';
import { createConnect, type Destination } from './connect.ts';
import { ResponseReader } from './read-response.ts';

interface HttpPoolOptions {
  readonly destination: Destination;
  /** The value of the Host header. */
  readonly host: string;
  /** Text before the path in the request line: the origin for requests to a proxy, otherwise empty. */
  readonly targetPrefix: string;
  /** Credentials for a proxy that receives the requests; undefined if there is none. */
  readonly proxyAuthorization: string | undefined;
  /** False if each request should have its own connection. */
  readonly keepsConnections: boolean;
  readonly clock: Clock;
}

/** A request failed because the gateway no longer uses the server. */
export class PoolClosed extends Error {
  override readonly name = 'PoolClosed';
  readonly code = 'ERR_POOL_CLOSED';
}

/**
 * Keep-alive time for a server that does not announce one: less than the 2 s after which gunicorn closes an idle connection, and
 * the 5 s of uvicorn and others. A call sent at the very moment when the server closes the connection fails, and a tool call cannot
 * be repeated: of 600 calls sent to gunicorn within 24 ms of its 2 s, 98 failed; of 300 to another server within 20 ms of its 60 s,
 * 198.
 */
const IDLE_MS = 1_500;
/** Subtracted from the time that a server announces, since a request takes time to arrive. */
const EARLIER_MS = 2_000;
const MAX_IDLE_MS = 600_000;

export class HttpPool {
  private readonly clock: Clock;
  private readonly targetPrefix: string;
  private readonly keepsConnections: boolean;
  /** The header lines that belong to the connection. */
  private readonly own: string;
  private readonly open: ReturnType<typeof createConnect>;
  private readonly connections = new Set<PooledConnection>();
  /** The most recently used connection is at the end, and is used next, so that the others can be closed. */
  private readonly idle: PooledConnection[] = [];
  private readonly sweep: () => void;
  private isClosed = false;
  /**
   * Async context of all connections: received data must not be attributed to the request that happened to open the connection.
   */
  private readonly origin = new AsyncResource('HttpPool');

  constructor(options: HttpPoolOptions) {
    const { destination, host, targetPrefix, proxyAuthorization, keepsConnections, clock } =
      options;
    this.clock = clock;
    this.targetPrefix = targetPrefix;
    this.keepsConnections = keepsConnections;
    const authorization =
      proxyAuthorization === undefined ? '' : `proxy-authorization: ${proxyAuthorization}\r\n`;
    const connection = keepsConnections ? 'keep-alive' : 'close';
    this.own = `host: ${host}\r\nconnection: ${connection}\r\n${authorization}`;
    this.open = createConnect(destination);
    this.sweep = createSecondTimer(clock, {
      isNeeded: () => this.idle.length > 0,
      task: () => {
        const now = clock.monotonic();
        const expired = this.idle.filter(({ idleUntil }) => idleUntil <= now);
        for (const one of expired) one.end(EXPIRED);
      },
    });
  }

  /**
   * Has no timeout, since a stream may stay silent for hours. The handler is not called before this returns.
   *
   * @throws UnsendableHeader, PoolClosed
   */
  send(request: HttpRequest, handler: ResponseHandler): SentRequest {
    if (this.isClosed) throw createClosed();
    const head = writeHead(request, this.targetPrefix + request.path, this.own);
    const connection = this.takeIdle() ?? this.add();
    connection.send(head, request.body, handler);
    return connection;
  }

  isEmpty(): boolean {
    return this.connections.size === 0;
  }

  /** Closes all connections: requests in flight fail with PoolClosed. */
  close(): void {
    this.isClosed = true;
    for (const connection of this.connections) connection.end(createClosed());
  }

  // Called by the connections.

  connect(connection: PooledConnection, signal: AbortSignal): Promise<Socket> {
    const how = {
      clock: this.clock,
      signal,
      onread: readInto(connection),
      receive: (bytes: Buffer) => connection.receive(bytes),
    };
    return this.origin.runInAsyncScope(this.open, undefined, how);
  }

  /** Called when another request may be sent, within this many milliseconds if the server says so (`Keep-Alive: timeout`). */
  release(connection: PooledConnection, keptMs: number | undefined): void {
    if (!this.keepsConnections) {
      connection.end(EXPIRED);
      return;
    }
    const ms = keptMs === undefined ? IDLE_MS : Math.min(keptMs - EARLIER_MS, MAX_IDLE_MS);
    connection.idleUntil = this.clock.monotonic() + ms;
    this.idle.push(connection);
    this.sweep();
  }

  /** Called when nothing more can be sent on the connection. */
  forget(connection: PooledConnection): void {
    this.connections.delete(connection);
    const at = this.idle.lastIndexOf(connection);
    if (at !== -1) this.idle.splice(at, 1);
  }

  private add(): PooledConnection {
    const connection = new PooledConnection(this);
    this.connections.add(connection);
    return connection;
  }

  private takeIdle(): PooledConnection | undefined {
    const now = this.clock.monotonic();
    for (;;) {
      const connection = this.idle.pop();
      if (connection === undefined || connection.idleUntil > now) return connection;
      connection.end(EXPIRED);
    }
  }
}

const createClosed = () => new PoolClosed('the connections to the server were closed');

/** Never reaches a handler, since no request was in flight. */
const EXPIRED = new Error('the connection was idle for too long');

/** Receives the answer to one request. An error that it throws fails that request. */
export interface ResponseHandler {
  onStart(status: number, headers: IncomingHttpHeaders): void;
  /** The handler may keep the bytes. */
  onData(bytes: Buffer): void;
  /** The last call, unless `onError` is called. */
  onEnd(): void;
  /** `wasSent` is false if no part of the request can have reached the server. */
  onError(error: Error, wasSent: boolean): void;
}

/**
 * A request that was sent. Its methods do nothing once the handler has been notified of the end, since the connection may then
 * belong to another request.
 */
export type SentRequest = Pick<PooledConnection, 'pause' | 'resume' | 'abort'>;

/** The server closed the connection before its answer, or in the middle of it. */
class ConnectionClosed extends Error {
  override readonly name = 'ConnectionClosed';
  readonly code = 'ECONNRESET';
}

/** A class, since each request uses one, mostly a reused one. */
class PooledConnection {
  private readonly owner: HttpPool;
  private readonly reader = new ResponseReader(this);
  private readonly connecting = new AbortController();
  private socket: Socket | undefined = undefined;
  private handler: ResponseHandler | undefined = undefined;
  private keptMs: number | undefined = undefined;
  private isPaused = false;
  private isOver = false;
  /** Until when a request may be sent on the idle connection, in monotonic milliseconds. */
  idleUntil = 0;

  constructor(owner: HttpPool) {
    this.owner = owner;
  }

  send(head: string, body: string | null, handler: ResponseHandler): void {
    this.handler = handler;
    if (this.socket !== undefined) {
      this.write(this.socket, head, body);
      return;
    }
    this.owner.connect(this, this.connecting.signal).then(
      (socket) => {
        this.attach(socket);
        if (!this.isOver) this.write(socket, head, body);
      },
      (error: Error) => this.end(error),
    );
  }

  /** The bytes are only valid until this returns. */
  receive(bytes: Buffer): void {
    if (this.isOver) return;
    try {
      this.reader.read(bytes);
    } catch (error) {
      this.end(toError(error));
    }
  }

  /** Closes the connection; a handler that is waiting for an answer gets the error. */
  end(error: Error): void {
    const { handler, socket } = this;
    this.close();
    handler?.onError(error, socket !== undefined);
  }

  // Called by the sender of the request.

  pause(handler: ResponseHandler): void {
    if (this.handler !== handler) return;
    this.isPaused = true;
    this.socket?.pause();
  }

  resume(handler: ResponseHandler): void {
    if (this.handler === handler && this.isPaused) this.goOn();
  }

  /** Closes the connection; the handler is not called any more. */
  abort(handler: ResponseHandler): void {
    if (this.handler === handler) this.close();
  }

  // Called by the reader of the answer.

  onHead(status: number, headers: IncomingHttpHeaders): void {
    const seconds = KEPT.exec(String(headers['keep-alive'] ?? ''))?.[1];
    this.keptMs = seconds === undefined ? undefined : Number(seconds) * 1000;
    this.handler?.onStart(status, headers);
  }

  onBody(bytes: Buffer): void {
    this.handler?.onData(bytes);
  }

  onComplete(isReusable: boolean): void {
    const { handler, socket } = this;
    this.handler = undefined;
    if (this.isPaused) this.goOn();
    // An answer may arrive before its request has been sent completely: the rest would be mistaken for the next request.
    if (isReusable && socket?.writableLength === 0) {
      // Idle connections do not keep a finished command running.
      socket.unref();
      this.owner.release(this, this.keptMs);
    } else this.close();
    try {
      handler?.onEnd();
    } catch (error) {
      // The connection may already belong to another request, which must not fail because of this error.
      handler?.onError(toError(error), true);
    }
  }

  private attach(socket: Socket): void {
    this.socket = socket;
    socket
      .on('error', (error) => this.end(error))
      .on('end', () => {
        if (!this.isOver && !this.reader.readEnd()) this.end(new ConnectionClosed(CLOSED));
      })
      .on('close', () => this.end(new ConnectionClosed(CLOSED)));
    if (this.isOver) socket.destroy();
    else if (socket.destroyed) this.end(new ConnectionClosed(CLOSED));
  }

  private write(socket: Socket, head: string, body: string | null): void {
    this.reader.begin();
    socket.ref();
    // A single string is written in one system call. Only ASCII has the same bytes in a header and in a body.
    const isAscii = Buffer.byteLength(head) === head.length;
    if (isAscii) {
      socket.write(body === null ? head : head + body);
      return;
    }
    socket.write(head, 'latin1');
    if (body !== null) socket.write(body);
  }

  private goOn(): void {
    this.isPaused = false;
    this.socket?.resume();
  }

  private close(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.handler = undefined;
    this.reader.stop();
    this.connecting.abort();
    this.socket?.destroy();
    this.owner.forget(this);
  }
}

/**
 * The read buffer of all connections: Node's own reads allocate 64 KiB each, and most answers are about a kilobyte. Bytes that are
 * kept are copied before the next read.
 */
const shared = Buffer.allocUnsafeSlow(65_536);

/** The option `onread` for the socket of a connection. */
const readInto = (connection: PooledConnection) => ({
  buffer: shared,
  callback(length: number) {
    connection.receive(shared.subarray(0, length));
    return true;
  },
});

const toError = (thrown: unknown) => (thrown instanceof Error ? thrown : new Error(String(thrown)));

const KEPT = /(?:^|[ ,;])timeout=(\d{1,9})(?![\d.])/i;
const CLOSED = 'the server closed the connection';

// Writes requests (RFC 9112). Refuses headers that could turn one request into two (request smuggling).

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'OPTIONS';
  /** Path and query of the URL. */
  readonly path: string;
  /** Lists of alternating names and values, kept separate: joining them would cost an array per request. */
  readonly headers: readonly (readonly string[])[];
  readonly body: string | null;
}

/** A header cannot be sent, which affects only this request. */
export class UnsendableHeader extends Error {
  override readonly name = 'UnsendableHeader';
}

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** Headers of framing, of the connection and for proxies, which only this client itself sets. */
const OWN = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** True if a header cannot be given to a request, whatever its value. */
export const isConnectionHeader = (name: string): boolean => OWN.has(name.toLowerCase());

/**
 * Writes the head of a request, including the empty line. `target` is the request target in its first line (RFC 9112 §3.2); `own`
 * contains the header lines of the connection.
 *
 * @throws UnsendableHeader
 */
function writeHead({ method, headers, body }: HttpRequest, target: string, own: string): string {
  let head = `${method} ${target} HTTP/1.1\r\n${own}`;
  for (const list of headers)
    for (let at = 0; at + 1 < list.length; at += 2) {
      const name = list[at] ?? '';
      const value = list[at + 1] ?? '';
      if (!TOKEN.test(name) || UNSENDABLE.test(value) || OWN.has(name.toLowerCase()))
        throw new UnsendableHeader('a header of the request cannot be sent');
      head += `${name}: ${value}\r\n`;
    }
  return body === null
    ? `${head}\r\n`
    : `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n`;
}
