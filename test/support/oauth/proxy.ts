// A forward proxy on a loopback socket: CONNECT, and plain http by whole URLs (RFC 9110 §9.3.6, §7.1).
import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

export interface ForwardProxy {
  /** For HTTPS_PROXY and HTTP_PROXY, with the credentials where there are some. */
  readonly url: string;
  readonly port: number;
  /** What was asked for: `CONNECT host:port`, or `GET http://host/path`. */
  readonly asked: readonly string[];
  /** Tunnels through it, and connections to it, that are open. */
  readonly open: () => number;
  readonly connections: () => number;
  /** Where a `host:port` leads to on this machine; the rest is answered with 502. */
  lead(target: string, port: number): void;
  /** Takes connections and CONNECTs, and says nothing, from now on. */
  fallSilent(): void;
  close(): Promise<void>;
}

export async function startProxy(
  credentials?: readonly [user: string, password: string],
): Promise<ForwardProxy> {
  const asked: string[] = [];
  const leads = new Map<string, number>();
  const sockets = new Set<Socket>();
  let tunnels = 0;
  let isSilent = false;
  const expected = credentials && `Basic ${Buffer.from(credentials.join(':')).toString('base64')}`;
  const isAllowed = ({ headers }: IncomingMessage) =>
    expected === undefined || headers['proxy-authorization'] === expected;

  const server = createServer((req, res) => {
    asked.push(`${req.method} ${req.url}`);
    if (isSilent) return;
    const { host, pathname, search } = new URL(req.url ?? '');
    const port = leads.get(host.includes(':') ? host : `${host}:80`);
    if (!isAllowed(req)) return void res.writeHead(407).end();
    if (port === undefined) return void res.writeHead(502).end();
    const { method, headers } = req;
    const onward = request({ port, method, path: pathname + search, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(res);
    });
    req.pipe(onward.on('error', () => res.destroy()));
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)));
  });
  server.on('connect', (req, socket, head) => {
    asked.push(`CONNECT ${req.url}`);
    socket.on('error', () => {});
    // Read, so that its end is noticed.
    if (isSilent) return void socket.resume().on('end', () => socket.end());
    const port = leads.get(req.url ?? '');
    if (!isAllowed(req))
      return void socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    if (port === undefined) return void socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    tunnels += 1;
    onward
      .on('error', () => {})
      .on('close', () => {
        tunnels -= 1;
        socket.destroy();
      });
    socket.on('close', () => onward.destroy());
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const user = credentials ? `${credentials.map(encodeURIComponent).join(':')}@` : '';

  return {
    url: `http://${user}127.0.0.1:${port}`,
    port,
    asked,
    open: () => tunnels,
    connections: () => sockets.size,
    lead: (target, to) => void leads.set(target, to),
    fallSilent() {
      isSilent = true;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}
