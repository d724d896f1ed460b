import type { IncomingHttpHeaders, RequestListener, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net';
import type { TLSSocket } from 'node:tls';
import { generate } from 'selfsigned';
import type { Network } from '../../../src/platform/outbound/public-network.ts';

/** A public address; in these tests it leads to the host. */
export const PUBLIC = '93.184.216.34';

export interface DocumentRequest {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly servername: string | false | null;
}

export interface DocumentHost {
  readonly requests: readonly DocumentRequest[];
  /** Names that were resolved, addresses that were connected to. */
  readonly resolved: readonly string[];
  readonly dialled: readonly string[];
  /** Connections to whatever is not the host: there must be none. */
  readonly strays: () => number;
  /** Connections to the host that are open. */
  readonly open: () => Promise<number>;
  /** Answers the next requests. */
  answer(respond: (res: ServerResponse, path: string) => void): void;
  /** What names resolve to from now on. */
  resolveTo(resolve: Network['resolve']): void;
  readonly network: Network;
  /** Another port of this machine in the place of an address. */
  dialTo(port: number, signal: AbortSignal): Promise<Socket>;
  readonly port: number;
  close(): Promise<void>;
}

export interface DocumentHostOptions {
  /** For which names the certificate is. */
  readonly names: readonly string[];
  /** Neither earlier nor later than now by default. */
  readonly notAfter?: Date;
}

/** A web server with TLS, and a network in which public addresses lead to it. */
export async function startDocumentHost(options: DocumentHostOptions): Promise<DocumentHost> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'test' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    ...(options.notAfter && {
      notBeforeDate: new Date(options.notAfter.getTime() - 1000),
      notAfterDate: options.notAfter,
    }),
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames: options.names.map((value) => ({ type: 2, value })) },
    ],
  });
  const requests: DocumentRequest[] = [];
  const resolved: string[] = [];
  const dialled: string[] = [];
  let respond: (res: ServerResponse, path: string) => void = (res) => res.end();
  let resolve: Network['resolve'] = async () => [PUBLIC];
  let strays = 0;

  const listener: RequestListener = ({ url = '', method = '', headers, socket }, res) => {
    const { servername } = socket as TLSSocket & { servername: string | false };
    requests.push({ path: url, method, headers, servername });
    respond(res, url);
  };
  const server = createServer({ cert, key }, listener).on('tlsClientError', () => {});
  const elsewhere = createTcpServer((socket) => {
    strays += 1;
    socket.destroy();
  });
  const port = await listen(server);
  const strayPort = await listen(elsewhere);

  return {
    requests,
    resolved,
    dialled,
    port,
    strays: () => strays,
    open: () =>
      new Promise((done, fail) => {
        server.getConnections((error, count) => (error ? fail(error) : done(count)));
      }),
    answer(wanted) {
      respond = wanted;
    },
    resolveTo(wanted) {
      resolve = wanted;
    },
    dialTo,
    network: {
      ca: cert,
      resolve(host, signal) {
        resolved.push(host);
        return resolve(host, signal);
      },
      dial({ addresses, signal }) {
        dialled.push(...addresses);
        const target = addresses.every((address) => address === PUBLIC) ? port : strayPort;
        return dialTo(target, signal);
      },
    },
    async close() {
      server.closeAllConnections();
      await Promise.all([closed(server), closed(elsewhere)]);
    },
  };
}

/** Answers with a document for the requested path, a good one but for `members`. */
export const documentAnswer =
  (members: object = {}, headers: Record<string, string> = {}, host = 'client.example') =>
  (res: ServerResponse, path: string): void => {
    const body = { client_id: `https://${host}${path}`, redirect_uris: [REDIRECT], ...members };
    res.writeHead(200, { 'Content-Type': 'application/json', ...headers });
    res.end(JSON.stringify(body));
  };

export const REDIRECT = 'https://client.example/callback';

const dialTo = (port: number, signal: AbortSignal): Promise<Socket> =>
  new Promise((done, fail) => {
    const socket = connect({ host: '127.0.0.1', port });
    const end = () => socket.destroy(new Error('the attempt was ended'));
    signal.addEventListener('abort', end);
    socket
      .once('connect', () => {
        signal.removeEventListener('abort', end);
        done(socket);
      })
      .on('error', fail);
  });

const listen = (server: Server): Promise<number> =>
  new Promise((ready) => {
    server.listen(0, '127.0.0.1', () => ready((server.address() as AddressInfo).port));
  });

const closed = (server: Server): Promise<void> =>
  new Promise((done) => {
    server.close(() => done());
  });
