import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly form: URLSearchParams;
}

export interface Upstream {
  readonly url: string;
  readonly received: readonly Received[];
  /** Answers the next requests. */
  answer(respond: (res: ServerResponse) => void): void;
  close(): Promise<void>;
}

/** A token endpoint that records what reaches it: what goes upstream is the matter of the tests. */
export async function startUpstream(): Promise<Upstream> {
  const received: Received[] = [];
  let respond: (res: ServerResponse) => void = (res) => res.end('{}');

  const server = createServer(async (req, res) => {
    let body = '';
    for await (const chunk of req) body += chunk;
    received.push({
      path: req.url ?? '',
      method: req.method ?? '',
      headers: req.headers,
      form: new URLSearchParams(body),
    });
    respond(res);
  });
  // On a busy machine it would close idle connections just when the gateway uses them again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    answer(wanted) {
      respond = wanted;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
