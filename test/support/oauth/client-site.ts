import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The web site of a client, on another site than the gateway (127.0.0.1, not localhost). */
export interface ClientSite {
  readonly origin: string;
  /** The same pages on the gateway's own site, on another port. */
  readonly neighbour: string;
  /** Redirects to other origins and back before `issuer`, as a provider that federates does. */
  readonly federated: (issuer: string) => void;
  readonly federatedUrl: string;
  close(): Promise<void>;
}

const PAGE = '<!doctype html><title>A client</title><h1>A client</h1>';

export async function startClientSite(): Promise<ClientSite> {
  let issuer: string | undefined;
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '/', `http://${req.headers.host}`);
    const next = issuer === undefined ? undefined : hop(url, issuer);
    if (next === undefined) res.setHeader('content-type', 'text/html').end(PAGE);
    else res.writeHead(302, { location: next }).end();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;

  return {
    origin: `http://127.0.0.1:${port}`,
    neighbour: `http://localhost:${port}`,
    federatedUrl: `http://localhost:${port}/hop/1`,
    federated: (to) => {
      issuer = to;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** From the first origin to the second, back to the first, and on to the provider. */
function hop({ pathname, port, search }: URL, issuer: string): string | undefined {
  if (pathname === '/hop/1') return `http://127.0.0.1:${port}/hop/2${search}`;
  if (pathname === '/hop/2') return `http://localhost:${port}/hop/3${search}`;
  return pathname === '/hop/3' ? `${issuer}/auth${search}` : undefined;
}
