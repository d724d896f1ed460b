// A server of bytes: a test sees each connection, and writes to it what it likes.
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { expect } from 'vitest';

export interface RawConnection {
  readonly socket: Socket;
  /** All that has come on it. */
  received(): string;
  /** Resolves once so many requests (heads) have come. */
  requests(count: number): Promise<void>;
  write(text: string): void;
  isClosed(): boolean;
}

export interface RawServer {
  readonly url: URL;
  readonly port: number;
  readonly connections: readonly RawConnection[];
  /** Resolves to the connection with that number, from 0, once a request has come on it. */
  connection(at: number): Promise<RawConnection>;
  close(): Promise<void>;
}

export async function startRawConnections(tls?: {
  readonly key: string;
  readonly cert: string;
}): Promise<RawServer & { readonly server: Server }> {
  const connections: RawConnection[] = [];
  const add = (socket: Socket) => connections.push(watch(socket));
  const server = tls === undefined ? createServer(add) : createTlsServer(tls, add);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    server,
    port,
    url: new URL(`${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}/mcp`),
    connections,
    async connection(at) {
      await expect.poll(() => connections.length).toBeGreaterThan(at);
      const found = connections[at];
      if (found === undefined) throw new Error('There is no such connection.');
      await found.requests(1);
      return found;
    },
    async close() {
      for (const { socket } of connections) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function watch(socket: Socket | TLSSocket): RawConnection {
  let text = '';
  let isClosed = false;
  socket
    .on('data', (bytes) => {
      text += bytes.toString('latin1');
    })
    .on('error', () => {})
    .on('close', () => {
      isClosed = true;
    });
  return {
    socket,
    received: () => text,
    requests: (count) =>
      expect.poll(() => text.split('\r\n\r\n').length).toBeGreaterThan(count) as Promise<void>,
    write: (written) => void socket.write(written, 'latin1'),
    isClosed: () => isClosed,
  };
}
