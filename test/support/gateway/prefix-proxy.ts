// A reverse proxy that serves a gateway below a path of its own, as an operator's does.
import { createServer, request } from 'node:http';

export interface PrefixProxy {
  close(): Promise<void>;
}

/** What comes below `prefix` goes on to `target` without it; everything else is 404. */
export async function startPrefixProxy(
  port: number,
  prefix: string,
  target: number,
): Promise<PrefixProxy> {
  const server = createServer((req, res) => {
    const url = req.url ?? '';
    if (!url.startsWith(`${prefix}/`)) return void res.writeHead(404).end('Not the gateway');
    const { method, headers } = req;
    const path = url.slice(prefix.length);
    const onward = request({ host: '127.0.0.1', port: target, method, path, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    req.pipe(onward.on('error', () => res.destroy()));
  });
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
  return {
    close: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
