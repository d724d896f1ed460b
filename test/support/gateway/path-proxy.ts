import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A reverse proxy that serves what is behind it below a path, as for a BASE_URL that has one. */
export interface PathProxy {
  /** With the path, without a slash at its end. */
  readonly url: string;
  close(): Promise<void>;
}

export async function startPathProxy(path: string, getPort: () => number): Promise<PathProxy> {
  const server = createServer((incoming, outgoing) => {
    const { method, headers, url = '/' } = incoming;
    if (!url.startsWith(`${path}/`)) {
      outgoing.writeHead(421).end();
      return;
    }
    const options = { host: '127.0.0.1', port: getPort(), path: url.slice(path.length) };
    const onward = request({ ...options, method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://localhost:${port}${path}`,
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
