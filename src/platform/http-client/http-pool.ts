// Connection pool of one server. Each connection has one request at a time (HTTP/1.1 without pipelining): no head-of-line blocking.
import { AsyncResource } from 'node:async_hooks';
import type { Socket } from 'node:net';
import { type Clock, createSecondTimer } from '../clock.ts';
import { createConnect, type Destination } from './connect.ts';
import {
  type HttpRequest,
  PooledConnection,
  type ResponseHandler,
  type SentRequest,
  writeHead,
} from './connection.ts';

interface HttpPoolOptions {
  readonly destination: Destination;
  /** For the Host header. */
  readonly host: string;
  /** Text before the path in the first line: the origin for requests to a proxy, else nothing. */
  readonly targetPrefix: string;
  /** For a proxy that gets the requests; undefined where there is none. */
  readonly proxyAuthorization: string | undefined;
  /** False where each request is to have a connection of its own. */
  readonly keepsConnections: boolean;
  readonly clock: Clock;
}

/** The gateway no longer uses the server. */
export class PoolClosed extends Error {
  override readonly name = 'PoolClosed';
  readonly code = 'ERR_POOL_CLOSED';
}

/**
 * Keep-alive time for a server that does not name one: less than the 2 s after which gunicorn closes an idle connection, and the 5 s
 * of uvicorn and others. A call that is sent just then fails, and a tool call cannot be repeated: of 600 calls sent to gunicorn
 * within 24 ms of its 2 s, 98 failed; of 300 to another server within 20 ms of its 60 s, 198.
 */
const IDLE_MS = 1_500;
/** Subtracted from the time that a server names, since a request takes time to get there. */
const EARLIER_MS = 2_000;
const MAX_IDLE_MS = 600_000;

export class HttpPool {
  private readonly clock: Clock;
  private readonly targetPrefix: string;
  private readonly keepsConnections: boolean;
  /** The headers that are the connection's. */
  private readonly own: string;
  private readonly open: ReturnType<typeof createConnect>;
  private readonly connections = new Set<PooledConnection>();
  /** The connection that was used last is at the end, and is used next, so that the others can be closed. */
  private readonly idle: PooledConnection[] = [];
  private readonly sweep: () => void;
  private isClosed = false;
  /** Async context of all connections: what is read must not belong to the request that happened to open its connection. */
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
   * Has no timeout: a stream may stay silent for hours. The handler is not called before this returns.
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

  // Calls of the connections.

  connect(connection: PooledConnection, signal: AbortSignal): Promise<Socket> {
    const how = { clock: this.clock, signal, reader: connection };
    return this.origin.runInAsyncScope(this.open, undefined, how);
  }

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

/** Reaches no handler: no request was in flight. */
const EXPIRED = new Error('the connection was idle for too long');
