// In front of a server of both eras, so that it has one of them only.
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface OneEra {
  /** Of `/mcp`. */
  readonly url: string;
  close(): Promise<void>;
}

/** Everything passes but the first message of the stateless era, to which it answers as older servers do. */
export async function hideStatelessEra(target: string): Promise<OneEra> {
  const server = createServer(async (req, res) => {
    const body = await readAll(req);
    if (body.includes('"server/discover"')) {
      const error = { code: -32601, message: 'Method not found' };
      res.writeHead(404, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ jsonrpc: '2.0', error, id: JSON.parse(body).id }));
      return;
    }
    const { host: _, ...headers } = req.headers;
    const passed = request(target, { method: req.method ?? 'POST', headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      res.flushHeaders();
      answer.pipe(res);
    });
    passed.on('error', () => res.destroy());
    res.on('close', () => passed.destroy());
    passed.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readAll(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
