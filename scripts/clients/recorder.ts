// Stands between clients and gateway, and notes what passes: what a client shows is its own affair,
// what it did is read here.
import { createServer, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** The method of a JSON-RPC message. */
  readonly rpc?: string;
  /** `grant_type` of a token request. */
  readonly grant?: string;
  readonly protocolVersion?: string;
  readonly answer: string;
  /** In ms. */
  readonly at: number;
}

export interface Recorder {
  readonly exchanges: readonly Exchange[];
  close(): void;
}

/** Listens on `port` of loopback, and hands everything on to `target`. */
export async function startRecorder(port: number, target: number): Promise<Recorder> {
  const exchanges: Exchange[] = [];
  const server = createServer((req, res) => {
    const { method = '', url = '', headers } = req;
    const asked = text(req);
    const onwards = request({ host: '127.0.0.1', port: target, method, path: url, headers });
    onwards.on('response', async (reply) => {
      res.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(res);
      const answer = await text(reply).catch(() => '');
      const body = await asked;
      const [path = ''] = url.split('?');
      const status = reply.statusCode ?? 502;
      const at = Date.now();
      exchanges.push({ method, path, status, answer, at, ...readExchange(req, body, answer) });
    });
    onwards.on('error', () => res.destroy());
    asked.then(
      (body) => onwards.end(body),
      () => onwards.destroy(),
    );
  });
  await new Promise<void>((listening, failed) => {
    server.once('error', failed);
    server.listen(port, '127.0.0.1', listening);
  });
  return {
    exchanges,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function readExchange({ url, headers }: IncomingMessage, body: string, answer: string) {
  const rpc = /"method":\s*"([^"]+)"/.exec(body)?.[1];
  const grant = /\bgrant_type=(\w+)/.exec(body)?.[1];
  // As it was agreed on: a header before that, and those of other paths, say little.
  const agreed =
    rpc === 'initialize'
      ? /"protocolVersion":"([^"]+)"/.exec(answer)?.[1]
      : rpc && url === '/mcp' && headers['mcp-protocol-version'];
  return {
    ...(rpc !== undefined && { rpc }),
    ...(grant !== undefined && { grant }),
    ...(typeof agreed === 'string' && agreed !== '' && { protocolVersion: agreed }),
  };
}
