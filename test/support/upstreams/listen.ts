import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface ListeningServer {
  readonly server: Server;
  readonly port: number;
  readonly url: string;
  close(): Promise<void>;
}

/** A server on a loopback socket; `port` where it has to be one that was used before. TLS where a key is given. */
export async function listenOnLoopback(
  handle: RequestListener,
  port = 0,
  path = '/mcp',
  tls?: { readonly key: string; readonly cert: string },
): Promise<ListeningServer> {
  const server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle);
  // On a busy machine it would close idle connections just when they are used again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
  const address = server.address() as AddressInfo;
  return {
    server,
    port: address.port,
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${address.port}${path}`,
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
