// A reverse proxy that serves a gateway below a path of its own, as an operator's does.
import { createServer, request } from 'node:http';

export interface PrefixProxy {
  close(): Promise<void>;
}

/**
 * `removes`: what comes below `prefix` goes on to `target` without it; everything else is 404. `keeps`: it goes on as it is, and
 * with it the well-known addresses that begin at the host.
 */
export type PrefixRule = 'removes' | 'keeps';

export async function startPrefixProxy(
  port: number,
  prefix: string,
  target: number,
  rule: PrefixRule = 'removes',
): Promise<PrefixProxy> {
  const server = createServer((req, res) => {
    const url = req.url ?? '';
    const isPassed =
      url.startsWith(`${prefix}/`) || (rule === 'keeps' && url.startsWith('/.well-known/'));
    if (!isPassed) return void res.writeHead(404).end('Not the gateway');
    const { method, headers } = req;
    const path = rule === 'keeps' ? url : url.slice(prefix.length);
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
